//! What the programs say with AWS's services, to browsers and to Claude Code.

use serde_json::{Value, json};
use test_support::{
    aws::{AwsProxy, CREDENTIALS, Emulator},
    lambda::{LONG, invoke_on},
};

use super::programs::{Said, call, text_of};
use crate::{
    long::claude_code::ClaudeCode,
    support::{Running, toolbox},
};

/// Returns the response to a call of a server with these stores.
async fn with_stores(proxy: &AwsProxy, stores: &[(&str, &str)]) -> String {
    let mut command = toolbox();
    command.envs(CREDENTIALS).envs(stores.iter().copied());
    let (_running, url) = Running::serving(command.env("AWS_ENDPOINT_URL", proxy.url()));
    let input = json!({"to": "+15005550006", "message": "Hi"});
    let tool = match stores[0].0 {
        "TOOLS_SECRETS" => "SMS.Send",
        _ => return call(&url, "Doorbell.Ring", json!({"doorbell_id": "doorbell42"})).await,
    };
    call(&url, tool, input).await
}

pub(super) async fn aws() -> Said {
    let emulator = Emulator::start().await;
    let proxy = emulator.proxy().await;
    let secrets = [("TOOLS_SECRETS", "secrets-manager")];
    let table = [
        ("TOOLS_IDEMPOTENCY", "dynamodb"),
        ("TOOLS_IDEMPOTENCY_TABLE", "nowhere"),
    ];
    let mut said = vec![with_stores(&proxy, &table).await];
    // The emulator allows everything.
    let denied = |what: &str| proxy.fail_with(400, "AccessDeniedException", what);
    denied("User: arn:aws:sts::1:assumed-role/r/f is not authorized to perform this");
    said.push(with_stores(&proxy, &table).await);
    said.push(with_stores(&proxy, &secrets).await);
    denied("Access to KMS is not allowed");
    said.push(with_stores(&proxy, &secrets).await);
    said
}

pub(super) async fn on_lambda() -> Said {
    let events = [
        // The console's test event.
        json!({"key1": "value1", "key2": "value2", "key3": "value3"}),
        json!({"tool_id": "Calculator.Add", "input": {"a": 1, "b": 2}}),
    ];
    let environment = [
        ("TOOLS_AUTH", "none"),
        ("TOOLS_EVENTS", "function-url"),
        ("TOOLS_QUOTAS", "all=9/day"),
    ];
    let events = events.map(|event| (event, LONG));
    let (reports, mut said) = invoke_on(&mut toolbox(), &events, &environment).await;
    said.extend(reports.iter().map(|(_, answer, _)| answer.to_string()));
    said
}

/// Starts a server where people sign in. Nothing listens at its provider.
fn with_sign_in() -> (Running, String) {
    let mut command = toolbox();
    command.envs([
        ("TOOLS_AUTH", "sign-in"),
        ("TOOLS_SIGN_IN_PROVIDER", "openid"),
        ("TOOLS_SIGN_IN_ISSUER", "http://127.0.0.1:9"),
        ("TOOLS_SIGN_IN_CLIENT_ID", "server"),
        ("TOOLS_SIGN_IN_CLIENT_SECRET", "secret-0123456789"),
        ("TOOLS_SIGN_IN_ALLOW", "anyone"),
        ("TOOLS_OAUTH_KEY", "a-key-of-this-server-0123456789abcdef"),
    ]);
    Running::serving(&mut command)
}

pub(super) async fn sign_in_pages() -> Said {
    let (_running, url) = with_sign_in();
    let client = reqwest::Client::new();
    let registration = json!({"redirect_uris": ["http://localhost/callback"]});
    let registered = client
        .post(format!("{url}/register"))
        .header("content-type", "application/json")
        .body(registration.to_string());
    let registered: Value = serde_json::from_str(&text_of(registered).await).unwrap();
    let authorize = |id: &str| {
        let redirect = ("redirect_uri", "http://localhost/other");
        let query = [("client_id", id), ("response_type", "code"), redirect];
        client.get(format!("{url}/authorize")).query(&query)
    };
    let callback = format!("{url}/authorization/openid/callback?code=1&state=sign-in.1");
    vec![
        text_of(authorize(registered["client_id"].as_str().unwrap())).await,
        text_of(authorize("of-another-server")).await,
        text_of(client.get(callback)).await,
    ]
}

pub(super) async fn claude_code() -> Said {
    let (_running, url) = with_sign_in();
    let claude = ClaudeCode::new("troubleshooting");
    let state =
        |url: &str| claude.state_after(&format!("claude mcp add --transport http tools {url}/mcp"));
    vec![state(&url), state("http://127.0.0.1:9")]
}
