//! The requests of a cold start.

use std::time::Duration;

use lambda_tools::{Tool, Toolkit};
use serde_json::json;
use test_support::{
    assert_program,
    aws::CREDENTIALS,
    issuer::Issuer,
    lambda::{calling, invoke_on},
    program,
    requests::Recorder,
};

use super::{Measured, Network, TABLE};
use crate::support::idle;

/// The number of secrets that need several requests.
const MANY: usize = 45;

/// All that a function can have.
const EVERYTHING: &str = "many manager recorded calls grants issuer";

const KEY: &str = "a-key-of-this-server-0123456789abcdef";

/// A function whose tools the test chooses.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a program that tests start"]
async fn cold_program_of_tests() {
    assert_program();
    let all = std::env::var("HAS").unwrap();
    let has = |name: &str| all.split(' ').any(|it| it == name);
    let ids = (0..MANY).map(|number| format!("SECRET_{number}"));
    let secrets = if has("many") {
        MANY
    } else {
        3 * usize::from(has("few"))
    };
    let plain = idle("Plain.Do@1.0.0", "Does nothing.").idempotent();
    let mut tools = vec![ids.take(secrets).fold(plain, Tool::secret)];
    if has("recorded") {
        tools.push(idle("Recorded.Do@1.0.0", "Does nothing."));
    }
    if has("grants") {
        let tool = idle("Granted.Do@1.0.0", "Does nothing.")
            .idempotent()
            .user_id();
        tools.push(tool.authorization("google", ["mail"]));
    }
    lambda_tools::serve(Toolkit::new(tools).unwrap())
        .await
        .unwrap();
}

pub(super) async fn measure(network: &Network, measured: &mut Measured) {
    for number in 0..MANY {
        let id = format!("SECRET_{number}");
        network.proxy.put_secret(&id, "value").await;
        let parameter = network.proxy.put_parameter(&id, "SecureString", "value");
        parameter.await;
    }
    for id in ["TOOLS_OAUTH_KEY", "TOOLS_GOOGLE_CLIENT_SECRET"] {
        network.proxy.put_secret(id, KEY).await;
    }
    network.proxy.put_secret("together", "{}").await;
    for (case, has) in [
        // Stores that no tool needs get no requests.
        ("that needs none of the following", "manager calls"),
        ("that needs none of the following", "parameters calls"),
        ("with up to 20 secrets", "few manager"),
        ("with 45 secrets", "many manager"),
        ("with any number of secrets in one JSON secret", "many json"),
        ("with up to 10 secrets in Parameter Store", "few parameters"),
        ("with 45 secrets in Parameter Store", "many parameters"),
        ("with a table of calls", "recorded calls"),
        ("with a table of grants", "grants"),
        ("with an issuer of access tokens", "issuer"),
        ("with 45 secrets, both tables and an issuer", EVERYTHING),
    ] {
        // A process that is not optimized takes long to create several clients.
        let delay = if has == EVERYTHING { 800 } else { 200 };
        let recorder = Recorder::with_delay(Duration::from_millis(delay));
        start_cold(network, &recorder, has).await;
        measured.add(&format!("a cold start {case}"), &recorder.take());
    }
}

/// Returns the variables for one of the things that a function has.
fn settings_of(name: &str) -> &'static [(&'static str, &'static str)] {
    match name {
        "manager" => &[("TOOLS_SECRETS", "secrets-manager")],
        "json" => &[
            ("TOOLS_SECRETS", "secrets-manager"),
            ("TOOLS_SECRETS_JSON", "together"),
        ],
        "parameters" => &[("TOOLS_SECRETS", "parameter-store")],
        "calls" => &[
            ("TOOLS_IDEMPOTENCY", "dynamodb"),
            ("TOOLS_IDEMPOTENCY_TABLE", TABLE),
        ],
        "grants" => &[
            ("TOOLS_OAUTH_TABLE", TABLE),
            ("TOOLS_GOOGLE_CLIENT_ID", "client"),
        ],
        "issuer" => &[
            ("TOOLS_AUTH", "oidc"),
            ("TOOLS_OIDC_AUDIENCES", "api://tools"),
        ],
        _ => &[],
    }
}

/// Starts a function and waits until it has responded to an event that needs no request.
async fn start_cold(network: &Network, recorder: &Recorder, has: &str) {
    let provider = Issuer::start_at("", Some(recorder)).await;
    let proxy = network.emulator.recorded_proxy(recorder).await;
    let url = proxy.url();
    let mut environment = vec![
        ("AWS_ENDPOINT_URL", &*url),
        ("TOOLS_AUTH", "none"),
        ("TOOLS_SECRETS", "environment"),
        ("TOOLS_OAUTH_KEY", KEY),
        ("TOOLS_IDEMPOTENCY", "none"),
        ("TOOLS_PUBLIC_URL", "https://tools.example"),
        ("HAS", has),
    ];
    if has.contains("issuer") {
        environment.push(("TOOLS_OIDC_ISSUERS", &*provider.url));
    }
    environment.extend(CREDENTIALS);
    for name in has.split(' ') {
        environment.extend_from_slice(settings_of(name));
    }
    let mut function = program("network::cold_starts::cold_program_of_tests");
    let unknown = calling(&json!({"tool_id": "Nothing.Do"}), &[]);
    let (reports, lines) = invoke_on(&mut function, &[(unknown, None)], &environment).await;
    let (has_failed, response, _) = &reports[0];
    let is_rejected = !has_failed && response["statusCode"] != 200;
    assert!(is_rejected, "{response} {lines:?}");
}
