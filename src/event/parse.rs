//! The parsing of an event as its type, also if some of its headers are not valid HTTP.

use http::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::Value;

use super::format::EventError;

pub(super) fn parse<T: for<'de> Deserialize<'de>>(json: &str) -> Result<T, EventError> {
    serde_json::from_str(json).or_else(|error| {
        // A failed invocation raises an alarm; an invalid header, which anyone can send, must not.
        with_valid_headers(json)
            .and_then(|event| serde_json::from_value(event).ok())
            .ok_or_else(|| EventError::invalid(&error))
    })
}

/// Returns the event with headers that are valid HTTP; `None` if they already are.
fn with_valid_headers(json: &str) -> Option<Value> {
    let mut event: Value = serde_json::from_str(json).ok()?;
    let mut invalid = 0;
    for headers in ["headers", "multiValueHeaders"] {
        if let Some(headers) = event.get_mut(headers).and_then(Value::as_object_mut) {
            headers.retain(|name, value| {
                let is_header = !value.is_null() && HeaderName::try_from(name).is_ok();
                invalid += if is_header { replace_invalid(value) } else { 1 };
                is_header
            });
        }
    }
    if invalid == 0 {
        return None;
    }
    tracing::warn!(invalid, "the event has headers that are not valid HTTP");
    Some(event)
}

/// Replaces header values that are not valid, and returns their number. A valid value that nobody
/// can read takes their place: the absence of a header can mean trust, as that of `Origin` does.
fn replace_invalid(value: &mut Value) -> usize {
    let is_valid = |text: &str| HeaderValue::try_from(text).is_ok();
    match value {
        Value::Array(values) => return values.iter_mut().map(replace_invalid).sum(),
        Value::String(text) if is_valid(text) => return 0,
        _ => *value = "\u{fffd}".into(),
    }
    1
}
