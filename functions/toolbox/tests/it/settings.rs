//! The settings in the environment of the compiled program.

mod startup;

use std::{
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::json;
use test_support::{call_at, marks::Scratch};

use crate::support::{Running, toolbox};

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

/// Returns the variables in a text such as `A=value; B=value`.
fn variables(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = text.split("; ");
    pairs.map(|pair| pair.split_once('=').unwrap())
}

/// Returns what a program with these variables says when its start fails.
pub(crate) fn error_with(settings: &str) -> String {
    let (code, text) = end_of(toolbox().envs(variables(settings)));
    assert_eq!(code, Some(1), "{settings}: {text}");
    text
}

#[test]
fn on_lambda_a_function_that_does_not_set_who_may_call_does_not_start() {
    for auth in ["TOOLS_ATUH=none", "TOOLS_AUTH=; TOOLS_ATUH=none"] {
        let text = error_with(&format!("AWS_LAMBDA_RUNTIME_API=127.0.0.1:9; {auth}"));
        for part in [
            "no setting says who may call this function",
            "TOOLS_AUTH=api-key",
            "TOOLS_AUTH=jwt",
            "TOOLS_AUTH=none",
            "Server::auth",
            "TOOLS_ATUH is not a setting; did you mean TOOLS_AUTH?",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}

/// Wrong values of each kind, and settings that do not fit together, with what the error says.
const INVALID: [&str; 37] = [
    "ALLOWED_HOSTS=a b => ALLOWED_HOSTS has 'a b', which is not a host",
    "HOST=0.0.0.0 => no setting says who may call this server",
    "HOST=0.0.0.0 => TOOLS_AUTH=none lets anyone call",
    "HOST=no host => set HOST or PORT to listen elsewhere",
    "LOG_CALLS=x => LOG_CALLS is 'x', but must be yes or no",
    "LOG_FORMAT=x => LOG_FORMAT is 'x', but must be text or json",
    "PORT=x => PORT is 'x', which is not a port number",
    "RECORD_EVENTS=/dev/null/x => RECORD_EVENTS: cannot write to",
    "SHUTDOWN_SECONDS=-1 => SHUTDOWN_SECONDS is '-1', but must be a number of seconds",
    "TOOLS_ALLOWED_ORIGINS=x => the allowed origin 'x' is not an origin",
    "TOOLS_AUTH=api-keys => 'api-keys' is unknown",
    "TOOLS_AUTH=none,jwt => none cannot be combined",
    "TOOLS_AUTH=, => '' is unknown",
    "TOOLS_EVENTS=direct,sqs => TOOLS_EVENTS has 'sqs', but may only have rest-api, ",
    "TOOLS_EVENTS= ,  => TOOLS_EVENTS has ' '",
    "TOOLS_EXPLORER=x => TOOLS_EXPLORER is 'x', but must be yes or no",
    "TOOLS_IDEMPOTENCY=redis => must be memory, dynamodb or none",
    "TOOLS_IDEMPOTENCY=dynamodb => needs the name of a table in TOOLS_IDEMPOTENCY_TABLE",
    "TOOLS_JWT_SUBJECT_IS_USER=x => TOOLS_JWT_SUBJECT_IS_USER is 'x', but must be yes or no",
    "TOOLS_METRICS=x => TOOLS_METRICS is 'x', but must be cloudwatch or none",
    "TOOLS_METRICS_NAMESPACE=AWS/x => (TOOLS_METRICS_NAMESPACE)",
    "TOOLS_PUBLIC_URL=http://tools.example => must be an https:// URL",
    "TOOLS_QUOTAS=all=9/day,caller=9/week => TOOLS_QUOTAS has 'caller=9/week', but a quota is",
    "TOOLS_QUOTAS=caller+tool=9/day => the subject is all, caller, user, tool or tool:NAME; the window",
    "TOOLS_QUOTAS=tool:SMS.Sent=9/day => 'SMS.Sent', which is not a tool of this server",
    "TOOLS_QUOTAS=caller=9/day, caller=5/day => the same subject and window",
    "TOOLS_SECRETS=vault => must be environment, parameter-store, secrets-manager or none",
    "TOOLS_SECRETS=parameter-store => needs the cargo feature 'parameter-store'",
    "TOOLS_SECRETS_FROM_CALLS=maybe => must be yes or no",
    "TOOLS_SECRETS=secrets-manager; TOOLS_SECRETS_PREFIX=a/; TOOLS_SECRETS_JSON=a => without TOOLS_SECRETS_PREFIX",
    "TOOLS_SIGN_IN_PROVIDER=x => must be cognito, entra, github, google or openid",
    "TOOLS_STREAMING=x => TOOLS_STREAMING has 'x', but may only have",
    "TOOLS_TASKS=yes => needs the cargo feature 'tasks'",
    "TOOLS_STREAMING=http-api => only responses to function-url and rest-api can be streams",
    "TOOLS_GOOGLE_CLIENT_ID=id; TOOLS_GOOGLE_ISSUER=http://a.example => must be an https:// URL",
    "TOOLS_GITHUB_CLIENT_ID=id; TOOLS_OAUTH_KEY_IDS=, => no secret is configured to encrypt",
    "TOOLS_SLACK_CLIENT_ID=id; TOOLS_AUTH=none; AWS_LAMBDA_RUNTIME_API=a:9 => TOOLS_OAUTH_TABLE",
];

#[test]
fn an_invalid_setting_fails_at_start_up() {
    for row in INVALID {
        let (settings, message) = row.split_once(" => ").unwrap();
        let text = error_with(settings);
        assert!(text.contains(message), "{settings}: {text}");
        assert!(!text.contains("is not a setting"), "{settings}: {text}");
    }
}

/// An error of one setting does not make others unknown.
#[test]
fn an_invalid_setting_leaves_the_others_known() {
    let sign_in = "TOOLS_AUTH=sign-in; TOOLS_SIGN_IN_PROVIDER=openid; \
        TOOLS_SIGN_IN_ISSUER=https://id.example; TOOLS_SIGN_IN_CLIENT_ID=id; \
        TOOLS_SIGN_IN_CLIENT_SECRET=secret-of-the-client; TOOLS_SIGN_IN_ALLOW=anyone; \
        TOOLS_OAUTH_KEY=0123456789abcdef0123456789abcdef; TOOLS_GOOGLE_CLIENT_ID=id; \
        TOOLS_GOOGLE_CLIENT_SECRET=secret-of-another-client";
    for wrong in [
        "TOOLS_AUTH=sign-in,x",
        "TOOLS_SIGN_IN_ALLOW=x",
        "TOOLS_SIGN_IN_CLIENTS=x y",
        "TOOLS_SIGN_IN_PROVIDER=x",
        "TOOLS_SIGN_IN_ISSUER=http://id.example",
        "TOOLS_GOOGLE_ISSUER=x",
        "TOOLS_PUBLIC_URL=x",
        "TOOLS_SECRETS=x",
        "TOOLS_EVENTS=x",
    ] {
        let text = error_with(&format!("{sign_in}; {wrong}"));
        assert!(!text.contains("is not a setting"), "{wrong}: {text}");
        assert!(!text.contains("has no effect"), "{wrong}: {text}");
    }
}

/// RFC 7518, 3.2; a key that can be guessed is none.
#[test]
fn a_short_secret_fails_at_start_up() {
    const KEY_OF_GRANTS: &str = "none; TOOLS_GOOGLE_CLIENT_ID=id; TOOLS_OAUTH_KEY=0123456789abcdef";
    let file = Scratch::new("short");
    std::fs::write(&file.0, "TOOLS_API_KEY=short-0123456\n").unwrap();
    let in_file = format!("api-key; TOOLS_SECRETS_FILE={}", file.0.display());
    let (api_key, jwt_secret) = ("TOOLS_API_KEY", "TOOLS_JWT_SECRET");
    for (settings, secret, least) in [
        ("api-key; TOOLS_API_KEY=0123456789abcde", api_key, 16),
        ("jwt; TOOLS_JWT_SECRET=0123456789abcdef", jwt_secret, 32),
        ("api-key; TOOLS_API_KEY_IDS=A,B|C; C=0123456", "C", 16),
        (&in_file, api_key, 16),
        (KEY_OF_GRANTS, "TOOLS_OAUTH_KEY", 32),
    ] {
        let text = error_with(&format!("TOOLS_AUTH={settings}"));
        let expected =
            format!("the secret '{secret}' must have at least {least} bytes: `openssl rand");
        assert!(text.contains(&expected), "{text}");
        assert!(!text.contains("0123456"), "{text}");
    }
    for longer in [
        "TOOLS_AUTH=api-key; TOOLS_API_KEY=0123456789abcdef",
        "TOOLS_AUTH=jwt; TOOLS_JWT_SECRET=0123456789abcdef0123456789abcdef",
    ] {
        Running::serving(toolbox().envs(variables(longer)));
    }
}

#[test]
fn the_arguments_print_or_fail() {
    let version = concat!("Toolbox ", env!("CARGO_PKG_VERSION"));
    for (argument, printed) in [
        ("--help", "--tools-for agentcore"),
        ("-h", "--tools-for agentcore"),
        ("--version", version),
        ("-V", version),
    ] {
        let mut running = Running::start(toolbox().arg(argument).env("PORT", "0"));
        running.line_with(printed, 5);
        assert_eq!(running.ends_within(5), Some(0), "{argument}");
    }
    let unknown = "--tools-fro agentcore|--port 3000|serve|0123456789|";
    for arguments in unknown.split('|') {
        let (code, text) = end_of(toolbox().args(arguments.split(' ')));
        assert_eq!(code, Some(1), "{arguments}: {text}");
        let is_said = text.contains("no such argument\n") && text.contains("--help");
        assert!(is_said && !text.contains("0123456789"), "{text}");
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
async fn the_local_server_says_who_may_call() {
    let with_key = "TOOLS_AUTH=api-key; TOOLS_API_KEY=the-key-of-today";
    for (settings, said, without_key) in [
        ("TOOLS_AUTH=", "Anyone on this machine may call", 200),
        (with_key, "Callers need credentials", 401),
    ] {
        let running = Running::start(toolbox().env("PORT", "0").envs(variables(settings)));
        let url = running.url_after("Serving tools on");
        running.line_with(said, 5);
        assert_eq!(status(&url, None).await, without_key);
        assert_eq!(status(&url, Some("the-key-of-today")).await, 200);
    }
}

#[tokio::test]
async fn keys_can_be_named_and_come_from_a_file_that_changes() {
    let file = Scratch::new("keys");
    std::fs::write(&file.0, "PARTNER=the-key-of-today\n").unwrap();
    let settings = "TOOLS_AUTH=api-key; TOOLS_API_KEY_IDS=PARTNER, PARTNER_TOMORROW";
    let mut command = toolbox();
    command.env("TOOLS_SECRETS_FILE", &file.0);
    let (_running, url) = Running::serving(command.envs(variables(settings)));
    assert_eq!(status(&url, Some("the-key-of-today")).await, 200);
    assert_eq!(status(&url, Some("the-key-of-tomorrow")).await, 401);
    std::fs::write(&file.0, "PARTNER_TOMORROW=the-key-of-tomorrow\n").unwrap();
    assert_eq!(status(&url, Some("the-key-of-tomorrow")).await, 200);
    assert_eq!(status(&url, Some("the-key-of-today")).await, 401);
}

#[tokio::test]
async fn the_owner_can_disable_secrets_in_calls() {
    let call = json!({"tool_id": "SMS.Send", "input": {"to": "+15005550006", "message": "Hi"},
                      "context": {"secrets": [{"id": "TWILIO_API_KEY", "value": "a:b:c"}]}});
    for (setting, status) in [("yes", 200), ("no", 400)] {
        let settings = [
            ("TOOLS_SECRETS_FROM_CALLS", setting),
            ("TOOLS_SECRETS_FILE", "/nowhere"),
        ];
        let (_running, url) = Running::serving(toolbox().envs(settings));
        assert_eq!(call_at(&url, &call).await.0, status, "{setting}");
    }
}
