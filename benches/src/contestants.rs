//! The programs that the benchmark compares, and the events it calls them with: as an API Gateway HTTP
//! API sends them, in payload format 2.0.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::runtime_api::Event;

/// Identifies a contestant, by its place among all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Id {
    Bare,
    Oxp,
    McpModern,
    McpLegacy,
    Rmcp,
    Hello,
}

/// A program, and a call of it.
pub(crate) struct Contestant {
    pub(crate) program: PathBuf,
    pub(crate) event: Event,
    /// Text that a correct response contains.
    pub(crate) expected: &'static str,
}

/// The contestants' names, in the order of their ids.
pub(crate) const NAMES: [&str; 6] = [
    "bare `lambda_http`, a constant",
    "toolbox over OXP",
    "toolbox over MCP 2026-07-28",
    "toolbox over MCP 2025-11-25",
    "`rmcp` over MCP 2025-11-25",
    "hello over OXP",
];

/// Returns all contestants, in the order of their ids.
pub(crate) fn all(programs: &Path) -> Vec<Contestant> {
    const MCP_RESULT: &str = "\"result\\\":15";
    const VALUE: &str = "\"value\\\":15";
    let all = [
        ("bare", add(), VALUE),
        ("toolbox", add(), VALUE),
        ("toolbox", mcp_add(), MCP_RESULT),
        ("toolbox", mcp_add_legacy(), MCP_RESULT),
        ("rmcp_service", mcp_add_legacy(), MCP_RESULT),
        ("hello", greet(), "Hello, Ada!"),
    ];
    let contestant = |(program, event, expected)| Contestant {
        program: programs.join(program),
        event,
        expected,
    };
    all.map(contestant).into()
}

/// Returns a POST request, which has these headers besides those of all requests.
fn event(path: &str, headers: &[(&str, &str)], body: &str) -> Event {
    let mut event = json!({
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "host": "r3pmxmplak.execute-api.us-east-2.amazonaws.com",
            "user-agent": "python-httpx/0.28.1",
            "x-amzn-trace-id": "Root=1-651ea2a0-1b2c3d4e5f60718293a4b5c6",
            "x-forwarded-for": "203.0.113.17",
            "x-forwarded-port": "443",
            "x-forwarded-proto": "https",
        },
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "r3pmxmplak",
            "domainName": "r3pmxmplak.execute-api.us-east-2.amazonaws.com",
            "domainPrefix": "r3pmxmplak",
            "http": {
                "method": "POST",
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "203.0.113.17",
                "userAgent": "python-httpx/0.28.1",
            },
            "requestId": "MXm1chcCiYcEJ7A=",
            "routeKey": "$default",
            "stage": "$default",
            "time": "05/Oct/2023:12:00:00 +0000",
            "timeEpoch": 1_696_507_200_000_u64,
        },
        "body": body,
        "isBase64Encoded": false,
    });
    for (name, value) in headers {
        event["headers"][name] = (*value).into();
    }
    event.to_string().into_bytes().into()
}

/// Returns a call in OXP's header dialect.
fn call(tool: &str, input: &Value) -> Event {
    let call_id = "123e4567-e89b-12d3-a456-426614174000";
    let body = json!({"tool_id": tool, "call_id": call_id, "input": input}).to_string();
    event("/tools/call", &[("oxp-version", "1.0")], &body)
}

/// Returns a call of the toolbox's newest version, which MCP clients always get.
fn add() -> Event {
    call("Calculator.Add@10.0.0", &json!({"a": 10, "b": 5}))
}

/// Returns a call of hello's tool.
fn greet() -> Event {
    call("Hello.Greet@1.0.0", &json!({"name": "Ada"}))
}

/// Returns the same call over MCP, in revision 2026-07-28.
fn mcp_add() -> Event {
    let mut params = mcp_params();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "Calculator_Add"),
    ];
    mcp(&headers, &params)
}

/// Returns the same call over MCP, in revision 2025-11-25.
fn mcp_add_legacy() -> Event {
    mcp(&[("mcp-protocol-version", "2025-11-25")], &mcp_params())
}

fn mcp_params() -> Value {
    json!({"name": "Calculator_Add", "arguments": {"a": 10, "b": 5}})
}

fn mcp(headers: &[(&str, &str)], params: &Value) -> Event {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    event("/mcp", headers, &body.to_string())
}
