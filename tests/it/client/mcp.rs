//! The MCP client against a tool server, in both eras.

use std::time::{Duration, Instant};

#[cfg(feature = "jwt")]
use lambda_tools::client::JwtSigner;
use lambda_tools::{
    ToolDefinition,
    client::{
        ClientError,
        mcp::{CallOutcome, CallRequest, McpClient, McpRevision, McpTool},
    },
};
use serde::Deserialize;
use serde_json::{Value, json};
use test_support::Running;

use crate::tools::program;

#[cfg(feature = "jwt")]
const SECRET: &str = "jwt-secret-of-the-client-0123456789abcdef";

fn without_retries(url: &str) -> McpClient {
    McpClient::new(url).unwrap().attempts(1)
}

/// Clients for both eras, and the revision that each negotiates.
fn clients(url: &str) -> Vec<(McpClient, McpRevision)> {
    let pinned = [
        McpRevision::V2024_11_05,
        McpRevision::V2025_06_18,
        McpRevision::V2025_11_25,
        McpRevision::V2026_07_28,
    ];
    let pinned = pinned.map(|it| (without_retries(url).revision(it), it));
    let mut clients = Vec::from(pinned);
    clients.push((without_retries(url), McpRevision::V2026_07_28));
    clients
}

async fn outcome(client: &McpClient, tool: &str, input: Value) -> CallOutcome {
    let call = CallRequest::new(tool).input(input);
    client.call(&call).await.unwrap().outcome
}

