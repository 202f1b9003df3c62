//! Bodies of calls: a call that was decoded is the same after this crate's client has encoded it
//! again, in every form of the protocol, and bodies get a response of the protocol.
//!
//! Most bodies are decoded and encoded only. The whole function takes ten times as long, and the
//! target `event` tries it too.

use std::sync::LazyLock;

use base64::{Engine, prelude::BASE64_STANDARD};
use lambda_tools::{
    fuzzing::{CallFormat, DecodedCall},
    http::{HeaderMap, HeaderName, HeaderValue},
};
use serde_json::{Value, json};

use crate::{
    MemoryBound, bounded, depth,
    event::check_event,
    responses,
    round_trip::RoundTrip,
    server::{FuzzedFunction, Setting, function, toolkit},
};

/// As for events; the body is decoded up to five times, one after the other.
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

static OXP: LazyLock<Target> = LazyLock::new(|| Target::new(Family::Oxp));
static OPENTOOL: LazyLock<Target> = LazyLock::new(|| Target::new(Family::OpenTool));
static MCP: LazyLock<Target> = LazyLock::new(|| Target::new(Family::Mcp));

impl Target {
    fn new(family: Family) -> Self {
        Self {
            round_trip: RoundTrip::new(family.formats()[0], toolkit()),
            function: function(Setting::Open),
        }
    }
}

pub fn run(family: Family, body: &[u8]) {
    responses::prepare();
    let target: &Target = match family {
        Family::Oxp => &OXP,
        Family::OpenTool => &OPENTOOL,
        Family::Mcp => &MCP,
    };
    bounded(body.len(), BOUND, || check(family, target, body));
}

/// True for one in 16 bodies, always the same ones.
fn is_for_function(body: &[u8]) -> bool {
    let hash = body
        .iter()
        .fold(0_u8, |hash, byte| hash.wrapping_mul(31).wrapping_add(*byte));
    hash % 16 == 0
}

fn check(family: Family, target: &Target, body: &[u8]) {
    let headers = match family {
        Family::Mcp => headers_for(body),
        Family::Oxp | Family::OpenTool => HeaderMap::new(),
    };
    let call = target.round_trip.decode(headers.clone(), body);
    // The other forms have more levels, and a body may have 64.
    if let Some(call) = call.filter(|call| depth(&call.input) < 60) {
        for format in family.formats() {
            let again = target.round_trip.of(&call, *format);
            let again = again.unwrap_or_else(|| panic!("{format:?}: rejected: {call:?}"));
            assert_same(&call, again, *format);
        }
    }
    if is_for_function(body) {
        target.function.store.reset();
        let event = event_of(family, &headers, body).to_string();
        check_event(&target.function, &event);
    }
}

fn assert_same(call: &DecodedCall, mut again: DecodedCall, format: CallFormat) {
    // Such a call is rejected. Encoded again, the integer has the digits of the float that is left.
    if !call.lossy_integers.is_empty() {
        again.lossy_integers.clone_from(&call.lossy_integers);
    }
    assert_eq!(*call, again, "{format:?}");
}

/// The headers that 2026-07-28 requires, taken from the body; earlier revisions need none.
fn headers_for(body: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
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

fn event_of(family: Family, headers: &HeaderMap, body: &[u8]) -> Value {
    let path = family.formats()[0].path();
    let mut fields = json!({
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
    });
    for (name, value) in headers {
        fields[name.as_str()] = json!(String::from_utf8_lossy(value.as_bytes()));
    }
    let (body, is_base64) = match str::from_utf8(body) {
        Ok(text) => (text.to_owned(), false),
        Err(_) => (BASE64_STANDARD.encode(body), true),
    };
    json!({
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": "",
        "headers": fields,
        "requestContext": {"http": {"method": "POST", "path": path}},
        "body": body,
        "isBase64Encoded": is_base64,
    })
}
