//! Any text as a Lambda event, through the whole function: there is a valid response, in the format
//! of the event's source and of its protocol, and no secret of the server is in it.
//!
//! The first byte of an input chooses the server.

use std::sync::LazyLock;

use base64::{Engine, prelude::BASE64_STANDARD};
use lambda_tools::http::{HeaderName, HeaderValue};
use serde_json::Value;

use crate::{
    MemoryBound, bounded,
    responses::{self, Response},
    server::{FuzzedFunction, SEARCH, Setting, function, wait},
};

/// A value of JSON takes up to a few hundred bytes, and two bytes of text; an event is held as
/// text, as a request and as a response at the same time. Validators of schemas are built on first
/// use.
const BOUND: MemoryBound = MemoryBound {
    per_byte: 512,
    base: 16 << 20,
};

static FUNCTIONS: LazyLock<[FuzzedFunction; 3]> =
    LazyLock::new(|| [Setting::Open, Setting::Protected, Setting::Small].map(function));

pub fn run(data: &[u8]) {
    let Some((setting, text)) = data.split_first() else {
        return;
    };
    let Ok(text) = str::from_utf8(text) else {
        return;
    };
    responses::prepare();
    let function = &FUNCTIONS[Setting::of(*setting) as usize];
    function.store.reset();
    bounded(data.len(), BOUND, || check_event(function, text));
}

fn check_event(function: &FuzzedFunction, event: &str) {
    // An input that contains a secret may get it back.
    let leaks =
        |text: &[u8]| SEARCH.found(text).is_some() && SEARCH.found(event.as_bytes()).is_none();
    let response = match wait(function.function.invoke(event)) {
        Ok(response) => response,
        Err(error) => {
            let text = error.to_string();
            assert!(!leaks(text.as_bytes()), "{text}");
            return;
        }
    };
    let sent = response.to_string();
    assert!(sent.len() <= 6 << 20, "{} bytes", sent.len());
    assert!(!leaks(sent.as_bytes()), "{sent}");
    let event: Value = serde_json::from_str(event).unwrap_or_default();
    if response.get("statusCode").is_none() {
        return check_direct(&response);
    }
    check_http(&event, &response, &leaks);
}

/// Checks that the answer to a call by itself is the body alone.
fn check_direct(body: &Value) {
    let is_call = body.get("success").or(body.get("result")).is_some();
    let status = match body.get("parameter_errors") {
        _ if is_call => 200,
        Some(_) => 422,
        None => 400,
    };
    let (is_oxp, path) = (true, "/tools/call");
    Response {
        status,
        is_oxp,
        path,
        body,
    }
    .check();
}

/// Checks the formats of Lambda's proxy integrations: API Gateway's two, and the load balancer's.
fn check_http(event: &Value, response: &Value, leaks: &dyn Fn(&[u8]) -> bool) {
    let status = response["statusCode"].as_u64();
    let status = status.and_then(|it| u16::try_from(it).ok());
    let status = status.expect("the status is a number of three digits");
    assert!((200..=599).contains(&status), "{response}");
    let headers = headers_of(response);
    let header = |name: &str| {
        let header = headers.iter().find(|(it, _)| it == name);
        header.map(|(_, it)| it.as_str())
    };
    assert!(response["isBase64Encoded"].is_boolean(), "{response}");
    let text = match &response["body"] {
        Value::Null => "",
        text => text.as_str().expect("a body is a text"),
    };
    let mut body = text.as_bytes().to_vec();
    if response["isBase64Encoded"] == true {
        body = BASE64_STANDARD.decode(text).expect("the body is base64");
    }
    assert!(!leaks(&body), "{response}");
    let is_json = header("content-type").is_some_and(|it| it.contains("json"));
    if body.is_empty() || !is_json {
        return;
    }
    let body: Value = serde_json::from_slice(&body).expect("the body is JSON");
    let path = event["rawPath"].as_str().or(event["path"].as_str());
    Response {
        status,
        is_oxp: header("oxp-version").is_some(),
        path: path.unwrap_or_default(),
        body: &body,
    }
    .check();
}

/// Returns the headers, which must be valid HTTP.
fn headers_of(response: &Value) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    for map in [&response["headers"], &response["multiValueHeaders"]] {
        for (name, value) in map.as_object().into_iter().flatten() {
            assert!(HeaderName::try_from(name).is_ok(), "{response}");
            let one = std::slice::from_ref(value);
            for value in value.as_array().map_or(one, Vec::as_slice) {
                let value = value.as_str().expect("a header's value is a text");
                assert!(HeaderValue::from_str(value).is_ok(), "{response}");
                headers.push((name.to_ascii_lowercase(), value.to_owned()));
            }
        }
    }
    headers
}
