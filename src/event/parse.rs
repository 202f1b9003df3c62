//! The parsing of an event as its type, also if some of its headers are not valid HTTP.

use http::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::Value;

use super::format::EventError;
use crate::json::repaired;

pub(super) fn parse<T: for<'de> Deserialize<'de>>(json: &str) -> Result<T, EventError> {
    serde_json::from_str(json).or_else(|error| {
        // A failed invocation raises an alarm; an invalid header, which anyone can send, must not.
        let json = repaired(json.as_bytes()).unwrap_or_else(|| json.into());
        let mut event = serde_json::from_slice(&json).map_err(|_| EventError::invalid(&error))?;
        remove_nulls(&mut event);
        replace_invalid_headers(&mut event);
        T::deserialize(&event).map_err(|rest| match invalid_field::<T>(&event) {
            _ if rest.to_string().starts_with("missing") => EventError::invalid(&rest),
            Some(name) => EventError::Invalid(format!("its field '{name}' is not valid")),
            None => EventError::invalid(&error),
        })
    })
}

/// Removes what some sources write for absent values.
fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, it| !it.is_null());
            fields.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => {
            items.retain(|it| !it.is_null());
            items.iter_mut().for_each(remove_nulls);
        }
        _ => {}
    }
}

/// Returns the name of the field without which the event would be valid, or would lack only this
/// field.
fn invalid_field<T: for<'de> Deserialize<'de>>(event: &Value) -> Option<&String> {
    event.as_object()?.keys().find(|name| {
        let mut rest = event.clone();
        rest[name.as_str()].take();
        remove_nulls(&mut rest);
        let error = T::deserialize(&rest).err();
        error.is_none_or(|it| it.to_string() == format!("missing field `{name}`"))
    })
}

/// Leaves only headers that are valid HTTP.
fn replace_invalid_headers(event: &mut Value) {
    let mut invalid = 0;
    for headers in ["headers", "multiValueHeaders"] {
        if let Some(headers) = event.get_mut(headers).and_then(Value::as_object_mut) {
            headers.retain(|name, value| {
                let is_header = HeaderName::try_from(name).is_ok();
                invalid += if is_header { replace_invalid(value) } else { 1 };
                is_header
            });
        }
    }
    if invalid > 0 {
        tracing::warn!(invalid, "the event has headers that are not valid HTTP");
    }
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
