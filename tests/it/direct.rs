//! Events that are calls by themselves.

use lambda_tools::{
    AgentCoreUser, ApiKeys, Auth, Context, EventKind, Failure, Protocol, Server, Tool, Toolkit,
    axum::Router, http::HeaderName, secrets::Secrets, testing::LambdaFunction,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Chooses an outcome.
#[derive(Deserialize, JsonSchema)]
struct Choice {
    /// The outcome.
    outcome: String,
}

async fn choose(input: Choice, cx: Context) -> Result<String, Failure> {
    match input.outcome.as_str() {
        "success" => Ok(cx.caller().to_string()),
        _ => Err(Failure::new("There is no such outcome")),
    }
}

fn server() -> Server {
    let tools = Toolkit::new([Tool::new("T.Choose@1.0.0", choose)]).unwrap();
    Server::new(tools)
        .auth(ApiKeys::with_ids(["KEY"]))
        .secrets(Secrets::fixed([("KEY", "the-key-of-a-caller")]))
}

fn call(outcome: &str) -> String {
    json!({"tool_id": "T.Choose", "input": {"outcome": outcome}}).to_string()
}

/// RFC 8259, 8.2.
#[tokio::test]
async fn half_a_surrogate_pair_in_an_event_is_a_text() {
    let function = LambdaFunction::new(server());
    let event = r#"{"tool_id": "T.Choose", "input": {"outcome": "\ud83d"}}"#;
    let answer = function.invoke(event).await.unwrap();
    assert_eq!(answer["error"]["message"], "There is no such outcome");
}

#[tokio::test]
async fn a_large_call_is_answered_up_to_the_limit() {
    let function = LambdaFunction::new(server().max_request_size(100_000));
    let of_size = |size: usize| {
        let call = call("success");
        format!("{}{call}", " ".repeat(size - call.len()))
    };
    let answer = function.invoke(&of_size(100_000)).await.unwrap();
    assert_eq!(answer["value"], "invoker", "{answer}");
    let answer = function.invoke(&of_size(100_001)).await.unwrap();
    assert_eq!(answer["message"], "The request is too large");
}

#[tokio::test]
async fn a_direct_call_needs_neither_a_route_nor_a_protocol() {
    for server in [
        server().map_router(|_| Router::new()),
        server().protocols([Protocol::Mcp]),
    ] {
        let function = LambdaFunction::new(server);
        let answer = function.invoke(&call("success")).await.unwrap();
        assert_eq!(answer["value"], "invoker", "{answer}");
        let paths = "POST /tools/call,GET /tools,GET /health,DELETE /health";
        for (method, path) in paths.split(',').filter_map(|it| it.split_once(' ')) {
            let event = crate::support::event(method, path, &call("success"));
            let response = function.respond(&event).await.unwrap();
            assert_eq!(response.status, 404, "{path}: {response:?}");
        }
    }
}

#[tokio::test]
async fn a_token_that_nothing_checks_admits_no_call_from_an_agentcore_gateway() {
    let header = AgentCoreUser::Token(HeaderName::from_static("x-token"));
    let server = server().auth(Auth::none()).agentcore_user(header);
    let function = LambdaFunction::new(server.events([EventKind::AgentCore]));
    let context = r#"{"custom": {"bedrockAgentCoreToolName": "t___T_Choose",
        "bedrockAgentCorePropagatedHeaders": {"x-token": "Bearer a"}}}"#;
    let answer = function.invoke_with_context(r#"{"outcome": "success"}"#, context);
    let answer = answer.await.unwrap();
    assert_eq!(answer["isError"], true, "{answer}");
    let text = answer["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("no valid token"), "{text}");
}
