//! Warnings about settings, and the overview of them, when the program starts.

use test_support::lambda::{LONG, event, invoke_on};

use super::variables;
use crate::support::{Running, toolbox};

/// Returns the lines that a local server with these variables prints when it starts.
fn local_lines(variables: &[(&str, &str)]) -> Vec<String> {
    let mut command = toolbox();
    command.env("PORT", "0").envs(variables.iter().copied());
    let mut running = Running::start(&mut command);
    let mut lines = Vec::new();
    for _ in 0..2_000 {
        lines.extend(running.lines());
        if lines.iter().any(|line| line.contains("claude mcp add")) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    // The warnings about secrets come after the address.
    std::thread::sleep(std::time::Duration::from_millis(300));
    running.signal("TERM");
    assert_eq!(running.ends_within(5), Some(0));
    lines.extend(running.end());
    lines
}

/// Returns the lines that the function with these variables prints on Lambda.
async fn lambda_lines(variables: &[(&str, &str)]) -> Vec<String> {
    let events = [(event("paths/health"), LONG)];
    invoke_on(&mut toolbox(), &events, variables).await.1
}

fn warnings(lines: &[String]) -> Vec<&str> {
    let lines = lines.iter().map(String::as_str);
    lines.filter(|line| line.contains("WARN")).collect()
}

/// The secret of a tool, whose absence would be a warning.
const TWILIO: (&str, &str) = ("TWILIO_API_KEY", "value-of-the-tool");

#[tokio::test]
async fn an_unknown_setting_is_named_but_its_value_is_not() {
    let unknown = [
        ("TOOLS_ATUH", "; did you mean TOOLS_AUTH?"),
        (
            "TOOLS_GOOGLE_CLIENTID",
            "; did you mean TOOLS_GOOGLE_CLIENT_ID?",
        ),
        ("TOOLS_WAREHOUSE", ""),
    ];
    // Those that begin like settings but are secrets are known.
    let secrets = "TOOLS_AUTH=api-key,jwt; TOOLS_API_KEY_IDS=TOOLS_PARTNER|TOOLS_PARTNER_NEXT; \
        TOOLS_API_KEY=key-0123456789ab; TOOLS_PARTNER=key-0123456789ab; \
        TOOLS_PARTNER_NEXT=key-9876543210ab; TOOLS_JWT_SECRET=0123456789abcdef0123456789abcdef; \
        TOOLS_OAUTH_KEY=secret-0123456789; TOOLS_GOOGLE_CLIENT_SECRET=secret-0123456789; \
        TOOLS_GITHUB_CLIENT_SECRET=secret-0123456789; TOOLS_SIGN_IN_ALLOW=; TWILIO_API_KEY=a-secret";
    let mut settings: Vec<_> = variables(secrets).collect();
    settings.extend(unknown.map(|(name, _)| (name, "value-of-a-mistake")));
    let lines = lambda_lines(&settings).await;
    let warnings = warnings(&lines);
    assert_eq!(warnings.len(), unknown.len(), "{warnings:?}");
    for (line, (name, suggestion)) in warnings.iter().zip(unknown) {
        let text = format!("{name} is not a setting{suggestion}");
        assert!(line.contains(&text) && !line.contains("value-of"), "{line}");
    }
}

/// Without these secrets calls fail, and nothing else would say so: variables, and the warnings, whose
/// parts `…` separates.
const MISSING: [&str; 7] = [
    "TOOLS_AUTH=api-key; TWILIO_API_KEY=x => no API key is stored: every call is rejected until the secret \
     TOOLS_API_KEY exists; for example TOOLS_API_KEY=… in ",
    "TOOLS_AUTH=api-key,jwt; TOOLS_API_KEY_IDS=PARTNER|PARTNER_NEXT,GUEST; TWILIO_API_KEY=x => no API key or JWT \
     secret is stored: every call is rejected until the secret PARTNER, PARTNER_NEXT, GUEST or TOOLS_JWT_SECRET \
     exists; for example PARTNER=… in ",
    "TOOLS_AUTH=api-key,jwt; TOOLS_JWT_SECRET=0123456789abcdef0123456789abcdef; TWILIO_API_KEY=x => ",
    "TOOLS_METRICS=none => a secret is missing from the store…TWILIO_API_KEY",
    "TWILIO_API_KEY=x => ",
    "TWILIO_API_KEY=x; TOOLS_GOOGLE_CLIENT_ID=our-client => a secret is missing from the store…TOOLS_OAUTH_KEY & \
     a secret is missing from the store…TOOLS_GOOGLE_CLIENT_SECRET",
    "TWILIO_API_KEY=x; TOOLS_GOOGLE_CLIENT_ID=our-client; TOOLS_GOOGLE_CLIENT_SECRET=secret-of-the-client; \
     TOOLS_OAUTH_KEY=0123456789abcdef0123456789abcdef => ",
];

#[test]
fn each_missing_secret_is_named_after_the_start() {
    for row in MISSING {
        let (settings, expected) = row.split_once(" => ").unwrap();
        let mut settings: Vec<_> = variables(settings).collect();
        settings.push(("TOOLS_SECRETS_FILE", "nowhere.env"));
        let lines = local_lines(&settings);
        let warnings = warnings(&lines);
        let expected: Vec<_> = expected.split(" & ").filter(|it| !it.is_empty()).collect();
        assert_eq!(warnings.len(), expected.len(), "{row}: {warnings:?}");
        for (line, text) in warnings.iter().zip(expected) {
            assert!(text.split('…').all(|it| line.contains(it)), "{line}");
        }
    }
}

/// An open server does not ignore in silence what its owner has set for another one.
#[tokio::test]
async fn variables_that_the_credentials_leave_without_effect_are_named() {
    let unused = [
        ("api-key", "TOOLS_API_KEY"),
        ("api-key", "TOOLS_API_KEY_IDS"),
        ("jwt", "TOOLS_JWT_AUDIENCES"),
        ("jwt", "TOOLS_JWT_SECRET"),
        ("oidc", "TOOLS_OIDC_SCOPES"),
        ("sign-in", "TOOLS_SIGN_IN_ALLOW"),
        ("sign-in", "TOOLS_SIGN_IN_CLIENT_SECRET"),
    ];
    let mut settings: Vec<_> = unused.map(|(_, name)| (name, "marked-value")).to_vec();
    settings.push(TWILIO);
    let local = local_lines(&settings);
    settings.push(("TOOLS_AUTH", "gateway"));
    for lines in [local, lambda_lines(&settings).await] {
        let warnings = warnings(&lines);
        assert_eq!(warnings.len(), unused.len(), "{warnings:?}");
        for (line, (kind, name)) in warnings.iter().zip(unused) {
            let text = format!("{name} has no effect without TOOLS_AUTH={kind}");
            assert!(line.contains(&text) && !line.contains("marked"), "{line}");
        }
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_read_may_contain_the_key() {
    let unreadable = ("TOOLS_SECRETS_FILE", "/");
    let lines = lambda_lines(&[("TOOLS_AUTH", "api-key"), unreadable, TWILIO]).await;
    let says = lines.iter().any(|it| it.contains("is stored"));
    assert!(!says, "{lines:?}");
}

#[test]
fn the_debug_level_shows_the_settings_in_the_environment() {
    let settings = "PORT=0; RUST_LOG=debug; TOOLS_AUTH=api-key; TOOLS_API_KEY=marked-key-0123456789; \
        TOOLS_GOOGLE_CLIENT_ID=our-client; TOOLS_GOOGLE_CLIENT_SECRET=marked-secret-0123456789; \
        TOOLS_BASE_PATH=/agents";
    let running = Running::start(toolbox().envs(variables(settings)));
    let line = running.line_with("settings in the environment", 20);
    for part in [
        "DEBUG",
        "TOOLS_AUTH=api-key",
        "TOOLS_BASE_PATH=/agents",
        "TOOLS_GOOGLE_CLIENT_ID=our-client",
        "PORT=0",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    assert!(!line.contains("marked"), "{line}");
}
