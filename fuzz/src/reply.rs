//! Responses that clients read: replies and lists of every protocol, and `Retry-After`.

use std::time::{Duration, UNIX_EPOCH};

use lambda_tools::{fuzzing, http::StatusCode, seams};
use serde_json::Value;

use crate::{MemoryBound, bounded};

/// A value of JSON takes up to a few hundred bytes, and two bytes of text.
const BOUND: MemoryBound = MemoryBound {
    per_byte: 1024,
    base: 4 << 20,
};

pub fn run(data: &[u8]) {
    bounded(data.len(), BOUND, || check(data));
}

fn check(data: &[u8]) {
    for status in [200, 400, 422, 503] {
        let status = StatusCode::from_u16(status).expect("the status is valid");
        fuzzing::read_response(status, data);
    }
    check_value(data);
    if let Ok(text) = str::from_utf8(data) {
        check_retry_after(text);
    }
}

/// The maximum nesting depth of a response, as of a request (`docs/clients.md`).
const DEEPEST: usize = 64;

/// A value that a server sends arrives unchanged, unless it is nested too deeply.
fn check_value(data: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(data) else {
        return;
    };
    let body = serde_json::json!({"success": true, "call_id": "1", "value": value}).to_string();
    let received = fuzzing::oxp_value(body.as_bytes());
    // With one more level, that of the response.
    let is_read = depth(&value) < DEEPEST;
    assert_eq!(received, is_read.then_some(value));
}

/// The number of arrays and objects around the innermost value.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn check_retry_after(text: &str) {
    let now = UNIX_EPOCH + Duration::from_secs(1_696_507_200);
    let wait = seams::retry_after(text, now);
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let expected = text.parse().map_or(Duration::MAX, Duration::from_secs);
        assert_eq!(wait, Some(expected), "{text}");
    }
}
