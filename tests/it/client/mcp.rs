//! The MCP client against a tool server.

use std::time::{Duration, Instant};

#[cfg(feature = "jwt")]
use lambda_tools::client::JwtSigner;
use lambda_tools::{
    ToolDefinition,
    client::{
        ClientError, ClientOptions,
        mcp::{CallOutcome, CallRequest, McpClient, McpTool},
    },
};
use serde::Deserialize;
use serde_json::{Value, json};
use test_support::Running;

use super::once;
use crate::tools::program;

#[cfg(feature = "jwt")]
const SECRET: &str = "jwt-secret-of-the-client-0123456789abcdef";

fn client(url: &str) -> McpClient {
    super::mcp(url, once())
}

#[tokio::test]
async fn server_and_tools_are_described() {
    let (_running, url) = Running::serving(&mut program());
    for url in [url.clone(), format!("{url}/"), format!("{url}/mcp")] {
        let client = client(&url);
        let server = client.server().await.unwrap();
        assert_eq!(server.revision, "2026-07-28");
        assert_eq!(server.name.as_deref(), Some("Toolbox"));
        assert_eq!(server.version.as_deref(), Some("0.1.0"));
        let instructions = server.instructions.as_deref();
        assert_eq!(instructions, Some("The tools of the specifications."));

        let tools = client.tools().await.unwrap();
        assert_eq!(tools.len(), 5);
        let tool = |name: &str| -> &McpTool { tools.iter().find(|it| it.name == name).unwrap() };
        let add = tool("Calculator_Add");
        assert_eq!(add.id.as_deref(), Some("Calculator.Add@10.0.0"));
        assert_eq!(add.version.as_deref(), Some("10.0.0"));
        assert_eq!(add.input_schema["properties"]["a"]["type"], "number");
        assert_eq!(add.hints.idempotent, Some(true));
        assert_eq!(tool("Doorbell_Ring").hints.idempotent, None);
        let definition = ToolDefinition::from(add.clone());
        assert_eq!(definition.id, "Calculator_Add", "calls use the name");
        let requirements = &tool("Gmail_GetEmails").requirements;
        assert!(requirements.user_id && requirements.authorization[0].id == "google");
    }
}

#[tokio::test]
async fn every_outcome_is_returned_as_data() {
    let (_running, url) = Running::serving(program().env("TOOLS_SECRETS", "none"));
    let client = client(&url);
    let outcome = async |tool: &str, input: Value| {
        let call = CallRequest::new(tool).input(input);
        client.call(&call).await.unwrap().outcome
    };
    let add = CallRequest::new("Calculator_Add").input(json!({"a": 10, "b": 5}));
    let reply = client.call(&add.call_id("id-1")).await.unwrap();
    assert_eq!((&*reply.call_id, reply.attempts), ("id-1", 1));
    assert_eq!(reply.outcome.value(), Some(json!({"result": 15})));

    let failed = outcome("Doorbell_Ring", json!({"doorbell_id": "doorbell1"})).await;
    let CallOutcome::ToolError(failure) = failed else {
        panic!("{failed:?}")
    };
    let message = "Doorbell ID not found\nids: doorbell42";
    assert!(failure.message.starts_with(message));
    assert!(failure.can_retry);
    assert_eq!(failure.retry_after, Some(Duration::from_millis(500)));

    let wrong = outcome("Calculator_Add", json!({"a": "ten"})).await;
    assert!(
        matches!(&wrong, CallOutcome::ToolError(it)
            if !it.can_retry && it.message.contains("b: Is required")),
        "{wrong:?}"
    );
    for unknown in ["No_Such", "No Such", "Nö_Such", "Calculator.Add"] {
        let outcome = outcome(unknown, json!({})).await;
        assert!(
            matches!(&outcome, CallOutcome::ServerError(it) if it.message.contains(unknown)),
            "{outcome:?}"
        );
    }
    for (tool, input) in [
        ("Gmail_GetEmails", json!({})),
        (
            "SMS_Send",
            json!({"to": "+15005550006", "message": "Hello"}),
        ),
    ] {
        let missing = outcome(tool, input).await;
        assert!(
            matches!(&missing, CallOutcome::ToolError(it)
                if it.message.contains("cannot be called yet")),
            "{missing:?}"
        );
    }
}

#[tokio::test]
async fn a_failed_call_is_retried_after_the_time_it_names() {
    let (_running, url) = Running::serving(&mut program());
    let client = super::mcp(&url, ClientOptions::default().attempts(2));
    let call = CallRequest::new("Doorbell_Ring").input(json!({"doorbell_id": "doorbell1"}));
    let begun = Instant::now();
    let reply = client.call(&call).await.unwrap();
    assert_eq!(reply.attempts, 2);
    assert!(begun.elapsed() >= Duration::from_millis(500));
    assert!(matches!(reply.outcome, CallOutcome::ToolError(_)));
}

#[tokio::test]
async fn a_call_with_the_same_id_is_a_replay() {
    let (_running, url) = Running::serving(&mut program());
    let ring = CallRequest::new("Doorbell_Ring").input(json!({"doorbell_id": "doorbell42"}));
    let ring = ring.call_id("ring-é");
    for is_replay in [false, true] {
        let reply = client(&url).call(&ring).await.unwrap();
        assert_eq!(reply.is_replay, is_replay);
        assert_eq!(reply.call_id, "ring-é");
    }
}

