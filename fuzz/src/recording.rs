//! Recorded events: a secret that a call brings, that the store has or that is a credential is in no
//! part of the recording in any promised form, wherever the request or the response repeats it.
//!
//! The first byte of an input says where the secret comes from, the second one where it is repeated;
//! the rest is as in the target `redaction`.

use std::sync::LazyLock;

use lambda_tools::{
    Secret, fuzzing,
    http::{HeaderValue, Request},
    testing::ExpectedResponse,
};
use serde_json::{Value, json};

use crate::{
    MemoryBound, bounded,
    redaction::{Hidden, assert_gone, resembles},
};

/// As for redaction; the request and the response are recorded as JSON.
const BOUND: MemoryBound = MemoryBound {
    per_byte: 32 << 10,
    base: 4 << 20,
};

/// The minimum length of a secret that is redacted in recordings, in bytes.
const SHORTEST: usize = 6;

pub fn run(data: &[u8]) {
    bounded(data, BOUND, || {
        check(data);
    });
}

fn check(data: &[u8]) -> Option<()> {
    let (source, data) = data.split_first()?;
    let (place, data) = data.split_first()?;
    let hidden = Hidden::of(data, SHORTEST)?;
    let text = hidden.text();
    // A target is split there, and so would be the secret.
    if place % 6 < 2 && text.contains(['&', '=', '?', '#', '/']) {
        return None;
    }
    // The list of its bytes would resemble the secret.
    if place % 6 == 5 && hidden.encoded.contains(',') {
        return None;
    }
    let mut request = Request::builder()
        .method("POST")
        .uri(uri_of(*place, &text)?);
    let mut stored = Vec::new();
    let mut body = json!({"tool_id": "A.B", "input": input_of(*place, &text)});
    match source % 5 {
        0 => stored.push(("KEY".to_owned(), Secret::from(hidden.secret))),
        1 => body["context"] = json!({"secrets": [{"id": "K", "value": hidden.secret}]}),
        2 => body["context"] = json!({"authorization": [{"id": "g", "token": hidden.secret}]}),
        3 => {
            let call = body.take();
            body = json!({"$schema": "urn:oxp:1.0", "request": call});
            body["request"]["context"] = json!({"secrets": {"K": hidden.secret}});
        }
        _ => {
            let is_credential = !hidden.secret.trim().contains(' ');
            let value = HeaderValue::from_str(hidden.secret.trim()).ok();
            let value = value.filter(|it| is_credential && it.to_str().is_ok())?;
            request = request.header("x-api-key", value);
        }
    }
    if let Some(value) = header_of(*place, &text) {
        request = request.header("user-agent", value);
    }
    let (parts, ()) = request.body(()).ok()?.into_parts();
    let response = json!({"status": 400, "headers": {"content-type": text}, "body": {
        "message": text, text.clone(): [text, {"a": text}]}});
    let response: ExpectedResponse = serde_json::from_value(response).ok()?;
    let body = body.to_string();
    let recording = fuzzing::recording(&parts, body.as_bytes(), stored, response);
    let (event, expected) = recording.expect("a body that is JSON is recorded");
    let mut texts = Vec::new();
    add_texts(&event, &mut texts);
    add_texts(
        &serde_json::to_value(&expected).expect("a response is JSON"),
        &mut texts,
    );
    if let Some(body) = event["body"].as_str() {
        add_texts(
            &serde_json::from_str(body).expect("the body is JSON"),
            &mut texts,
        );
    }
    let bytes = Value::from(text.as_bytes()).to_string();
    let is_plain = hidden.encoded == hidden.secret.trim();
    let is_left = event["body"]
        .as_str()
        .is_some_and(|body| body.contains(&bytes));
    assert!(!is_plain || !is_left, "{bytes} in {event}");
    if !FIXED.iter().any(|fixed| resembles(&hidden.encoded, fixed)) {
        for text in texts {
            assert_gone(&hidden, &text);
        }
    }
    Some(())
}

/// The recording's own texts. A secret with a piece of them cannot be told from them.
static FIXED: LazyLock<Vec<String>> = LazyLock::new(|| {
    let request = Request::builder().method("POST").uri("/tools/call");
    let (parts, ()) = request.body(()).expect("a request").into_parts();
    let response = json!({"status": 400, "headers": {"content-type": ""}, "body": {}});
    let response = serde_json::from_value(response).expect("a response");
    let context = json!({"secrets": [{"id": "K", "value": ""}],
            "authorization": [{"id": "g", "token": ""}]});
    let call = json!({"tool_id": "A.B", "input": {"note": "", "bytes": []}, "context": context});
    let body = json!({"$schema": "urn:oxp:1.0", "request": call}).to_string();
    let recording = fuzzing::recording(&parts, body.as_bytes(), Vec::new(), response);
    let mut texts = vec![body];
    add_texts(&recording.expect("a recording").0, &mut texts);
    texts
});

fn uri_of(place: u8, text: &str) -> Option<String> {
    match place % 6 {
        0 => Some(format!("/tools/{text}/call")),
        1 => Some(format!("/tools/call?{text}=1&x={text}")),
        _ => Some("/tools/call".to_owned()),
    }
}

fn header_of(place: u8, text: &str) -> Option<HeaderValue> {
    (place % 6 == 2).then(|| HeaderValue::from_str(text).ok())?
}

fn input_of(place: u8, text: &str) -> Value {
    match place % 6 {
        3 => json!({"note": text}),
        4 => json!({text: [text]}),
        5 => json!({"bytes": text.as_bytes()}),
        _ => json!({}),
    }
}

fn add_texts(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| add_texts(item, texts)),
        Value::Object(fields) => {
            for (name, value) in fields {
                texts.push(name.clone());
                add_texts(value, texts);
            }
        }
        _ => {}
    }
}
