//! MCP's rules for requests, besides those in the recorded events.

use lambda_tools::{Failure, Server, Tool, Toolkit, testing::LambdaFunction};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{event, function};

/// Takes nothing.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

async fn nothing(_: Nothing) -> Result<(), Failure> {
    Ok(())
}

fn server() -> Server {
    Server::new(Toolkit::new([Tool::new("T.Nothing@1.0.0", nothing)]).unwrap())
}

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// Posts a body. Returns the status and the code of the error, if there is one.
async fn post(function: &LambdaFunction, origin: &str, body: &str) -> (u16, Value) {
    let mut event: Value = serde_json::from_str(&event("POST", "/mcp", body)).unwrap();
    event["headers"]["origin"] = json!(origin);
    event["requestContext"]["domainName"] = json!("tools.example");
    let response = function.respond(&event.to_string()).await.unwrap();
    (response.status, response.body["error"]["code"].clone())
}

#[tokio::test]
async fn only_known_web_pages_may_call() {
    let forbidden = (403, json!(-32600));
    let served = (200, Value::Null);
    let allowing = |origin: &str| server().allowed_origins([origin]);
    let public = || server().public_url("https://public.example/agents");
    for (server, origin, answer) in [
        (server(), "https://tools.example", &served),
        (server(), "https://app.example", &forbidden),
        (server(), "null", &forbidden),
        (
            allowing("https://app.example"),
            "https://app.example",
            &served,
        ),
        (
            allowing("https://app.example"),
            "https://other.example",
            &forbidden,
        ),
        (allowing("*"), "null", &served),
        (public(), "https://public.example", &served),
        (public(), "https://tools.example", &served),
    ] {
        assert_eq!(
            post(&function(server), origin, PING).await,
            *answer,
            "{origin}"
        );
    }
}

#[tokio::test]
async fn unknown_web_pages_get_only_what_is_open() {
    let function = function(server());
    for (path, status) in [
        ("/tools", 403),
        ("/opentool/version", 403),
        ("/health", 200),
    ] {
        let mut event: Value = serde_json::from_str(&event("GET", path, "")).unwrap();
        event["headers"]["origin"] = json!("https://app.example");
        let response = function.respond(&event.to_string()).await.unwrap();
        assert_eq!(response.status, status, "{path}: {response:?}");
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_gets_a_413() {
    let function = function(server().max_request_size(PING.len()));
    let origin = "https://tools.example";
    assert_eq!(post(&function, origin, PING).await, (200, Value::Null));
    let larger = format!("{PING} ");
    assert_eq!(post(&function, origin, &larger).await, (413, json!(-32600)));
}
