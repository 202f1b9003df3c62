//! Responses that clients read: streams of server-sent events, which arrive in pieces of any size,
//! replies and lists of every protocol, and `Retry-After`.
//!
//! The first byte of an input chooses the size of the pieces.

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
    let Some((size, data)) = data.split_first() else {
        return;
    };
    let pieces = || data.chunks(usize::from(*size).max(1));
    let message = fuzzing::message_in_stream(pieces());
    assert_eq!(message, reference(data), "in pieces of {size}");
    for status in [200, 400, 422, 503] {
        let status = StatusCode::from_u16(status).expect("the status is valid");
        fuzzing::read_response(status, data);
    }
    check_value(data);
    if let Ok(text) = str::from_utf8(data) {
        check_retry_after(text);
    }
}

/// HTML, Server-sent events, Interpreting an event stream, for a stream that has ended. As an
/// exception, the last event counts although no empty line follows it.
fn reference(stream: &[u8]) -> Option<Value> {
    let stream = stream.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(stream);
    // The stream may have ended within a CRLF, so this line counts as the last one.
    let stream = stream.strip_suffix(b"\r").unwrap_or(stream);
    let mut lines = Vec::new();
    let mut line = Vec::new();
    let mut bytes = stream.iter().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\r' => {
                bytes.next_if(|next| **next == b'\n');
                lines.push(std::mem::take(&mut line));
            }
            b'\n' => lines.push(std::mem::take(&mut line)),
            other => line.push(*other),
        }
    }
    lines.push(line.trim_ascii_end().to_vec());
    lines.push(Vec::new());
    let (mut data, mut kind) = (Vec::new(), Vec::new());
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = match colon {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (&line[..], &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            _ if line.is_empty() => {
                let is_message = kind.is_empty() || kind == b"message";
                let message = serde_json::from_slice(&data).ok().filter(|_| is_message);
                if message.as_ref().is_some_and(answers_request) {
                    return message;
                }
                (data, kind) = (Vec::new(), Vec::new());
            }
            b"event" => kind = value.to_vec(),
            b"data" => {
                data.extend_from_slice(value);
                data.push(b'\n');
            }
            _ => {}
        }
    }
    None
}

/// JSON-RPC 2.0, section 5: the response to the request 7, or to one that the server could not
/// read.
fn answers_request(message: &Value) -> bool {
    let id = &message["id"];
    match message.get("error") {
        Some(Value::Object(_)) => id.is_null() || *id == 7,
        _ => message.get("result").is_some() && *id == 7,
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
