//! A function behind a function URL, on a loopback address.
//!
//! Clients that only speak HTTP reach a program under the runtime API through it. Whether the URL
//! streams is for the function to say; Lambda has a setting for it, which has to agree.

use std::{process::Command, sync::Arc};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderMap, request::Parts},
    response::Response,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::{
    Served, answer,
    lambda::{Answer, LONG, Platform, event},
};

/// Lambda's limit for an event.
const LARGEST_BODY: usize = 6 << 20;

/// A function, the runtime API that it runs under, and the URL in front of both.
pub struct FunctionUrl {
    /// Where clients call the function.
    pub url: String,
    platform: Arc<Mutex<Platform>>,
    _served: Served,
}

impl FunctionUrl {
    /// Starts a function with these environment variables. It knows its URL: the events name the host of
    /// a real function URL.
    pub async fn start(command: &mut Command, environment: &[(&str, &str)]) -> Self {
        let mut started = None;
        let served = Served::start_with(async |url| {
            let environment = [environment, &[("TOOLS_PUBLIC_URL", url)]].concat();
            let platform = Platform::start(command, &[], &environment).await;
            let platform = started.insert(Arc::new(Mutex::new(platform)));
            Router::new()
                .fallback(forward)
                .with_state(Arc::clone(platform))
        });
        let served = served.await;
        Self {
            url: served.url.clone(),
            platform: started.unwrap(),
            _served: served,
        }
    }

    /// Waits for a line of the function's log that contains `text`; panics after `seconds`.
    pub async fn line_with(&self, text: &str, seconds: u64) -> String {
        self.platform.lock().await.function.line_with(text, seconds)
    }
}

/// Invokes the function with a request. The function handles one event at a time, so the next report
/// is the event's.
async fn forward(State(platform): State<Arc<Mutex<Platform>>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, LARGEST_BODY).await.unwrap();
    let event = event_of(&parts, &body);
    // A task of its own: if the client disconnects, the report is still taken, as Lambda does.
    let invocation = tokio::spawn(async move { platform.lock().await.answer(&event, LONG).await });
    match invocation.await.unwrap() {
        Answer::Whole((true, ..)) => answer(502, &[], "Internal Server Error"),
        Answer::Whole((false, reported, _)) => response_of(&reported),
        Answer::Streamed(streamed) => {
            let (head, _) = response_of(&streamed.prelude).into_parts();
            Response::from_parts(head, Body::new(streamed))
        }
    }
}

/// Returns the event of a request, in payload format 2.0.
///
/// # Panics
///
/// If a header is not text.
pub fn event_of(parts: &Parts, body: &Bytes) -> Value {
    let mut event = event("sources/function-url");
    event["rawPath"] = parts.uri.path().into();
    event["rawQueryString"] = parts.uri.query().unwrap_or_default().into();
    // Lambda adds these headers, or replaces them.
    let mut headers = event["headers"].take();
    headers.as_object_mut().unwrap().retain(|name, _| {
        ["host", "x-amzn-tls-version", "x-amzn-trace-id"].contains(&&**name)
            || name.starts_with("x-forwarded-")
    });
    for name in parts.headers.keys().filter(|name| *name != "host") {
        headers[name.as_str()] = joined(&parts.headers, name.as_str()).into();
    }
    if let Some(Value::String(cookies)) = headers.as_object_mut().unwrap().remove("cookie") {
        event["cookies"] = json!(cookies.split("; ").collect::<Vec<_>>());
    }
    event["headers"] = headers;
    let http = &mut event["requestContext"]["http"];
    http["method"] = parts.method.as_str().into();
    http["path"] = parts.uri.path().into();
    let (text, is_base64) = match std::str::from_utf8(body) {
        Ok(text) => (text.to_owned(), false),
        Err(_) => (STANDARD.encode(body), true),
    };
    event["isBase64Encoded"] = is_base64.into();
    if text.is_empty() {
        event.as_object_mut().unwrap().remove("body");
    } else {
        event["body"] = text.into();
    }
    event
}

fn joined(headers: &HeaderMap, name: &str) -> String {
    let values = headers.get_all(name).iter();
    let values: Vec<_> = values.map(|value| value.to_str().unwrap()).collect();
    values.join(",")
}

/// Returns the response that a function has reported.
///
/// # Panics
///
/// If it is not one.
pub fn response_of(reported: &Value) -> Response {
    let status = u16::try_from(reported["statusCode"].as_u64().unwrap()).unwrap();
    let mut response = Response::builder().status(status);
    for (name, value) in reported["headers"].as_object().into_iter().flatten() {
        // Function URLs rename this header.
        let name = match &**name {
            "www-authenticate" => "x-amzn-remapped-www-authenticate",
            name => name,
        };
        response = response.header(name, value.as_str().unwrap());
    }
    for cookie in reported["cookies"].as_array().into_iter().flatten() {
        response = response.header("set-cookie", cookie.as_str().unwrap());
    }
    let text = reported["body"].as_str().unwrap_or_default();
    let body = if reported["isBase64Encoded"] == json!(true) {
        Body::from(STANDARD.decode(text).unwrap())
    } else {
        Body::from(text.to_owned())
    };
    response.body(body).unwrap()
}
