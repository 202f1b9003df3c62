//! Responses that clients read: replies and lists, and `Retry-After`.

use std::{
    sync::LazyLock,
    time::{Duration, UNIX_EPOCH},
};

use lambda_tools::client::{CallRequest, opentool::FunctionCall};
use lambda_tools_core::retry_after;
use serde_json::{Map, Value};

use crate::{MemoryBound, bounded, clients::Clients, runtime::wait};

/// A value of JSON takes up to a few hundred bytes, and two bytes of text.
const BOUND: MemoryBound = MemoryBound {
    per_byte: 1024,
    base: 4 << 20,
};

static CLIENTS: LazyLock<Clients> = LazyLock::new(Clients::new);

pub fn run(data: &[u8]) {
    let clients: &Clients = &CLIENTS;
    bounded(data.len(), BOUND, || check(clients, data));
}

fn check(clients: &Clients, data: &[u8]) {
    for status in [200, 400, 422, 503] {
        clients.respond_with(status, data);
        wait(read_calls(clients));
    }
    clients.respond_with(200, data);
    let _ = wait(clients.oxp.tools());
    check_value(clients, data);
    if let Ok(text) = str::from_utf8(data) {
        check_retry_after(text);
    }
}

/// Reads the response as one to a call. Nothing of it may panic.
async fn read_calls(clients: &Clients) {
    let _ = clients.oxp.call(&call()).await;
    let call = FunctionCall::new("id-1", "A_B", Map::new());
    let _ = clients.opentool.call(&call).await;
}

fn call() -> CallRequest {
    CallRequest::new("A.B").call_id("id-1")
}

/// The maximum nesting depth of a response, as of a request (`docs/clients.md`).
const DEEPEST: usize = 64;

/// Checks that a value that a server sends arrives unchanged, unless it is nested too deeply.
fn check_value(clients: &Clients, data: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(data) else {
        return;
    };
    let body = serde_json::json!({"success": true, "call_id": "1", "value": value}).to_string();
    clients.respond_with(200, body.as_bytes());
    let reply = wait(clients.oxp.call(&call()));
    let received = reply.ok().and_then(|it| it.outcome.value());
    // With one more level, that of the response.
    let is_read = depth(&value) < DEEPEST;
    assert_eq!(received, is_read.then_some(value));
}

/// Returns the number of arrays and objects around the innermost value.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn check_retry_after(text: &str) {
    let now = UNIX_EPOCH + Duration::from_secs(1_696_507_200);
    let wait = retry_after::parse(text, now);
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let expected = text.parse().map_or(Duration::MAX, Duration::from_secs);
        assert_eq!(wait, Some(expected), "{text}");
    }
}
