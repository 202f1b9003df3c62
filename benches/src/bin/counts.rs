//! Repeats one stage of a call, so that its instructions can be counted.
//!
//! Arguments: the stage and the number of rounds. `benches/counts` runs it under callgrind with two
//! numbers of rounds; the difference is the cost of the rounds without the start-up.

use std::{env, hint::black_box};

use axum::{Router, body::Body};
use http::{Request, StatusCode, request::Builder};
use http_body_util::BodyExt;
use lambda_tools::{EventKind, Failure, Server, Tool, Toolkit, testing::LambdaFunction};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tower::ServiceExt;

/// Adds two numbers together.
#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number to add.
    a: f64,
    /// The second number to add.
    b: f64,
}

async fn add(input: Add) -> Result<f64, Failure> {
    Ok(input.a + input.b)
}

/// Counts records.
#[derive(Deserialize, JsonSchema)]
struct Count {
    /// The records to count.
    records: Vec<Add>,
}

async fn count(input: Count) -> Result<usize, Failure> {
    Ok(input.records.len())
}

/// Returns a hundred tools that add, and one of each other kind.
fn toolkit() -> Toolkit {
    let tool = |i| Tool::new(format!("Calculator.Add{i}@1.0.0"), add).idempotent();
    let others = [
        Tool::new("Calculator.Recorded@1.0.0", add),
        Tool::new("Records.Count@1.0.0", count).idempotent(),
    ];
    Toolkit::new((1..=100).map(tool).chain(others)).expect("right definitions")
}

fn router() -> Router {
    let router = Server::new(toolkit()).into_router();
    router.expect("a router")
}

/// Sends one body through the router, without the event around it.
async fn send(router: &Router, body: &str, expected: StatusCode) {
    send_with(router, Request::post("/tools/call"), body, expected).await;
}

/// Sends one body over MCP.
async fn send_mcp(router: &Router, body: &str) {
    let request = Request::post("/mcp")
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "Calculator_Add1");
    send_with(router, request, body, StatusCode::OK).await;
}

async fn send_with(router: &Router, request: Builder, body: &str, expected: StatusCode) {
    let request = request.body(Body::from(body.to_owned()));
    let response = router.clone().oneshot(request.expect("a request")).await;
    let response = response.unwrap_or_else(|never| match never {});
    assert_eq!(response.status(), expected);
    black_box(response.into_body().collect().await.expect("a body"));
}

/// The client context of a call from an `AgentCore` Gateway.
const GATEWAY: &str = r#"{"custom": {
    "bedrockAgentCoreMessageVersion": "1.0",
    "bedrockAgentCoreAwsRequestId": "5f6c0a4e-8b1d-4c0e-9d8b-0c2f5a1e7b90",
    "bedrockAgentCoreMcpMessageId": "1",
    "bedrockAgentCoreGatewayId": "tools-gateway-a1b2c3d4e5",
    "bedrockAgentCoreTargetId": "A1B2C3D4E5",
    "bedrockAgentCoreToolName": "calc___Calculator_Add1",
    "bedrockAgentCorePropagatedHeaders": {"x-user-id": "ada"}
}}"#;

async fn rounds(stage: &str, count: usize) {
    let router = router();
    let call_with = |tool: &str, input: Value| {
        json!({"tool_id": tool, "call_id": "c", "input": input}).to_string()
    };
    let call = |tool: &str, a| call_with(tool, json!({"a": a, "b": 5}));
    let (unknown, wrong, right, recorded) = (
        call("No.Such", json!(10)),
        call("Calculator.Add1", json!("ten")),
        call("Calculator.Add1", json!(10)),
        call("Calculator.Recorded", json!(10)),
    );
    let records = json!({"records": vec![json!({"a": 10.5, "b": 5}); 1000]});
    let large = call_with("Records.Count", records);
    let mcp = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {
            "name": "Calculator_Add1", "arguments": {"a": 10, "b": 5},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    })
    .to_string();
    let kinds = [
        EventKind::FunctionUrl,
        EventKind::HttpApi,
        EventKind::AgentCore,
    ];
    let function = LambdaFunction::new(Server::new(toolkit()).events(kinds));
    let event = json!({
        "version": "2.0", "rawPath": "/tools/call", "rawQueryString": "",
        "headers": {"content-type": "application/json", "oxp-version": "1.0"},
        "requestContext": {"stage": "$default", "http": {"method": "POST", "path": "/tools/call"}},
        "body": right, "isBase64Encoded": false,
    })
    .to_string();
    for round in 0..count {
        match stage {
            "start" => drop(black_box(crate::router())),
            // Each list is the first one of its server.
            "lists" => {
                let router = crate::router();
                send_with(&router, Request::get("/tools"), "", StatusCode::OK).await;
            }
            "list" => send_with(&router, Request::get("/tools"), "", StatusCode::OK).await,
            "large" => send(&router, &large, StatusCode::OK).await,
            "decode" => send(&router, &unknown, StatusCode::BAD_REQUEST).await,
            "validate" => send(&router, &wrong, StatusCode::UNPROCESSABLE_ENTITY).await,
            "call" => send(&router, &right, StatusCode::OK).await,
            "mcp" => send_mcp(&router, &mcp).await,
            // A new id each time: claimed and recorded in memory.
            "recorded" => {
                let id = format!("call-{round}");
                let body = recorded.replace("\"c\"", &format!("\"{id}\""));
                send(&router, &body, StatusCode::OK).await;
            }
            "replay" => send(&router, &recorded, StatusCode::OK).await,
            "event" => {
                let answer = function.invoke_for_json(&event, "").await;
                black_box(answer.expect("an answer"));
            }
            "agentcore" => {
                let answer = function
                    .invoke_for_json(r#"{"a": 10, "b": 5}"#, GATEWAY)
                    .await;
                black_box(answer.expect("an answer"));
            }
            other => panic!("unknown stage {other}"),
        }
    }
}

fn main() {
    let arguments: Vec<_> = env::args().collect();
    let [_, stage, count] = arguments.as_slice() else {
        panic!("usage: counts STAGE ROUNDS");
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let count = count.parse().expect("a number of rounds");
    let runtime = runtime.expect("a runtime");
    runtime.block_on(rounds(stage, count));
}