#[tokio::test]
async fn server_and_tools_are_described_in_both_eras() {
    let (_running, url) = Running::serving(&mut program());
    for url in [url.clone(), format!("{url}/"), format!("{url}/mcp")] {
        for (client, revision) in clients(&url) {
            let server = client.server().await.unwrap();
            assert_eq!(server.revision, revision);
            assert_eq!(server.name.as_deref(), Some("Toolbox"));
            assert_eq!(server.version.as_deref(), Some("0.1.0"));
            let instructions = server.instructions.as_deref();
            assert_eq!(instructions, Some("The tools of the specifications."));

            let tools = client.tools().await.unwrap();
            assert_eq!(tools.len(), 5, "{revision:?}");
            let tool =
                |name: &str| -> &McpTool { tools.iter().find(|it| it.name == name).unwrap() };
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
}

#[tokio::test]
async fn every_outcome_is_returned_as_data_in_both_eras() {
    let (_running, url) = Running::serving(program().env("TOOLS_SECRETS", "none"));
    for (client, revision) in clients(&url) {
        let id = format!("id-{revision:?}-{:?}", Instant::now());
        let add = CallRequest::new("Calculator_Add").input(json!({"a": 10, "b": 5}));
        let reply = client.call(&add.call_id(&id)).await.unwrap();
        assert_eq!((reply.call_id, reply.attempts), (id, 1));
        assert_eq!(reply.outcome.value(), Some(json!({"result": 15})));

        let failed = outcome(
            &client,
            "Doorbell_Ring",
            json!({"doorbell_id": "doorbell1"}),
        )
        .await;
        let CallOutcome::ToolError(failure) = failed else {
            panic!("{failed:?}")
        };
        assert!(
            failure
                .message
                .starts_with("Doorbell ID not found\nids: doorbell42")
        );
        assert!(failure.can_retry);
        assert_eq!(failure.retry_after, Some(Duration::from_millis(500)));

        let wrong = outcome(&client, "Calculator_Add", json!({"a": "ten"})).await;
        assert!(
            matches!(&wrong, CallOutcome::ToolError(it)
                if !it.can_retry && it.message.contains("b: Is required")),
            "{wrong:?}"
        );
        let no_object = outcome(&client, "Calculator_Add", json!([1, 2])).await;
        assert!(
            matches!(no_object, CallOutcome::ServerError(_)),
            "{no_object:?}"
        );
        for unknown in ["No_Such", "No Such", "Nö_Such", "Calculator.Add"] {
            let outcome = outcome(&client, unknown, json!({})).await;
            let CallOutcome::ServerError(error) = &outcome else {
                panic!("{outcome:?}")
            };
            assert!(error.message.contains(unknown), "{error:?}");
        }
        for (tool, input) in [
            ("Gmail_GetEmails", json!({})),
            (
                "SMS_Send",
                json!({"to": "+15005550006", "message": "Hello"}),
            ),
        ] {
            let missing = outcome(&client, tool, input).await;
            assert!(
                matches!(&missing, CallOutcome::ToolError(it)
                    if it.message.contains("cannot be called yet")),
                "{missing:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_failed_call_is_retried_after_the_time_it_names() {
    let (_running, url) = Running::serving(&mut program());
    for (client, _) in clients(&url) {
        let call = CallRequest::new("Doorbell_Ring").input(json!({"doorbell_id": "doorbell1"}));
        let begun = Instant::now();
        let reply = client.attempts(2).call(&call).await.unwrap();
        assert_eq!(reply.attempts, 2);
        assert!(begun.elapsed() >= Duration::from_millis(500));
        assert!(matches!(reply.outcome, CallOutcome::ToolError(_)));
    }
}

#[tokio::test]
async fn a_call_with_the_same_id_is_a_replay() {
    let (_running, url) = Running::serving(&mut program());
    let ring = CallRequest::new("Doorbell_Ring").input(json!({"doorbell_id": "doorbell42"}));
    let ring = ring.call_id("ring-é");
    for (number, (client, _)) in clients(&url).into_iter().enumerate() {
        let reply = client.call(&ring).await.unwrap();
        assert_eq!(reply.is_replay, number > 0, "one id, whatever the era");
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
    for (client, _) in clients(&url) {
        let add = |input| CallRequest::new("Calculator_Add").input(input);
        let sum: f64 = client.run(&add(json!({"a": 1, "b": 0.5}))).await.unwrap();
        assert!((sum - 1.5).abs() < f64::EPSILON);
        let ring = CallRequest::new("Doorbell_Ring").input(json!({"doorbell_id": "doorbell42"}));
        let (): () = client.run(&ring).await.unwrap();
        let now = CallRequest::new("System_GetTimestamp");
        assert!(
            client
                .run::<Now>(&now)
                .await
                .unwrap()
                .timestamp
                .contains('T')
        );
        let error = client.run::<f64>(&add(json!({"a": 1}))).await.unwrap_err();
        assert!(error.to_string().contains("b: Is required"), "{error}");
        let error = client.run::<bool>(&add(json!({"a": 1, "b": 2}))).await;
        assert!(matches!(error, Err(ClientError::Unreadable(_))));
    }
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
    for (client, _) in clients(&url) {
        for accepted in [
            client.clone().api_key("key-of-the-client"),
            client
                .clone()
                .jwt(JwtSigner::signed_with(SECRET).subject("user-1")),
        ] {
            assert_eq!(accepted.tools().await.unwrap().len(), 5);
        }
        let other = JwtSigner::signed_with("another-secret-0123456789abcdef012345");
        for rejected in [
            client.clone(),
            client.clone().api_key("another-key"),
            client.clone().jwt(other.subject("user-1")),
        ] {
            let call = CallRequest::new("Calculator_Add");
            for error in [
                rejected.server().await.unwrap_err(),
                rejected.tools().await.unwrap_err(),
                rejected.call(&call).await.unwrap_err(),
            ] {
                assert!(matches!(error, ClientError::Unauthorized { .. }), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn what_mcp_cannot_carry_is_an_error_before_anything_is_sent() {
    let nowhere = without_retries("http://127.0.0.1:1/mcp");
    let call = || CallRequest::new("SMS_Send");
    for call in [
        call().user_id("marked"),
        call().token("google", "marked"),
        call().secret("KEY", "marked"),
        call().trace_id("marked"),
    ] {
        let error = nowhere.call(&call).await.unwrap_err();
        assert!(matches!(error, ClientError::Unsupported(_)), "{error}");
        assert!(!format!("{error} {error:?}").contains("marked"));
    }
    let error = nowhere.call(&call()).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable(_)), "{error}");
    // The other way round: OXP has no responses to requests for input.
    let oxp = lambda_tools::client::oxp::OxpClient::new("http://127.0.0.1:1").unwrap();
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
        let error = McpClient::new(url);
        assert!(matches!(error, Err(ClientError::Setup(_))), "{url}");
    }
    let client = without_retries("http://127.0.0.1:1").api_key("line\nfeed");
    assert!(matches!(client.tools().await, Err(ClientError::Setup(_))));
}

#[test]
fn credentials_are_not_printed() {
    let call = CallRequest::new("A_B").request_state(Some("marked-state".into()));
    let client = without_retries("http://tools.example").api_key("marked-key");
    let printed = format!("{client:?} {call:?}");
    assert!(!printed.contains("marked"), "{printed}");
}