#[tokio::test]
async fn a_typed_call_returns_a_value_or_an_error() {
    #[derive(Deserialize)]
    struct Now {
        timestamp: String,
    }
    let (_running, url) = Running::serving(&mut program());
    let client = client(&url);
    let add = |input| CallRequest::new("Calculator_Add").input(input);
    let sum: f64 = client.run(&add(json!({"a": 1, "b": 0.5}))).await.unwrap();
    assert!((sum - 1.5).abs() < f64::EPSILON);
    let ring = CallRequest::new("Doorbell_Ring").input(json!({"doorbell_id": "doorbell42"}));
    let (): () = client.run(&ring).await.unwrap();
    let now = CallRequest::new("System_GetTimestamp");
    let now = client.run::<Now>(&now).await.unwrap();
    assert!(now.timestamp.contains('T'));
    let error = client.run::<f64>(&add(json!({"a": 1}))).await.unwrap_err();
    assert!(error.to_string().contains("b: Is required"), "{error}");
    let error = client.run::<bool>(&add(json!({"a": 1, "b": 2}))).await;
    assert!(matches!(error, Err(ClientError::Unreadable(_))));
}

/// Programs call tools in tasks, one for each of their users.
#[tokio::test]
async fn clones_call_tools_at_once_and_after_their_server_has_restarted() {
    let (running, url) = Running::serving(&mut program());
    let client = super::mcp(&url, once());
    let add = |a: u32| CallRequest::new("Calculator_Add").input(json!({"a": a, "b": 1}));
    let calls = (0..50).map(|number| {
        let (client, call) = (client.clone(), add(number));
        tokio::spawn(async move { client.run::<f64>(&call).await.unwrap() })
    });
    for (number, call) in (0..50).zip(calls.collect::<Vec<_>>()) {
        let sum = call.await.unwrap();
        assert!((sum - f64::from(number + 1)).abs() < f64::EPSILON);
    }
    drop(running);
    let error = client.call(&add(1)).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable(_)), "{error}");
}

#[cfg(feature = "jwt")]
#[tokio::test]
async fn api_keys_and_jwts_are_sent() {
    let (_running, url) = Running::serving(
        program()
            .env("TOOLS_AUTH", "api-key,jwt")
            .env("TOOLS_JWT_SECRET", SECRET)
            .env("TOOLS_API_KEY", "key-of-the-client"),
    );
    let signer = |secret| JwtSigner::signed_with(secret).subject("user-1");
    for accepted in [
        once().api_key("key-of-the-client"),
        once().jwt(signer(SECRET)),
    ] {
        let client = super::mcp(&url, accepted);
        assert_eq!(client.tools().await.unwrap().len(), 5);
    }
    for rejected in [
        once(),
        once().api_key("another-key"),
        once().jwt(signer("another-secret-0123456789abcdef012345")),
    ] {
        let client = super::mcp(&url, rejected);
        let call = CallRequest::new("Calculator_Add");
        for error in [
            client.server().await.unwrap_err(),
            client.tools().await.unwrap_err(),
            client.call(&call).await.unwrap_err(),
        ] {
            assert!(matches!(error, ClientError::Unauthorized { .. }), "{error}");
        }
    }
}

#[tokio::test]
async fn what_mcp_cannot_carry_is_an_error_before_anything_is_sent() {
    let nowhere = client("http://127.0.0.1:1/mcp");
    let call = || CallRequest::new("SMS_Send");
    for call in [
        call().user_id("marked"),
        call().token("google", "marked"),
        call().secret("KEY", "marked"),
        call().trace_id("marked"),
        call().input("marked"),
    ] {
        let error = nowhere.call(&call).await.unwrap_err();
        assert!(matches!(error, ClientError::Unsupported(_)), "{error}");
        assert!(!format!("{error} {error:?}").contains("marked"));
    }
    let error = nowhere.call(&call()).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable(_)), "{error}");
    // The other way round: OXP has no responses to requests for input.
    let oxp = super::oxp("http://127.0.0.1:1", once());
    let error = oxp.call(&call().request_state(Some("s".into()))).await;
    assert!(matches!(error, Err(ClientError::Unsupported(_))));
}

#[tokio::test]
async fn a_misconfigured_client_returns_an_error() {
    for url in [
        "tools.example",
        "ftp://t/mcp",
        "http://a:b@t/mcp",
        "http://t/mcp?q",
    ] {
        let error = McpClient::new(url, once());
        assert!(matches!(error, Err(ClientError::Setup(_))), "{url}");
    }
    let client = super::mcp("http://127.0.0.1:1", once().api_key("line\nfeed"));
    assert!(matches!(client.tools().await, Err(ClientError::Setup(_))));
}

#[tokio::test]
async fn credentials_are_not_printed() {
    let (_running, url) = Running::serving(&mut program());
    let client = super::mcp(&url, once().api_key("marked-key"));
    client.server().await.unwrap();
    let call = CallRequest::new("A_B").request_state(Some("marked-state".into()));
    let printed = format!("{client:?} {call:?}");
    assert!(!printed.contains("marked"), "{printed}");
}
