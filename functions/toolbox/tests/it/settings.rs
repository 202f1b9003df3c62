//! The owner's choices in the environment of the compiled program.

use std::{
    process::{Command, Output},
    time::SystemTime,
};

use serde_json::{Value, json};

use crate::support::{Running, toolbox};

fn ends_with(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command.env("PORT", "0").output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn on_lambda_a_function_without_a_choice_does_not_start() {
    let mut command = toolbox();
    command
        .env("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:9")
        .env("AWS_LAMBDA_FUNCTION_NAME", "toolbox")
        .env("AWS_LAMBDA_FUNCTION_VERSION", "1")
        .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128");
    for value in [None, Some("")] {
        if let Some(value) = value {
            command.env("TOOLS_AUTH", value);
        }
        let (code, text) = ends_with(&mut command);
        assert_eq!(code, Some(1));
        for said in [
            "nothing says who may call this function",
            "TOOLS_AUTH=api-key",
            "TOOLS_AUTH=jwt",
            "TOOLS_AUTH=none",
            "Server::auth",
        ] {
            assert!(text.contains(said), "{text}");
        }
    }
}

#[test]
fn a_choice_that_cannot_be_understood_ends_the_start() {
    for (choices, says) in [
        (
            &[("TOOLS_IDEMPOTENCY", "redis")][..],
            "has to be memory, dynamodb or none",
        ),
        (
            &[("TOOLS_IDEMPOTENCY", "dynamodb")],
            "needs the name of a table in TOOLS_IDEMPOTENCY_TABLE",
        ),
        (
            &[("TOOLS_IDEMPOTENCY_SECONDS", "1h")],
            "has to be a number of seconds",
        ),
        (
            &[("TOOLS_IDEMPOTENCY_REQUIRED", "maybe")],
            "has to be yes or no",
        ),
        (&[("TOOLS_AUTH", "api-keys")], "there is no 'api-keys'"),
        (
            &[("TOOLS_AUTH", "none,jwt")],
            "none leaves nothing to ask for",
        ),
        (&[("TOOLS_AUTH", ",")], "there is no ''"),
        (
            &[("TOOLS_SECRETS", "vault")],
            "environment, secrets-manager or none",
        ),
        (
            &[("TOOLS_SECRETS_CACHE_SECONDS", "soon")],
            "has to be a number of seconds",
        ),
        (
            &[("TOOLS_SECRETS_CACHE_SECONDS", "-1")],
            "has to be a number of seconds",
        ),
        (
            &[("TOOLS_SECRETS_FROM_CALLS", "maybe")],
            "has to be yes or no",
        ),
        (
            &[
                ("TOOLS_SECRETS", "secrets-manager"),
                ("TOOLS_SECRETS_PREFIX", "prod/"),
                ("TOOLS_SECRETS_JSON", "prod/tools"),
            ],
            "exclude each other",
        ),
        (
            &[
                ("TOOLS_GOOGLE_CLIENT_ID", "id"),
                ("TOOLS_PUBLIC_URL", "http://tools.example"),
            ],
            "has to be an https:// URL",
        ),
        (
            &[
                ("TOOLS_GOOGLE_CLIENT_ID", "id"),
                ("TOOLS_GOOGLE_ISSUER", "http://accounts.example"),
            ],
            "the provider 'google': 'http://accounts.example' has to be an https:// URL",
        ),
        (
            &[
                ("TOOLS_SLACK_CLIENT_ID", "id"),
                ("TOOLS_OAUTH_CHECKS", "closed"),
            ],
            "has to be open or authenticated",
        ),
        (
            &[
                ("TOOLS_GITHUB_CLIENT_ID", "id"),
                ("TOOLS_OAUTH_KEY_IDS", ","),
            ],
            "no secret is named that encrypts",
        ),
        (
            &[
                ("TOOLS_MICROSOFT_CLIENT_ID", "id"),
                ("TOOLS_AUTH", "none"),
                ("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:9"),
            ],
            "TOOLS_OAUTH_TABLE names one of DynamoDB",
        ),
    ] {
        let (code, text) = ends_with(toolbox().envs(choices.iter().copied()));
        assert_eq!(code, Some(1), "{choices:?}");
        assert!(text.contains(says), "{choices:?}: {text}");
    }
}

async fn status(url: &str, key: Option<&str>) -> u16 {
    let mut request = reqwest::Client::new().get(format!("{url}/tools"));
    if let Some(key) = key {
        request = request.header("oxp-api-key", key);
    }
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn a_key_in_the_environment_closes_the_local_server() {
    let key = ("TOOLS_API_KEY", "key-of-today");
    let mut command = toolbox();
    let running = Running::start(command.envs([key, ("TOOLS_AUTH", "api-key"), ("PORT", "0")]));
    let line = running.line_with("Serving tools on", 20);
    let url = line.split_once("on ").unwrap().1.to_owned();
    running.line_with("Callers need credentials", 5);
    running.line_with("-H 'Authorization: Bearer YOUR_KEY'", 5);
    assert_eq!(status(&url, None).await, 401);
    assert_eq!(status(&url, Some("key-of-tomorrow")).await, 401);
    assert_eq!(status(&url, Some("key-of-today")).await, 200);
    let health = reqwest::get(format!("{url}/health")).await.unwrap();
    assert_eq!(health.status().as_u16(), 200);
    let body = json!({"tool_id": "Calculator.Add", "input": {"a": 1, "b": 2}});
    let call = reqwest::Client::new().post(format!("{url}/tools/call"));
    let call = call.bearer_auth("key-of-today").body(body.to_string());
    let answer: Value = call.send().await.unwrap().json().await.unwrap();
    assert_eq!(answer["value"], 3);
    let line = running.line_with("Calculator.Add", 5);
    assert!(line.contains("key TOOLS_API_KEY"), "{line}");
}

#[tokio::test]
async fn keys_can_be_named_and_come_from_a_file_that_may_change() {
    let file = std::env::temp_dir().join(format!("keys-{}", std::process::id()));
    std::fs::write(&file, "PARTNER=key-of-today\n").unwrap();
    let mut command = toolbox();
    command
        .env("TOOLS_SECRETS_FILE", &file)
        .env("TOOLS_AUTH", "api-key")
        .env("TOOLS_API_KEY_IDS", "PARTNER, PARTNER_TOMORROW");
    let (_running, url) = Running::serving(&mut command);
    assert_eq!(status(&url, Some("key-of-today")).await, 200);
    assert_eq!(status(&url, Some("key-of-tomorrow")).await, 401);
    std::fs::write(&file, "PARTNER_TOMORROW=key-of-tomorrow\n").unwrap();
    assert_eq!(status(&url, Some("key-of-tomorrow")).await, 200);
    assert_eq!(status(&url, Some("key-of-today")).await, 401);
    std::fs::remove_file(&file).unwrap();
}

#[tokio::test]
async fn locally_everybody_may_call_and_a_line_says_so() {
    let mut command = toolbox();
    let running = Running::start(command.env("PORT", "0"));
    let line = running.line_with("Serving tools on", 20);
    running.line_with("Everybody on this machine may call", 5);
    let url = line.split_once("on ").unwrap().1.to_owned();
    assert_eq!(status(&url, None).await, 200);
}

#[tokio::test]
async fn tokens_are_taken_for_the_audiences_that_are_named() {
    let secret = "jwt-secret-of-today-0123456789abcdef";
    let claims = |audience: Option<&str>| {
        let since = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap();
        let mut claims = json!({"sub": "user_123", "exp": since.as_secs() + 60});
        if let Some(audience) = audience {
            claims["aud"] = audience.into();
        }
        let key = jsonwebtoken::EncodingKey::from_secret(secret.as_bytes());
        jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).unwrap()
    };
    for (audiences, audience, status) in [
        ("", None, 200),
        ("", Some("https://tools.example"), 401),
        (
            "https://a.example, https://tools.example",
            Some("https://tools.example"),
            200,
        ),
        ("https://a.example", Some("https://tools.example"), 401),
        ("https://a.example", None, 401),
    ] {
        let mut command = toolbox();
        command
            .env("TOOLS_AUTH", "jwt")
            .env("TOOLS_JWT_SECRET_IDS", "ANOTHER,SIGNS")
            .env("TOOLS_JWT_AUDIENCES", audiences)
            .env("SIGNS", format!("{secret}\n"));
        let (running, url) = Running::serving(&mut command);
        let request = reqwest::Client::new().get(format!("{url}/tools"));
        let answer = request.bearer_auth(claims(audience)).send().await.unwrap();
        assert_eq!(
            answer.status().as_u16(),
            status,
            "{audiences:?} {audience:?}"
        );
        if status == 200 {
            running.line_with("jwt SIGNS user_123", 5);
        }
    }
}

#[tokio::test]
async fn the_owner_can_turn_off_what_calls_bring() {
    let call = json!({"tool_id": "SMS.Send", "input": {"to": "+15005550006", "message": "Hi"},
                      "context": {"secrets": [{"id": "TWILIO_API_KEY", "value": "a:b:c"}]}});
    for (choice, status) in [("yes", 200), ("no", 400)] {
        let mut command = toolbox();
        command
            .env("TOOLS_SECRETS_FROM_CALLS", choice)
            .env("TOOLS_SECRETS_FILE", "/nowhere");
        let (_running, url) = Running::serving(&mut command);
        let request = reqwest::Client::new().post(format!("{url}/tools/call"));
        let answer = request.body(call.to_string()).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{choice}");
    }
}

#[tokio::test]
async fn the_log_tells_a_wrong_key_from_a_server_without_any() {
    for (key, says) in [
        (None, "no API key is there to compare with"),
        (Some(""), "no API key is there to compare with"),
        (Some("key-0123456789"), "the API key is not valid"),
    ] {
        let mut command = toolbox();
        command.env("TOOLS_AUTH", "api-key");
        if let Some(key) = key {
            command.env("TOOLS_API_KEY", key);
        }
        let (running, url) = Running::serving(&mut command);
        let sent = reqwest::Client::new().get(format!("{url}/tools"));
        let answer = sent.bearer_auth("another-key").send().await.unwrap();
        assert_eq!(answer.status(), 401);
        // To callers it is the same.
        assert!(!answer.text().await.unwrap().contains(says));
        let line = running.line_with("unauthenticated", 5);
        assert!(line.contains(says), "{line}");
    }
}
