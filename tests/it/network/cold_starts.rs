//! The requests of a cold start.

use lambda_tools::{Context, Failure, Tool, Toolkit};
use serde_json::{Value, json};
use test_support::{
    assert_program,
    aws::CREDENTIALS,
    issuer::Issuer,
    lambda::{calling, invoke_on},
    program,
};

use super::{Measured, Network, TABLE};

/// The number of secrets that need several requests.
const MANY: usize = 45;

fn tool(id: &'static str) -> Tool {
    async fn nothing(_: Value, _: Context) -> Result<Value, Failure> {
        Ok(Value::Null)
    }

    let object = json!({"type": "object"});
    Tool::dynamic(id, "Does nothing.", object, json!({}), nothing)
}

/// A function whose tools the test chooses.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a program that tests start"]
async fn cold_program_of_tests() {
    assert_program();
    let has = |name: &str| {
        std::env::var("HAS")
            .unwrap()
            .split(' ')
            .any(|it| it == name)
    };
    let ids = (0..MANY).map(|number| format!("SECRET_{number}"));
    let secrets = if has("many") {
        MANY
    } else {
        3 * usize::from(has("few"))
    };
    let plain = tool("Plain.Do@1.0.0").idempotent();
    let mut tools = vec![ids.take(secrets).fold(plain, Tool::secret)];
    if has("recorded") {
        tools.push(tool("Recorded.Do@1.0.0"));
    }
    if has("grants") {
        let tool = tool("Granted.Do@1.0.0").idempotent().user_id();
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
        let value = "a-key-of-this-server-0123456789abcdef";
        network.proxy.put_secret(id, value).await;
    }
    network.proxy.put_secret("together", "{}").await;
    let json = [
        ("TOOLS_SECRETS", "secrets-manager"),
        ("TOOLS_SECRETS_JSON", "together"),
    ];
    let each = [("TOOLS_SECRETS", "secrets-manager")];
    let parameters = [("TOOLS_SECRETS", "parameter-store")];
    let calls = [
        ("TOOLS_IDEMPOTENCY", "dynamodb"),
        ("TOOLS_IDEMPOTENCY_TABLE", TABLE),
    ];
    let grants = [
        ("TOOLS_OAUTH_TABLE", TABLE),
        ("TOOLS_GOOGLE_CLIENT_ID", "client"),
    ];
    let oidc = [("TOOLS_AUTH", "oidc")];
    let everything = [&each[..], &calls, &grants, &oidc].concat();
    for (case, has, settings) in [
        ("a cold start that needs none of the following", "", &[][..]),
        ("a cold start with up to 20 secrets", "few", &each[..]),
        ("a cold start with 45 secrets", "many", &each[..]),
        (
            "a cold start with any number of secrets in one JSON secret",
            "many",
            &json[..],
        ),
        (
            "a cold start with up to 10 secrets in Parameter Store",
            "few",
            &parameters[..],
        ),
        (
            "a cold start with 45 secrets in Parameter Store",
            "many",
            &parameters[..],
        ),
        ("a cold start with a table of calls", "recorded", &calls[..]),
        ("a cold start with a table of grants", "grants", &grants[..]),
        (
            "a cold start with an issuer of access tokens",
            "",
            &oidc[..],
        ),
        (
            "a cold start with 45 secrets, both tables and an issuer",
            "many recorded grants",
            &everything[..],
        ),
    ] {
        start_cold(network, has, settings).await;
        measured.add(case, &network.recorder.take());
    }
}

/// Starts a function and waits until it has responded to an event that needs no request.
async fn start_cold(network: &Network, has: &str, settings: &[(&str, &str)]) {
    let provider = Issuer::start_at("", Some(&network.recorder)).await;
    network.recorder.take();
    let url = network.proxy.url();
    let mut environment = vec![
        ("AWS_ENDPOINT_URL", &*url),
        ("TOOLS_SECRETS", "environment"),
        ("TOOLS_OAUTH_KEY", "a-key-of-this-server-0123456789abcdef"),
        ("TOOLS_IDEMPOTENCY", "none"),
        ("TOOLS_OIDC_ISSUERS", &*provider.url),
        ("TOOLS_OIDC_AUDIENCES", "api://tools"),
        ("TOOLS_PUBLIC_URL", "https://tools.example"),
        ("HAS", has),
    ];
    environment.retain(|(name, _)| {
        !name.starts_with("TOOLS_OIDC") || settings.iter().any(|(_, value)| *value == "oidc")
    });
    environment.extend(CREDENTIALS);
    environment.extend(settings);
    let mut function = program("network::cold_starts::cold_program_of_tests");
    let unknown = calling(&json!({"tool_id": "Nothing.Do"}), &[]);
    let (reports, lines) = invoke_on(&mut function, &[(unknown, None)], &environment).await;
    let (has_failed, response, _) = &reports[0];
    assert!(
        !has_failed && response["statusCode"] != 200,
        "{response} {lines:?}"
    );
}
