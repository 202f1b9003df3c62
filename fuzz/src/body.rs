//! Bodies of calls: a tool that a body calls gets the same call after it has been sent again, in every
//! format of the protocol, and bodies get a response of the protocol.
//!
//! Only some responses are checked: that takes long, and the target `event` does it too.

use std::sync::LazyLock;

use lambda_tools::http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use crate::{
    MemoryBound, bounded, depth,
    echo::EchoTool,
    event::{check_event, event_of},
    responses,
    round_trip::{self, CallFormat, RoundTrip},
    server::{FuzzedFunction, Setting, function, toolkit},
};

/// As for events; there are up to five of them, one after the other.
const BOUND: MemoryBound = MemoryBound {
    per_byte: 512,
    base: 16 << 20,
};

/// The protocols.
#[derive(Clone, Copy)]
pub enum Family {
    /// OXP and Open Tool Calling.
    Oxp,
    OpenTool,
    Mcp,
}

impl Family {
    fn formats(self) -> &'static [CallFormat] {
        match self {
            Self::Oxp => &[
                CallFormat::OxpHeader,
                CallFormat::OxpSchema,
                CallFormat::Otc,
            ],
            Self::OpenTool => &[CallFormat::OpenTool],
            Self::Mcp => &[CallFormat::Mcp],
        }
    }
}

struct Target {
    round_trip: RoundTrip,
    function: FuzzedFunction,
}

static TARGET: LazyLock<Target> = LazyLock::new(Target::new);

impl Target {
    fn new() -> Self {
        let tools = toolkit().definitions().into_iter();
        Self {
            round_trip: RoundTrip::new(tools.map(EchoTool::from)),
            function: function(Setting::Open),
        }
    }
}

pub fn run(family: Family, body: &[u8]) {
    responses::prepare();
    round_trip::prepare();
    let target: &Target = &TARGET;
    bounded(body.len(), BOUND, || check(family, target, body));
}

/// Returns true for one in 16 bodies, always the same ones.
fn is_for_function(body: &[u8]) -> bool {
    let hash = body
        .iter()
        .fold(0_u8, |hash, byte| hash.wrapping_mul(31).wrapping_add(*byte));
    hash % 16 == 0
}

fn check(family: Family, target: &Target, body: &[u8]) {
    let headers = headers_for(family, body);
    let path = family.formats()[0].path();
    let call = target
        .round_trip
        .received(family.formats()[0], &headers, body);
    // The other formats have more levels, and a body may have 64.
    if let Some(call) = call.ok().filter(|call| depth(&call.input) < 60) {
        for format in family.formats() {
            let again = target.round_trip.of(&call, *format);
            assert_eq!(again.as_ref(), Ok(&call), "{format:?}");
        }
    }
    if is_for_function(body) {
        target.function.store.reset();
        let event = event_of(path, &headers, body).to_string();
        check_event(&target.function, &event);
    }
}

/// Returns the headers of clients. MCP 2026-07-28 requires some that repeat the body.
fn headers_for(family: Family, body: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if !matches!(family, Family::Mcp) {
        return headers;
    }
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let params = &body["params"];
    let version = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
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
