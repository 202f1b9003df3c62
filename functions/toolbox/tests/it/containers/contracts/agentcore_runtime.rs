//! AWS, "MCP protocol contract": 0.0.0.0:8000/mcp, stateless, and headers of sessions are tolerated.
//! As users have reported, the health checks are `ping` requests without credentials, also at `/mcp/`.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use test_support::assert_program;

use super::{OPEN, URL, request};
use crate::{containers::image::Container, mcp_clients::check_open_server};

async fn post(path: &str, session: &str, key: Option<&str>, message: &Value) -> (u16, Value) {
    let request = request(Method::POST, &format!("{URL}{path}"))
        .header("host", "cell01.runtime.internal:8000")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-session-id", session)
        .header("x-amzn-bedrock-agentcore-runtime-session-id", session);
    let request = match key {
        Some(key) => request.bearer_auth(key),
        None => request,
    };
    let response = request.body(message.to_string()).send().await.unwrap();
    assert!(!response.headers().contains_key("mcp-session-id"));
    let status = response.status().as_u16();
    let body = response.bytes().await.unwrap();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

fn message(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 4, "method": method, "params": params})
}

fn call() -> Value {
    message(
        "tools/call",
        &json!({"name": "Calculator_Add", "arguments": {"a": 1, "b": 2}}),
    )
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a program that tests start"]
async fn program_of_tests() {
    assert_program();
    let settings = [OPEN, ("ALLOWED_HOSTS", "*")];
    let container = Container::start(&settings);
    let info = json!({"name": "a", "version": "1"});
    let client = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
    let (status, body) = post("/mcp", "session-1", None, &message("initialize", &client)).await;
    assert_eq!(
        (status, &body["result"]["protocolVersion"]),
        (200, &json!("2025-06-18"))
    );
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(post("/mcp", "session-1", None, &initialized).await.0, 202);
    container.stop();

    // Another process knows neither session.
    let container = Container::start(&settings);
    for session in ["session-1", "session-2"] {
        let (status, body) = post("/mcp", session, None, &call()).await;
        let value = &body["result"]["structuredContent"];
        assert_eq!((status, value), (200, &json!({"result": 3})), "{body}");
    }
    for method in [Method::GET, Method::DELETE] {
        let response = request(method, &format!("{URL}/mcp")).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    }
    check_open_server("AgentCore Runtime", &format!("{URL}/mcp"));
    is_healthy().await;
    container.stop();

    // The runtime can pass on the token that it has checked.
    let keys = [
        ("TOOLS_AUTH", "api-key"),
        ("TOOLS_API_KEY", "a-key-0123456789"),
        ("ALLOWED_HOSTS", "*"),
    ];
    let container = Container::start(&keys);
    is_healthy().await;
    assert_eq!(
        post("/mcp", "s", Some("a-key-0123456789"), &call()).await.0,
        200
    );
    assert_eq!(post("/mcp", "s", None, &call()).await.0, 401);
    let ping = message("ping", &Value::Null);
    assert_eq!(post("/mcp", "s", Some("wrong"), &ping).await.0, 401);
    let large = message("ping", &json!({"padding": "x".repeat(2000)}));
    assert_eq!(post("/mcp", "s", None, &large).await.0, 401);
    container.stop();
}

async fn is_healthy() {
    let healthy = json!({"jsonrpc": "2.0", "id": 4, "result": {}});
    let ping = json!({"jsonrpc": "2.0", "id": 4, "method": "ping"});
    for ping in [ping, message("ping", &Value::Null)] {
        for path in ["/mcp", "/mcp/"] {
            assert_eq!(
                post(path, "s", None, &ping).await,
                (200, healthy.clone()),
                "{path}"
            );
        }
    }
}
