//! Parses an event as its type, without headers that are not valid HTTP.

use http::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::Value;

use super::kind::EventError;

pub(super) fn parse<T: for<'de> Deserialize<'de>>(json: &str) -> Result<T, EventError> {
    serde_json::from_str(json).or_else(|error| {
        // A failed invocation raises an alarm; a stranger's invalid header must not.
        without_invalid_headers(json)
            .and_then(|event| serde_json::from_value(event).ok())
            .ok_or_else(|| EventError::invalid(&error))
    })
}

/// The event without the headers that are not valid HTTP; `None` if there are no such headers.
fn without_invalid_headers(json: &str) -> Option<Value> {
    let mut event: Value = serde_json::from_str(json).ok()?;
    let mut dropped = 0;
    for headers in ["headers", "multiValueHeaders"] {
        if let Some(headers) = event.get_mut(headers).and_then(Value::as_object_mut) {
            headers.retain(|name, value| {
                let before = dropped;
                dropped += remove_invalid(value);
                let is_header = !value.is_null() && HeaderName::try_from(name).is_ok();
                dropped += usize::from(!is_header && dropped == before);
                is_header
            });
        }
    }
    if dropped == 0 {
        return None;
    }
    tracing::warn!(dropped, "dropped headers that are not valid HTTP");
    Some(event)
}

/// Removes invalid header values and returns their number. The value becomes null if none is valid.
fn remove_invalid(value: &mut Value) -> usize {
    let is_valid = |value: &Value| {
        value
            .as_str()
            .is_some_and(|it| HeaderValue::try_from(it).is_ok())
    };
    let (invalid, is_empty) = if let Value::Array(values) = value {
        let before = values.len();
        values.retain(is_valid);
        (before - values.len(), values.is_empty())
    } else {
        let is_invalid = !is_valid(value);
        (usize::from(is_invalid), is_invalid)
    };
    if is_empty {
        *value = Value::Null;
    }
    invalid
}
