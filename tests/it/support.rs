//! Calls tools without a socket.

use lambda_tools::{
    Auth, EventKind, Failure, Server, Tool, Toolkit,
    idempotency::Idempotency,
    secrets::Secrets,
    testing::{ExpectedResponse, LambdaFunction, TestOutcome},
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Creates a server that takes no setting from the environment of the tests, except for metrics.
pub(crate) fn server(toolkit: Toolkit) -> Server {
    Server::new(toolkit)
        .auth(Auth::none())
        .base_path("")
        .allowed_origins([""; 0])
        .events(EventKind::DEFAULT.iter().copied())
        .secrets(Secrets::none())
        .idempotency(Idempotency::none())
}

/// Creates a function that handles events.
pub(crate) fn function(server: impl Into<Server>) -> LambdaFunction {
    LambdaFunction::new(server)
}

/// Returns an HTTP API event, payload format 2.0.
pub(crate) fn event(method: &str, path: &str, body: &str) -> String {
    json!({
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"content-type": "application/json", "oxp-version": "1.0"},
        "requestContext": {
            "accountId": "1", "apiId": "1", "stage": "$default", "timeEpoch": 0,
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1",
                     "sourceIp": "192.0.2.1", "userAgent": "test"},
        },
        "body": body,
        "isBase64Encoded": false,
    })
    .to_string()
}

/// Calls a tool over MCP, revision 2026-07-28; `more` is added to the params.
pub(crate) async fn mcp_call(function: &LambdaFunction, tool: &str, more: Value) -> Value {
    let prefix = "io.modelcontextprotocol";
    let mut params = json!({
        "name": tool,
        "arguments": {},
        "_meta": {
            format!("{prefix}/protocolVersion"): "2026-07-28",
            format!("{prefix}/clientCapabilities"): {},
        },
    });
    merge(&mut params, more);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let mut event: Value = serde_json::from_str(&event("POST", "/mcp", &body.to_string())).unwrap();
    event["headers"] = json!({
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": tool,
    });
    let response = function.respond(&event.to_string()).await;
    let response = response.expect("an HTTP event");
    assert_eq!(response.status, 200, "{response:?}");
    response.body
}

fn merge(target: &mut Value, more: Value) {
    match (target, more) {
        (Value::Object(target), Value::Object(more)) => {
            for (name, value) in more {
                merge(target.entry(name).or_insert(Value::Null), value);
            }
        }
        (target, more) => *target = more,
    }
}

/// Calls a tool in OXP's header dialect.
pub(crate) async fn call(function: &LambdaFunction, tool: &str, input: Value) -> ExpectedResponse {
    let body = json!({"tool_id": tool, "input": input}).to_string();
    let event = event("POST", "/tools/call", &body);
    function.respond(&event).await.expect("an HTTP event")
}

/// Returns the `error` of a call whose tool failed.
pub(crate) async fn failure(function: &LambdaFunction, tool: &str, input: Value) -> Value {
    let response = call(function, tool, input).await;
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.body["success"], false, "{response:?}");
    assert!(response.body.get("value").is_none(), "{response:?}");
    response.body["error"].clone()
}

/// Returns the `value` of a call that succeeded.
pub(crate) async fn value(function: &LambdaFunction, tool: &str, input: Value) -> Value {
    let response = call(function, tool, input).await;
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.body["success"], true, "{response:?}");
    response.body["value"].clone()
}

/// Returns a tool with inputs of this type.
#[track_caller]
pub(crate) fn tool<I: JsonSchema + DeserializeOwned + Send + 'static>(id: &'static str) -> Tool {
    Tool::new(id, |_: I| async { Ok::<_, Failure>(()) })
}

/// Returns the parameter errors of a tool with inputs of this type; `null` if it accepts the input.
pub(crate) async fn errors_of<I: JsonSchema + DeserializeOwned + Send + 'static>(
    input: Value,
) -> Value {
    let function = function(Toolkit::new([tool::<I>("T.T@1.0.0")]).unwrap());
    match function.call("T.T", input).await {
        TestOutcome::Value(_) => Value::Null,
        other => json!(other.rejection().parameter_errors),
    }
}
