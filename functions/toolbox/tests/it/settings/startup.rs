//! Warnings about settings, and the overview of them, when the program starts.

use test_support::lambda::{LONG, event, invoke_on};

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

const UNKNOWN: [(&str, &str); 3] = [
    ("TOOLS_ATUH", "value-of-a-mistake"),
    ("TOOLS_GOOGLE_CLIENTID", "value-of-a-mistake"),
    ("TOOLS_WAREHOUSE", "value-of-a-mistake"),
];

const SUGGESTIONS: [&str; 3] = [
    "TOOLS_ATUH is not a setting; did you mean TOOLS_AUTH?",
    "TOOLS_GOOGLE_CLIENTID is not a setting; did you mean TOOLS_GOOGLE_CLIENT_ID?",
    "TOOLS_WAREHOUSE is not a setting",
];

/// Variables that begin like settings but are secrets.
const SECRETS: [(&str, &str); 11] = [
    ("TOOLS_AUTH", "api-key,jwt"),
    ("TOOLS_API_KEY_IDS", "TOOLS_PARTNER|TOOLS_PARTNER_NEXT"),
    ("TOOLS_API_KEY", "key-0123456789ab"),
    ("TOOLS_PARTNER", "key-0123456789ab"),
    ("TOOLS_PARTNER_NEXT", "key-9876543210ab"),
    ("TOOLS_JWT_SECRET", "0123456789abcdef0123456789abcdef"),
    ("TOOLS_OAUTH_KEY", "secret-0123456789"),
    ("TOOLS_GOOGLE_CLIENT_SECRET", "secret-0123456789"),
    ("TOOLS_GITHUB_CLIENT_SECRET", "secret-0123456789"),
    ("TOOLS_SIGN_IN_ALLOW", ""),
    TWILIO,
];

/// The secret of a tool, whose absence would be a warning.
const TWILIO: (&str, &str) = ("TWILIO_API_KEY", "value-of-the-tool");

#[tokio::test]
async fn an_unknown_setting_is_named_but_its_value_is_not() {
    let variables = [&UNKNOWN[..], &SECRETS[..]].concat();
    let lines = lambda_lines(&variables).await;
    let warnings = warnings(&lines);
    assert_eq!(warnings.len(), SUGGESTIONS.len(), "{warnings:?}");
    for (line, suggestion) in warnings.iter().zip(SUGGESTIONS) {
        assert!(line.contains(suggestion), "{line}");
        assert!(!line.contains("value-of-a-mistake"), "{line}");
    }
}

#[test]
fn a_server_without_a_secret_of_its_callers_warns_after_its_start() {
    let nowhere = ("TOOLS_SECRETS_FILE", "nowhere.env");
    for (auth, more, kinds, ids) in [
        ("api-key", nowhere, "API key is", "TOOLS_API_KEY"),
        (
            "api-key,jwt",
            ("TOOLS_API_KEY_IDS", "PARTNER|PARTNER_NEXT,GUEST"),
            "API key or JWT secret is",
            "PARTNER, PARTNER_NEXT, GUEST or TOOLS_JWT_SECRET",
        ),
    ] {
        let lines = local_lines(&[("TOOLS_AUTH", auth), more, TWILIO]);
        let text = format!(
            "no {kinds} stored: every call is rejected until the secret {ids} exists; for example \
             {}=… in ",
            ids.split(',').next().unwrap()
        );
        let warnings = warnings(&lines);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains(&text), "{warnings:?}");
    }
    let value = ("TOOLS_JWT_SECRET", "0123456789abcdef0123456789abcdef");
    let lines = local_lines(&[("TOOLS_AUTH", "api-key,jwt"), value, TWILIO]);
    assert_eq!(warnings(&lines), [""; 0]);
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
    let mut variables: Vec<_> = unused.map(|(_, name)| (name, "marked-value")).to_vec();
    variables.push(TWILIO);
    let local = local_lines(&variables);
    variables.push(("TOOLS_AUTH", "gateway"));
    for lines in [local, lambda_lines(&variables).await] {
        let warnings = warnings(&lines);
        assert_eq!(warnings.len(), unused.len(), "{warnings:?}");
        for (line, (kind, name)) in warnings.iter().zip(unused) {
            let text = format!("{name} has no effect without TOOLS_AUTH={kind}");
            assert!(line.contains(&text) && !line.contains("marked"), "{line}");
        }
    }
}

/// As with a missing key of callers, calls fail without them, and nothing else would say so.
#[test]
fn each_missing_secret_is_named_after_the_start() {
    let nowhere = ("TOOLS_SECRETS_FILE", "nowhere.env");
    let google = ("TOOLS_GOOGLE_CLIENT_ID", "our-client");
    let client_secret = ("TOOLS_GOOGLE_CLIENT_SECRET", "secret-of-the-client");
    let key = ("TOOLS_OAUTH_KEY", "0123456789abcdef0123456789abcdef");
    for (set, missing) in [
        (&[][..], &["TWILIO_API_KEY"][..]),
        (&[TWILIO], &[]),
        (
            &[TWILIO, google],
            &["TOOLS_OAUTH_KEY", "TOOLS_GOOGLE_CLIENT_SECRET"],
        ),
        (&[TWILIO, google, client_secret, key], &[]),
    ] {
        let lines = local_lines(&[&[nowhere], set].concat());
        let warnings = warnings(&lines);
        assert_eq!(warnings.len(), missing.len(), "{warnings:?}");
        for (line, name) in warnings.iter().zip(missing) {
            let text = "a secret is missing from the store";
            assert!(line.contains(text) && line.contains(name), "{line}");
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
fn the_debug_level_shows_the_settings_in_force() {
    let mut command = toolbox();
    command
        .env("PORT", "0")
        .env("RUST_LOG", "debug")
        .env("TOOLS_AUTH", "api-key")
        .env("TOOLS_API_KEY", "marked-key-0123456789")
        .env("TOOLS_GOOGLE_CLIENT_ID", "our-client")
        .env("TOOLS_GOOGLE_CLIENT_SECRET", "marked-secret-0123456789")
        .env("TOOLS_BASE_PATH", "/agents");
    let running = Running::start(&mut command);
    let line = running.line_with("settings in force", 20);
    for part in [
        "DEBUG",
        "TOOLS_AUTH=api-key",
        "TOOLS_BASE_PATH=/agents",
        "TOOLS_GOOGLE_CLIENT_ID=our-client",
        "PORT=0",
        "api-key (TOOLS_API_KEY)",
        "the environment variable 'ID' or .env",
        "Memory",
        "Oxp, ",
        "1048576",
        "google",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    assert!(!line.contains("marked"), "{line}");
}
