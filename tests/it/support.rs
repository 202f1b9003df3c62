//! Calls tools without a socket.

use lambda_tools::{
    Server,
    testing::{ExpectedResponse, LambdaFunction},
};
use serde_json::{Value, json};

/// A function that handles events.
pub(crate) fn function(server: impl Into<Server>) -> LambdaFunction {
    LambdaFunction::new(server)
}

/// An HTTP API event, payload format 2.0.
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

/// Calls a tool in OXP's header form.
pub(crate) async fn call(function: &LambdaFunction, tool: &str, input: Value) -> ExpectedResponse {
    let body = json!({"tool_id": tool, "input": input}).to_string();
    let event = event("POST", "/tools/call", &body);
    function.respond(&event).await.expect("an HTTP event")
}

/// The `error` of a call whose tool failed.
pub(crate) async fn failure(function: &LambdaFunction, tool: &str, input: Value) -> Value {
    let response = call(function, tool, input).await;
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.body["success"], false, "{response:?}");
    assert!(response.body.get("value").is_none(), "{response:?}");
    response.body["error"].clone()
}

/// The `value` of a call that succeeded.
pub(crate) async fn value(function: &LambdaFunction, tool: &str, input: Value) -> Value {
    let response = call(function, tool, input).await;
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.body["success"], true, "{response:?}");
    response.body["value"].clone()
}
