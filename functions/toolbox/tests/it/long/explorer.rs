//! The explorer's page in a real browser, with the compiled programs.

use std::process::Command;

use jsonwebtoken::{EncodingKey, Header, encode};
use lambda_tools::testing::LambdaFunction;
use serde_json::{Value, json};
use test_support::{Running, built, chromium, fed, isolated, openid::OpenId, repository};

use crate::{
    clients::stdout_of,
    support::{faults, server, toolbox},
};
use events::Stub;

const KEY: &str = "marked-key-of-a-partner";
const SIGNING_SECRET: &str = "a-secret-that-signs-tokens-0123456789";

/// Returns a toolbox whose users can allow access to their accounts.
fn with_accounts(openid: &OpenId, stub: &Stub) -> Command {
    let mut command = toolbox();
    command
        .envs(openid.variables())
        .env("GMAIL_URL", stub.url())
        .env("TWILIO_URL", stub.url());
    command
}

fn token_of(user: &str) -> String {
    let claims = json!({"sub": user, "exp": 4_000_000_000_u64});
    let key = EncodingKey::from_secret(SIGNING_SECRET.as_bytes());
    encode(&Header::default(), &claims, &key).unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value}"))
}

/// Returns the output of a program that gets a script on its standard input.
fn output_of(program: &[&str], script: &str) -> String {
    stdout_of(&fed(Command::new(program[0]).args(&program[1..]), script))
}

/// Returns the value in a response of any of the three protocols.
fn value_in(body: &Value) -> &Value {
    let places = [
        "/value",
        "/result/structuredContent/result",
        "/result/value",
    ];
    let value = places.iter().find_map(|place| body.pointer(place));
    value.unwrap_or_else(|| panic!("{body}"))
}

/// Makes the same calls from curl, from Python and as events.
async fn check_copies(copies: &Value) {
    let function = LambdaFunction::new(server(toolbox::tools(toolbox::Endpoints::default())));
    for protocol in ["Oxp", "Mcp", "OpenTool"] {
        let copy = &copies[protocol];
        let answer = output_of(&["sh"], &format!("{} -s", text(&copy["curl"])));
        assert_eq!(
            value_in(&serde_json::from_str(&answer).unwrap()),
            42,
            "{protocol}"
        );
        let printed = output_of(&["python3", "-"], text(&copy["python"]));
        assert!(printed.contains(": 42"), "{protocol}: {printed}");
        let response = function.respond(text(&copy["event"])).await.unwrap();
        assert_eq!(
            (response.status, value_in(&response.body)),
            (200, &json!(42)),
            "{protocol}"
        );
    }
    let nested = &copies["nested"];
    let value: Value = serde_json::from_str(text(&nested["value"])).unwrap();
    let answer = output_of(&["sh"], &format!("{} -s", text(&nested["curl"])));
    assert_eq!(*value_in(&serde_json::from_str(&answer).unwrap()), value);
    let printed = output_of(&["python3", "-"], text(&nested["python"]));
    assert!(printed.contains("12345678901234567890"), "{printed}");
}

fn check_settings(copies: &Value, url: &str) {
    let settings: Value = serde_json::from_str(text(&copies["settings"])).unwrap();
    let expected =
        json!({"mcpServers": {"toolbox": {"type": "http", "url": format!("{url}/mcp")}}});
    assert_eq!(settings, expected);
    assert_eq!(
        text(&copies["claude"]),
        format!("claude mcp add --transport http toolbox '{url}/mcp'")
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium, npm's packages, curl and Python; run .ci/long"]
async fn the_explorer_works_in_chromium() {
    let (openid, stub) = (OpenId::start(), Stub::start().await);
    let (_open, url) = Running::serving(&mut with_accounts(&openid, &stub));
    let (_faults, faults_url) = Running::serving(faults().env("KEY", "x"));
    let mut keyed = with_accounts(&openid, &stub);
    let keyed = keyed.env("TOOLS_AUTH", "api-key").env("TOOLS_API_KEY", KEY);
    let (_keyed, keyed_url) = Running::serving(keyed);
    let (_based, based_url) = Running::serving(toolbox().env("TOOLS_BASE_PATH", "agents"));
    let mut signed = with_accounts(&openid, &stub);
    let signed = signed
        .env("TOOLS_AUTH", "jwt")
        .env("TOOLS_JWT_SECRET", SIGNING_SECRET)
        .env("TOOLS_JWT_SUBJECT_IS_USER", "yes");
    let (_signed, signed_url) = Running::serving(signed);
    for server in [&url, &signed_url] {
        openid.allow_redirects_to(server).await;
    }
    let mut resources = isolated(Command::new(built("debug/conformance")));
    let (_resources, resources_url) = Running::serving(&mut resources);
    let artifacts = repository("target/artifacts");
    std::fs::create_dir_all(&artifacts).unwrap();
    let settings = json!({
        "toolbox": url, "faults": faults_url, "keyed": keyed_url, "signed": signed_url,
        "base": format!("{based_url}/agents"), "key": KEY, "token": token_of("user-mcp"),
        "resources": resources_url, "artifacts": artifacts.canonicalize().unwrap(),
    });
    // The copies that the page offers.
    let copies = chromium("explorer.mjs", &[settings.to_string()]).await;
    check_copies(&copies).await;
    check_settings(&copies, &url);
}
