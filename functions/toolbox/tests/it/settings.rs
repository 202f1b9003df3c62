//! The settings in the environment of the compiled program.

mod startup;

use std::{
    process::{Command, Output},
    time::SystemTime,
};

use serde_json::{Value, json};
use test_support::issuer::{Algorithm, Issuer, URL};

use crate::support::{Running, toolbox};

fn exit_of(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command.env("PORT", "0").output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn on_lambda_a_function_that_does_not_set_who_may_call_does_not_start() {
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
        let (code, text) = exit_of(&mut command);
        assert_eq!(code, Some(1));
        for part in [
            "no setting says who may call this function",
            "TOOLS_AUTH=api-key",
            "TOOLS_AUTH=jwt",
            "TOOLS_AUTH=none",
            "Server::auth",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}

#[test]
fn an_invalid_quota_or_store_of_calls_fails_at_start_up() {
    for (settings, message) in [
        (
            &[("TOOLS_QUOTAS", "all=9/day,caller=9/week")][..],
            "TOOLS_QUOTAS has 'caller=9/week', but a quota is",
        ),
        (
            &[("TOOLS_QUOTAS", "tool:SMS.Sent=9/day")],
            "'SMS.Sent', which is not a tool of this server",
        ),
        (
            &[("TOOLS_QUOTAS", "user+caller=9/day, caller+user=5/day")],
            "the same subject and window",
        ),
        (
            &[
                ("TOOLS_QUOTAS", "all=9/day"),
                ("TOOLS_QUOTAS_REQUIRED", "1"),
            ],
            "yes or no",
        ),
        (
            &[("TOOLS_IDEMPOTENCY", "redis")],
            "memory, dynamodb or none",
        ),
        (
            &[("TOOLS_IDEMPOTENCY", "dynamodb")],
            "TOOLS_IDEMPOTENCY_TABLE",
        ),
        (
            &[("TOOLS_IDEMPOTENCY_SECONDS", "1h")],
            "a number of seconds",
        ),
        (&[("TOOLS_IDEMPOTENCY_REQUIRED", "maybe")], "yes or no"),
    ] {
        let (code, text) = exit_of(toolbox().envs(settings.iter().copied()));
        assert_eq!(code, Some(1), "{settings:?}");
        assert!(text.contains(message), "{text}");
    }
}

#[test]
fn an_invalid_setting_fails_at_start_up() {
    for (settings, message) in [
        (&[("TOOLS_AUTH", "api-keys")][..], "'api-keys' is unknown"),
        (&[("TOOLS_AUTH", "none,jwt")], "none cannot be combined"),
        (&[("TOOLS_AUTH", ",")], "'' is unknown"),
        (
            &[("TOOLS_EVENTS", "direct,sqs")],
            "TOOLS_EVENTS has 'sqs', but may only have rest-api, ",
        ),
        (&[("TOOLS_EVENTS", " , ")], "TOOLS_EVENTS has ' '"),
        (
            &[
                ("TOOLS_AGENTCORE_TOKEN_HEADER", "a"),
                ("TOOLS_AUTH", "gateway"),
            ],
            "nothing checks the token",
        ),
        (
            &[("TOOLS_AGENTCORE_USER_HEADER", "a b")],
            "TOOLS_AGENTCORE_USER_HEADER is not the name of a header",
        ),
        (
            &[("TOOLS_AGENTCORE_TOKEN_HEADER", "x-token")],
            "nothing checks the token",
        ),
        (
            &[("TOOLS_SECRETS", "vault")],
            "environment, parameter-store, secrets-manager or none",
        ),
        (
            &[("TOOLS_SECRETS", "parameter-store")],
            "TOOLS_SECRETS=parameter-store needs the cargo feature 'parameter-store'",
        ),
        (
            &[("TOOLS_SECRETS_CACHE_SECONDS", "soon")],
            "a number of seconds",
        ),
        (
            &[("TOOLS_SECRETS_CACHE_SECONDS", "-1")],
            "a number of seconds",
        ),
        (&[("TOOLS_SECRETS_FROM_CALLS", "maybe")], "yes or no"),
        (
            &[
                ("TOOLS_SECRETS", "secrets-manager"),
                ("TOOLS_SECRETS_PREFIX", "prod/"),
                ("TOOLS_SECRETS_JSON", "prod/tools"),
            ],
            "mutually exclusive",
        ),
        (
            &[
                ("TOOLS_GOOGLE_CLIENT_ID", "id"),
                ("TOOLS_PUBLIC_URL", "http://tools.example"),
            ],
            "must be an https:// URL",
        ),
        (
            &[
                ("TOOLS_GOOGLE_CLIENT_ID", "id"),
                ("TOOLS_GOOGLE_ISSUER", "http://accounts.example"),
            ],
            "the provider 'google': 'http://accounts.example' must be an https:// URL",
        ),
        (
            &[
                ("TOOLS_SLACK_CLIENT_ID", "id"),
                ("TOOLS_OAUTH_CHECKS", "closed"),
            ],
            "must be open or authenticated",
        ),
        (
            &[
                ("TOOLS_GITHUB_CLIENT_ID", "id"),
                ("TOOLS_OAUTH_KEY_IDS", ","),
            ],
            "no secret is configured to encrypt",
        ),
        (
            &[
                ("TOOLS_MICROSOFT_CLIENT_ID", "id"),
                ("TOOLS_AUTH", "none"),
                ("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:9"),
            ],
            "set TOOLS_OAUTH_TABLE",
        ),
    ] {
        let (code, text) = exit_of(toolbox().envs(settings.iter().copied()));
        assert_eq!(code, Some(1), "{settings:?}");
        assert!(text.contains(message), "{settings:?}: {text}");
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
async fn an_api_key_in_the_environment_protects_the_local_server() {
    let key = ("TOOLS_API_KEY", "key-of-today");
    let mut command = toolbox();
    let running = Running::start(command.envs([key, ("TOOLS_AUTH", "api-key"), ("PORT", "0")]));
    let line = running.line_with("Serving tools on", 20);
    let url = line.split_once("on ").unwrap().1.to_owned();
    running.line_with("Callers need credentials", 5);
    running.line_with("-H \"Authorization: Bearer $TOOLS_API_KEY\"", 5);
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
async fn keys_can_be_named_and_come_from_a_file_that_changes() {
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
async fn locally_anyone_may_call_and_a_log_line_says_so() {
    let mut command = toolbox();
    let running = Running::start(command.env("PORT", "0"));
    let line = running.line_with("Serving tools on", 20);
    running.line_with("Anyone on this machine may call", 5);
    let url = line.split_once("on ").unwrap().1.to_owned();
    assert_eq!(status(&url, None).await, 200);
}

#[tokio::test]
async fn tokens_are_accepted_for_the_configured_audiences() {
    let secret = "jwt-secret-of-today-0123456789abcdef";
    let claims = |audience: Option<&str>| {
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap();
        let mut claims = json!({"sub": "user_123", "exp": now.as_secs() + 60});
        if let Some(audience) = audience {
            claims["aud"] = audience.into();
        }
        let key = jsonwebtoken::EncodingKey::from_secret(secret.as_bytes());
        jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).unwrap()
    };
    let two = "https://a.example, https://tools.example";
    for (audiences, audience, status) in [
        ("", None, 200),
        (two, Some("https://tools.example"), 200),
        ("https://a.example", Some("https://tools.example"), 401),
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
async fn tokens_that_name_made_up_keys_are_no_fault_of_the_server() {
    let issuer = Issuer::start().await;
    let mut command = toolbox();
    command
        .env("TOOLS_AUTH", "oidc")
        .env("TOOLS_OIDC_ISSUERS", &issuer.url)
        .env("TOOLS_OIDC_AUDIENCES", URL);
    let (running, url) = Running::serving(&mut command);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let claims = json!({"iss": issuer.url, "sub": "ada", "aud": URL,
                        "exp": now.unwrap().as_secs() + 600});
    let key = issuer.key(Algorithm::ES256);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let ping = async |token: &str| {
        let request = reqwest::Client::new().post(format!("{url}/mcp"));
        let request = request.bearer_auth(token).body(ping.clone());
        let request = request.header("content-type", "application/json");
        let request = request.header("accept", "application/json, text/event-stream");
        let response = request.send().await.unwrap();
        let wait = response.headers().get("retry-after");
        let wait = wait.map(|it| it.to_str().unwrap().parse::<u64>().unwrap());
        (response.status().as_u16(), wait)
    };
    assert_eq!(ping(&key.sign(&claims)).await, (200, None));
    let mut statuses = Vec::new();
    for n in 0..20 {
        let header = json!({"alg": "ES256", "kid": format!("made-up-{n}")});
        let (status, wait) = ping(&key.sign_as(&header, &claims)).await;
        assert_eq!(wait.is_some_and(|it| (1..=60).contains(&it)), status == 429);
        statuses.push(status);
    }
    assert_eq!(statuses, [&[401][..], &[429; 19]].concat());
    let line = running.line_with("is not known to have", 5);
    assert!(line.contains("unauthenticated"), "{line}");
    assert_eq!(ping(&key.sign(&claims)).await, (200, None));
}

#[tokio::test]
async fn the_owner_can_disable_secrets_in_calls() {
    let call = json!({"tool_id": "SMS.Send", "input": {"to": "+15005550006", "message": "Hi"},
                      "context": {"secrets": [{"id": "TWILIO_API_KEY", "value": "a:b:c"}]}});
    for (setting, status) in [("yes", 200), ("no", 400)] {
        let mut command = toolbox();
        command
            .env("TOOLS_SECRETS_FROM_CALLS", setting)
            .env("TOOLS_SECRETS_FILE", "/nowhere");
        let (_running, url) = Running::serving(&mut command);
        let request = reqwest::Client::new().post(format!("{url}/tools/call"));
        let answer = request.body(call.to_string()).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{setting}");
    }
}

#[tokio::test]
async fn the_log_distinguishes_an_invalid_key_from_a_server_without_keys() {
    for (key, message) in [
        (None, "the server has no API key to compare with"),
        (Some(""), "the server has no API key to compare with"),
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
        // Callers get the same response.
        assert!(!answer.text().await.unwrap().contains(message));
        let line = running.line_with("unauthenticated", 5);
        assert!(line.contains(message), "{line}");
    }
}
