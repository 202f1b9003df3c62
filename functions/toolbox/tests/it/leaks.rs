//! No secret reaches any output of the function: bodies, headers, logs at TRACE, stored data.
//!
//! Every place that can contain a secret contains a marked value, and all output is searched for
//! the marks.

use std::fs;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use test_support::{
    aws::{AwsProxy, emulated},
    marks::{
        JWT, KEY, MARK, Scratch, TWILIO, assert_unmarked, marked_events, search, special_events,
    },
};

use crate::support::toolbox;
use events::Stub;

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn no_event_reveals_a_secret() {
    let (_emulator, proxy) = emulated().await;
    for (name, value) in [
        ("TWILIO_API_KEY", TWILIO),
        ("TOOLS_API_KEY", KEY),
        ("TOOLS_JWT_SECRET", JWT),
        ("no-json", MARK),
    ] {
        proxy.put_secret(name, value).await;
    }
    proxy.create_table("calls").await;
    let stub = Stub::start().await;
    let file = Scratch::new("dotenv");
    let lines = format!("TWILIO_API_KEY={TWILIO}\nTOOLS_API_KEY={KEY}\nTOOLS_JWT_SECRET={JWT}\n");
    fs::write(&file.0, lines).unwrap();
    let broken = Scratch::new("no-dotenv");
    fs::write(&broken.0, MARK).unwrap();
    let mut events = marked_events();
    events.extend(special_events());
    let (url, aws) = (stub.url(), proxy.url());
    let always = [
        ("TOOLS_AUTH", "api-key,jwt"),
        ("TOOLS_METRICS", "cloudwatch"),
        ("TWILIO_URL", &*url),
        ("GMAIL_URL", &*url),
        ("AWS_ENDPOINT_URL", &*aws),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "AKIA0123456789"),
        ("AWS_SECRET_ACCESS_KEY", "aws-Xmark-0123456789"),
        ("AWS_SESSION_TOKEN", "session-Xmark-0123456789"),
        ("TOOLS_BASE_PATH", "/agents"),
    ];
    let [file, broken] = [&file, &broken].map(|it| it.0.to_str().unwrap());
    let configurations = [
        ("keys", vec![("TOOLS_SECRETS_FILE", file)]),
        ("broken", vec![("TOOLS_SECRETS_FILE", broken)]),
        (
            "aws",
            vec![
                ("TOOLS_SECRETS", "secrets-manager"),
                ("TOOLS_IDEMPOTENCY", "dynamodb"),
                ("TOOLS_IDEMPOTENCY_TABLE", "calls"),
            ],
        ),
        (
            "json",
            vec![
                ("TOOLS_AUTH", "none"),
                ("TOOLS_SECRETS", "secrets-manager"),
                ("TOOLS_SECRETS_JSON", "no-json"),
            ],
        ),
        // Calls of anyone, whose outcomes and challenges are stored.
        (
            "open",
            vec![
                ("TOOLS_AUTH", "none"),
                ("TWILIO_API_KEY", TWILIO),
                ("TOOLS_IDEMPOTENCY", "dynamodb"),
                ("TOOLS_IDEMPOTENCY_TABLE", "calls"),
                ("TOOLS_GOOGLE_CLIENT_ID", "client-id"),
                ("TOOLS_GOOGLE_CLIENT_SECRET", "client-Xmark-0123456789"),
                ("TOOLS_OAUTH_KEY", "key-Xmark-0123456789-0123456789-0123"),
                ("TOOLS_OAUTH_TABLE", "calls"),
            ],
        ),
    ];
    for (name, environment) in configurations {
        let environment = [&always[..], &environment].concat();
        let printed = search(name, toolbox(), &events, &environment).await;
        // The secrets were read in all configurations that have them.
        let count = |parts: [&str; 2]| {
            let is_in = |line: &&String| parts.iter().all(|part| line.contains(part));
            printed.iter().filter(is_in).count()
        };
        let sent = count([r#""tool":"SMS.Send""#, r#""outcome":"success""#]);
        assert_eq!(sent > 0, !["broken", "json"].contains(&name), "{name}");
        let is_called_with_jwt = count(["jwt TOOLS_JWT_SECRET user_123", ""]) > 0;
        assert_eq!(
            is_called_with_jwt,
            ["keys", "aws"].contains(&name),
            "{name}"
        );
    }
    assert_table_unmarked(&proxy).await;
    proxy.fail_with(400, "AccessDeniedException", "not authorized");
    let denied = [("TOOLS_AUTH", "none"), ("TOOLS_SECRETS", "secrets-manager")];
    let environment = [&always[..], &denied].concat();
    search("denied", toolbox(), &events, &environment).await;
}

/// Searches the stored data of calls and users, encrypted or not.
async fn assert_table_unmarked(proxy: &AwsProxy) {
    let items = proxy.items("calls").await;
    let is_challenge = |item: &Value| item["id"]["S"].as_str().unwrap().starts_with("challenge#");
    assert!(items.iter().any(is_challenge));
    for item in items {
        let outcome = STANDARD.decode(item["outcome"]["B"].as_str().unwrap_or_default());
        let outcome = String::from_utf8_lossy(&outcome.unwrap()).into_owned();
        assert_unmarked("the table", [outcome, item.to_string()]);
    }
}
