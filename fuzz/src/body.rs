//! Bodies of requests of each protocol, as the target `event` checks events: mutations reach further into
//! a body that is not a string in an event.
//!
//! The first byte of an input chooses the protocol: OXP and Open Tool Calling (`o`), OpenTool (`t`), or
//! MCP.

use std::sync::LazyLock;

use lambda_tools::http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use crate::{
    bounded,
    event::{BOUND, check_event, event_of},
    responses,
    server::{FuzzedFunction, Setting, function},
};

static FUNCTION: LazyLock<FuzzedFunction> = LazyLock::new(|| function(Setting::Open));

pub fn run(data: &[u8]) {
    let Some((protocol, body)) = data.split_first() else {
        return;
    };
    responses::prepare();
    let function: &FuzzedFunction = &FUNCTION;
    function.store.reset();
    bounded(data.len(), BOUND, || {
        let (path, headers) = match protocol {
            b'o' => ("/tools/call", HeaderMap::new()),
            b't' => ("/opentool/call", HeaderMap::new()),
            _ => ("/mcp", headers_of_mcp(body)),
        };
        let mut all = HeaderMap::new();
        for (name, value) in [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ] {
            all.insert(name, HeaderValue::from_static(value));
        }
        all.extend(headers);
        check_event(function, &event_of(path, &all, body).to_string());
    });
}

/// Returns the headers that repeat the body, as MCP 2026-07-28 requires.
fn headers_of_mcp(body: &[u8]) -> HeaderMap {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let params = &body["params"];
    let version = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
    let mut headers = HeaderMap::new();
    let Some(version) = version else {
        return headers;
    };
    for (name, value) in [
        ("mcp-protocol-version", Some(version)),
        ("mcp-method", body["method"].as_str()),
        ("mcp-name", params["name"].as_str()),
    ] {
        if let Some(Ok(value)) = value.map(HeaderValue::from_str) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    headers
}
