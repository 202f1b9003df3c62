//! Responses that clients read: replies and lists of every protocol, and `Retry-After`.

use std::time::{Duration, UNIX_EPOCH};

use lambda_tools::{fuzzing, http::StatusCode};
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

/// A value that a server sends arrives unchanged.
fn check_value(data: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(data) else {
        return;
    };
    let body = serde_json::json!({"success": true, "call_id": "1", "value": value}).to_string();
    // With one more level, the value may be nested too deeply.
    let Ok(sent) = serde_json::from_str::<Value>(&body) else {
        return;
    };
    let received = fuzzing::oxp_value(body.as_bytes());
    assert_eq!(received.as_ref(), sent.get("value"));
}

fn check_retry_after(text: &str) {
    let now = UNIX_EPOCH + Duration::from_secs(1_696_507_200);
    let wait = fuzzing::retry_after(text, now);
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let expected = text.parse().map_or(Duration::MAX, Duration::from_secs);
        assert_eq!(wait, Some(expected), "{text}");
    }
}
