//! Events as an API Gateway HTTP API sends them, in payload format 2.0.

use serde_json::{Value, json};

use crate::runtime_api::Event;

/// An event with this request, which has these headers besides those of all requests.
fn event(method: &str, path: &str, headers: &[(&str, &str)], body: Option<&str>) -> Event {
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
                "method": method,
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
        "isBase64Encoded": false,
    });
    for (name, value) in headers {
        event["headers"][name] = (*value).into();
    }
    if let Some(body) = body {
        event["body"] = body.into();
    }
    event.to_string().into_bytes().into()
}

/// The header that distinguishes OXP's header form.
const OXP: &[(&str, &str)] = &[("oxp-version", "1.0")];

/// A call in OXP's header form.
pub(crate) fn call(tool: &str, input: &Value) -> Event {
    event("POST", "/tools/call", OXP, Some(&call_body(tool, input)))
}

fn call_body(tool: &str, input: &Value) -> String {
    let call_id = "123e4567-e89b-12d3-a456-426614174000";
    json!({"tool_id": tool, "call_id": call_id, "input": input}).to_string()
}

/// The first example of the specification.
pub(crate) fn add() -> Event {
    call("Calculator.Add@1.0.0", &json!({"a": 10, "b": 5}))
}

/// The same call of the toolbox's newest version, which MCP clients always get.
pub(crate) fn add_newest() -> Event {
    call("Calculator.Add@10.0.0", &json!({"a": 10, "b": 5}))
}

/// The same call with a credential.
pub(crate) fn add_newest_with(credential: &str) -> Event {
    let body = call_body("Calculator.Add@10.0.0", &json!({"a": 10, "b": 5}));
    let authorization = format!("Bearer {credential}");
    let headers = [OXP[0], ("authorization", &authorization)];
    event("POST", "/tools/call", &headers, Some(&body))
}

/// The same call over MCP, in revision 2026-07-28.
pub(crate) fn mcp_add() -> Event {
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

/// The same call over MCP, in revision 2025-11-25.
pub(crate) fn mcp_add_legacy() -> Event {
    mcp(&[("mcp-protocol-version", "2025-11-25")], &mcp_params())
}

fn mcp_params() -> Value {
    json!({"name": "Calculator_Add", "arguments": {"a": 10, "b": 5}})
}

fn mcp(headers: &[(&str, &str)], params: &Value) -> Event {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    event("POST", "/mcp", headers, Some(&body.to_string()))
}

/// A request for the list of tools, in OXP's header form.
pub(crate) fn list() -> Event {
    event("GET", "/tools", OXP, None)
}

/// The same request of a client that has the list with this tag.
pub(crate) fn list_unless(tag: &str) -> Event {
    event("GET", "/tools", &[OXP[0], ("if-none-match", tag)], None)
}

/// A call with a body of about this many bytes.
pub(crate) fn records(bytes: usize) -> Event {
    let text = "The quick brown fox jumps over the lazy dog, \"quotes\" included.";
    let record = |id: usize| json!({"id": id, "text": text});
    let records: Vec<_> = (0..bytes.div_ceil(90)).map(record).collect();
    call("Records.Count@1.0.0", &json!({"records": records}))
}
