//! Calls by themselves: `{"tool_id": …, "input": …}`, as Step Functions, schedulers, other functions
//! and `aws lambda invoke` send them.
//!
//! IAM has admitted whoever invokes the function itself, so such a call needs no credentials. Its
//! answer is the body that an HTTP client would get.

use axum::body::{Body, Bytes};
use http::{Method, Request, Uri, header::RETRY_AFTER, response::Parts};
use serde_json::{Value, value::RawValue};

use super::{Event, EventSource, InvocationError};
use crate::Caller;

/// The same call over HTTP, so that it takes the same way.
pub(super) fn request(json: &str) -> Event {
    let mut request = Request::new(Body::from(json.to_owned()));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from_static("/tools/call");
    Event {
        source: EventSource::Direct,
        request: Ok(request),
        principal: Some(Caller::Invoker.into()),
    }
}

/// The body, as JSON.
pub(super) fn response(body: &Bytes) -> Box<RawValue> {
    let text = || Value::from(String::from_utf8_lossy(body)).to_string();
    serde_json::from_slice(body).unwrap_or_else(|_| {
        let text = RawValue::from_string(text());
        text.expect("a string can be serialized as JSON")
    })
}

/// The error with which an invocation fails instead of answering with a rejection or a failure, for
/// callers such as Step Functions that can only catch errors; `None` if the tool has succeeded.
///
/// Its kind is `Rejection` or `Failure`, or `TemporaryRejection` or `TemporaryFailure` if the same
/// call may succeed later.
pub(super) fn error_of(parts: &Parts, body: &Bytes) -> Option<InvocationError> {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let result = body.get("result").unwrap_or(&body);
    let (kind, error) = if parts.status.is_success() {
        let error = result.get("error")?;
        let kind = match error["can_retry"].as_bool() {
            Some(true) => "TemporaryFailure",
            _ => "Failure",
        };
        (kind, error)
    } else if parts.headers.contains_key(RETRY_AFTER) {
        ("TemporaryRejection", &body)
    } else {
        ("Rejection", &body)
    };
    let texts = ["message", "developer_message", "parameter_errors"].map(|name| &error[name]);
    let texts = texts.into_iter().filter(|text| !text.is_null());
    let texts = texts.map(|text| {
        text.as_str()
            .map_or_else(|| text.to_string(), str::to_owned)
    });
    let message = texts.collect::<Vec<_>>().join(": ");
    Some(InvocationError { kind, message })
}
