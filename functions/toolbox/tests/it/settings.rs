//! The settings in the environment of the compiled program.

mod startup;

use std::{
    process::{Command, Output, Stdio},
    time::{Duration, Instant, SystemTime},
};

use serde_json::{Value, json};
use test_support::issuer::{Algorithm, Issuer, URL};

use crate::support::{Running, toolbox};

fn exit_of(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command.env("PORT", "0").output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

/// Returns the exit code of a program, and what it says. `None` if it serves instead.
fn end_of(command: &mut Command) -> (Option<i32>, String) {
    if command.get_envs().all(|(name, _)| name != "PORT") {
        command.env("PORT", "0");
    }
    let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(5);
    while child.try_wait().unwrap().is_none() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
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
            &[("TOOLS_QUOTAS", "caller+tool=9/day")],
            "the subject is all, caller, user, tool or tool:NAME; the window is minute or day",
        ),
        (
            &[("TOOLS_QUOTAS", "tool:SMS.Sent=9/day")],
            "'SMS.Sent', which is not a tool of this server",
        ),
        (
            &[("TOOLS_QUOTAS", "caller=9/day, caller=5/day")],
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
        (
            &[
                ("TOOLS_AUTH", "sign-in"),
                ("TOOLS_SIGN_IN_PROVIDER", "github"),
                ("TOOLS_SIGN_IN_CLIENT_ID", "client"),
                ("TOOLS_SIGN_IN_SESSION_SECONDS", "1d"),
            ],
            "TOOLS_SIGN_IN_SESSION_SECONDS is '1d', but must be a number of seconds",
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

/// Every setting that has only some values, with one that it cannot have: it is rejected also where
/// nothing uses it.
#[test]
fn every_setting_rejects_a_value_that_it_cannot_have() {
    for (name, value) in [
        ("ALLOWED_HOSTS", "a b"),
        ("HOST", "no host"),
        ("LOG_CALLS", "x"),
        ("LOG_FORMAT", "x"),
        ("PORT", "x"),
        ("RECORD_EVENTS", "/dev/null/x"),
        ("SHUTDOWN_SECONDS", "x"),
        ("TOOLS_AGENTCORE_TOKEN_HEADER", "a b"),
        ("TOOLS_AGENTCORE_USER_HEADER", "a b"),
        ("TOOLS_ALLOWED_ORIGINS", "x"),
        ("TOOLS_AUTH", "x"),
        ("TOOLS_EVENTS", "x"),
        ("TOOLS_EXPLORER", "x"),
        ("TOOLS_IDEMPOTENCY", "x"),
        ("TOOLS_IDEMPOTENCY_REQUIRED", "x"),
        ("TOOLS_IDEMPOTENCY_SECONDS", "x"),
        ("TOOLS_IDEMPOTENCY_WAIT_SECONDS", "x"),
        ("TOOLS_JWT_SUBJECT_IS_USER", "x"),
        ("TOOLS_LIST", "x"),
        ("TOOLS_METRICS", "x"),
        ("TOOLS_METRICS_NAMESPACE", "AWS/x"),
        ("TOOLS_OAUTH_CHECKS", "x"),
        ("TOOLS_PUBLIC_URL", "x"),
        ("TOOLS_QUOTAS", "x"),
        ("TOOLS_QUOTAS_REQUIRED", "x"),
        ("TOOLS_SECRETS", "x"),
        ("TOOLS_SECRETS_CACHE_SECONDS", "x"),
        ("TOOLS_SECRETS_FROM_CALLS", "x"),
        ("TOOLS_SIGN_IN_PROVIDER", "x"),
        ("TOOLS_STREAMING", "x"),
    ] {
        let (code, text) = end_of(toolbox().env(name, value));
        assert_eq!(code, Some(1), "{name}: {text}");
        // The others quote the path or the address.
        let is_named = text.contains(name) || ["HOST", "RECORD_EVENTS"].contains(&name);
        assert!(
            is_named && !text.contains("is not a setting"),
            "{name}: {text}"
        );
    }
}

/// An error of one setting does not make others unknown.
#[test]
fn an_invalid_setting_leaves_the_others_known() {
    let sign_in = [
        ("TOOLS_AUTH", "sign-in"),
        ("TOOLS_SIGN_IN_PROVIDER", "openid"),
        ("TOOLS_SIGN_IN_ISSUER", "https://id.example"),
        ("TOOLS_SIGN_IN_CLIENT_ID", "id"),
        ("TOOLS_SIGN_IN_CLIENT_SECRET", "secret-of-the-client"),
        ("TOOLS_SIGN_IN_ALLOW", "anyone"),
        ("TOOLS_OAUTH_KEY", "0123456789abcdef0123456789abcdef"),
        ("TOOLS_GOOGLE_CLIENT_ID", "id"),
        ("TOOLS_GOOGLE_CLIENT_SECRET", "secret-of-another-client"),
    ];
    for wrong in [
        ("TOOLS_AUTH", "sign-in,x"),
        ("TOOLS_SIGN_IN_ALLOW", "x"),
        ("TOOLS_SIGN_IN_CLIENTS", "x y"),
        ("TOOLS_SIGN_IN_PROVIDER", "x"),
        ("TOOLS_SIGN_IN_ISSUER", "http://id.example"),
        ("TOOLS_OAUTH_CHECKS", "x"),
        ("TOOLS_GOOGLE_ISSUER", "x"),
        ("TOOLS_PUBLIC_URL", "x"),
        ("TOOLS_SECRETS", "x"),
        ("TOOLS_IDEMPOTENCY", "x"),
        ("TOOLS_EVENTS", "x"),
        ("TOOLS_LIST", "x"),
    ] {
        let (code, text) = end_of(toolbox().envs(sign_in).envs([wrong]));
        assert_eq!(code, Some(1), "{wrong:?}: {text}");
        assert!(!text.contains("is not a setting"), "{wrong:?}: {text}");
        assert!(!text.contains("has no effect"), "{wrong:?}: {text}");
    }
}

/// RFC 7518, 3.2; a key that can be guessed is none.
#[test]
fn a_short_secret_fails_at_start_up() {
    let file = std::env::temp_dir().join(format!("short-{}", std::process::id()));
    std::fs::write(&file, "TOOLS_API_KEY=short-0123456\n").unwrap();
    let file = ("TOOLS_SECRETS_FILE", file.to_str().unwrap().to_owned());
    let of = |name, length| (name, "0123456789abcdef".repeat(3)[..length].to_owned());
    let auth = |value: &str| ("TOOLS_AUTH", value.to_owned());
    let oauth = ("TOOLS_GOOGLE_CLIENT_ID", "id".to_owned());
    let ids = ("TOOLS_API_KEY_IDS", "ONE,TWO|NEXT".to_owned());
    for (settings, secret, least) in [
        (
            vec![auth("api-key"), of("TOOLS_API_KEY", 15)],
            "TOOLS_API_KEY",
            16,
        ),
        (
            vec![auth("api-key"), of("TOOLS_API_KEY", 1)],
            "TOOLS_API_KEY",
            16,
        ),
        (
            vec![auth("jwt"), of("TOOLS_JWT_SECRET", 31)],
            "TOOLS_JWT_SECRET",
            32,
        ),
        (
            vec![
                auth("api-key,jwt"),
                of("TOOLS_API_KEY", 16),
                of("TOOLS_JWT_SECRET", 16),
            ],
            "TOOLS_JWT_SECRET",
            32,
        ),
        (
            vec![auth("api-key"), ids, of("ONE", 16), of("NEXT", 15)],
            "NEXT",
            16,
        ),
        (vec![auth("api-key"), file.clone()], "TOOLS_API_KEY", 16),
        (
            vec![oauth, of("TOOLS_OAUTH_KEY", 31)],
            "TOOLS_OAUTH_KEY",
            32,
        ),
    ] {
        let (code, text) = end_of(toolbox().envs(settings.clone()));
        assert_eq!(code, Some(1), "{secret}: {text}");
        let expected =
            format!("the secret '{secret}' must have at least {least} bytes: `openssl rand");
        assert!(text.contains(&expected), "{text}");
        assert!(!text.contains("0123456"), "{text}");
    }
    std::fs::remove_file(file.1).unwrap();
    for (kind, name, length) in [
        ("api-key", "TOOLS_API_KEY", 16),
        ("jwt", "TOOLS_JWT_SECRET", 32),
    ] {
        Running::serving(toolbox().envs([auth(kind), of(name, length)]));
    }
}

#[test]
fn the_arguments_print_or_fail() {
    for (argument, printed) in [
        ("--help", "--tools-for agentcore"),
        ("-h", "--tools-for agentcore"),
        ("--version", concat!("Toolbox ", env!("CARGO_PKG_VERSION"))),
        ("-V", concat!("Toolbox ", env!("CARGO_PKG_VERSION"))),
    ] {
        let mut running = Running::start(toolbox().arg(argument).env("PORT", "0"));
        running.line_with(printed, 5);
        assert_eq!(running.ends_within(5), Some(0), "{argument}");
    }
    for (arguments, said) in [
        (
            &["--tools-fro", "agentcore"][..],
            "did you mean --tools-for?",
        ),
        (&["--hepl"], "did you mean --help?"),
        (&["--verbose"], "did you mean --version?"),
        (&["--port", "3000"], "no such argument\n"),
        (&["serve"], "no such argument\n"),
        (&["0123456789"], "no such argument\n"),
        (&[""], "no such argument\n"),
    ] {
        let (code, text) = end_of(toolbox().args(arguments));
        assert_eq!(code, Some(1), "{arguments:?}: {text}");
        assert!(text.contains(said) && text.contains("--help"), "{text}");
        assert!(!text.contains("0123456789"), "{text}");
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
    let key = ("TOOLS_API_KEY", "the-key-of-today");
    let mut command = toolbox();
    let running = Running::start(command.envs([key, ("TOOLS_AUTH", "api-key"), ("PORT", "0")]));
    let line = running.line_with("Serving tools on", 20);
    let url = line.split_once("on ").unwrap().1.to_owned();
    running.line_with("Callers need credentials", 5);
    running.line_with("-H \"Authorization: Bearer $TOOLS_API_KEY\"", 5);
    assert_eq!(status(&url, None).await, 401);
    assert_eq!(status(&url, Some("the-key-of-tomorrow")).await, 401);
    assert_eq!(status(&url, Some("the-key-of-today")).await, 200);
    let health = reqwest::get(format!("{url}/health")).await.unwrap();
    assert_eq!(health.status().as_u16(), 200);
    let body = json!({"tool_id": "Calculator.Add", "input": {"a": 1, "b": 2}});
    let call = reqwest::Client::new().post(format!("{url}/tools/call"));
    let call = call.bearer_auth("the-key-of-today").body(body.to_string());
    let answer: Value = call.send().await.unwrap().json().await.unwrap();
    assert_eq!(answer["value"], 3);
    let line = running.line_with("Calculator.Add", 5);
    assert!(line.contains("key TOOLS_API_KEY"), "{line}");
}

#[tokio::test]
async fn keys_can_be_named_and_come_from_a_file_that_changes() {
    let file = std::env::temp_dir().join(format!("keys-{}", std::process::id()));
    std::fs::write(&file, "PARTNER=the-key-of-today\n").unwrap();
    let mut command = toolbox();
    command
        .env("TOOLS_SECRETS_FILE", &file)
        .env("TOOLS_AUTH", "api-key")
        .env("TOOLS_API_KEY_IDS", "PARTNER, PARTNER_TOMORROW");
    let (_running, url) = Running::serving(&mut command);
    assert_eq!(status(&url, Some("the-key-of-today")).await, 200);
    assert_eq!(status(&url, Some("the-key-of-tomorrow")).await, 401);
    std::fs::write(&file, "PARTNER_TOMORROW=the-key-of-tomorrow\n").unwrap();
    assert_eq!(status(&url, Some("the-key-of-tomorrow")).await, 200);
    assert_eq!(status(&url, Some("the-key-of-today")).await, 401);
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
        (Some("key-0123456789ab"), "the API key is not valid"),
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
