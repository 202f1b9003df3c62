//! Users of MCP clients who sign in at an identity provider, whose access tokens the function
//! accepts in all protocols, or who know nothing but the function's URL: then the function is the
//! authorization server, and lets its users sign in at a provider.
//!
//! The provider and the client come from npm and PyPI. `tests/all` installs them and runs these tests; a
//! plain `cargo test` lists them as ignored. `long/claude_code.rs` has another client.

use std::{collections::BTreeMap, fs, time::Duration};

use serde_json::{Value, json};
use test_support::{
    aws::CREDENTIALS,
    dynamodb::DynamoDb,
    files_below, free_address,
    function_url::FunctionUrl,
    marks::Scratch,
    openid::{Act, Browser, OpenId},
};

use crate::{
    clients::{json_of, node_script, python},
    support::{Running, faults},
};

/// The modes of the client.
const MODES: [&str; 2] = ["auto", "legacy"];
const NEEDED: &str = "mail.read";
const NEEDED_BY_SEND: &str = "mail.send";

/// Lets MCP's client, in one of its modes, sign a user in, call `Mail_Whose`, and then `Mail_Send`, which
/// needs another scope; returns what the client saw.
fn seen_by(mode: &str, url: &str, user: &str) -> Value {
    let mut client = python("functions/toolbox/tests/mcp_oauth.py");
    client.args([&format!("{url}/mcp"), user, "--mode", mode]);
    json_of(client.args(["--tool", "Mail_Whose", "--step-up", "Mail_Send"]))
}

/// Starts a server that accepts tokens of this provider which have a scope. Its tools say for whom they
/// run, and one of them needs another scope.
pub(crate) fn serve_mail(provider: &OpenId) -> (Running, String) {
    let mut command = faults();
    command.envs([
        ("TOOLS_AUTH", "oidc"),
        ("TOOLS_OIDC_ISSUERS", &provider.url),
        ("TOOLS_OIDC_SCOPES", NEEDED),
    ]);
    Running::serving(&mut command)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes, MCP's Python client, and a provider of npm; run tests/all"]
async fn a_published_client_signs_its_user_in() {
    let provider = OpenId::start();
    let (_running, url) = serve_mail(&provider);
    for mode in MODES {
        let seen = seen_by(mode, &url, "alice");
        let context = format!("{seen:#}");
        let alice = json!({"value": {"result": "alice"}});
        assert_eq!(seen["call"], alice, "{context}");
        assert_eq!(seen["scopes"], NEEDED, "{context}");
        assert_eq!(seen["step_up"], alice, "{context}");
        let both = format!("{NEEDED} {NEEDED_BY_SEND}");
        assert_eq!(seen["step_up_scopes"], both, "{context}");
        let asked = seen["asked"].as_array().unwrap();
        assert_eq!(asked.len(), 2, "{context}");
        for one in asked {
            assert_eq!(one["resource"], format!("{url}/mcp"), "{context}");
        }
    }
}

const TABLE: &str = "grants";
const KEY: &str = "a-key-of-this-server-0123456789abcdef";

/// Returns the settings of a server at which everyone may sign in, at the provider with this URL.
pub(crate) fn variables(provider: &str) -> [(&'static str, &str); 8] {
    [
        ("TOOLS_AUTH", "sign-in"),
        ("TOOLS_OAUTH_KEY", KEY),
        ("TOOLS_SIGN_IN_PROVIDER", "openid"),
        ("TOOLS_SIGN_IN_ISSUER", provider),
        ("TOOLS_SIGN_IN_CLIENT_ID", "toolbox"),
        ("TOOLS_SIGN_IN_CLIENT_SECRET", "toolbox-secret"),
        ("TOOLS_SIGN_IN_ALLOW", "anyone"),
        ("TOOLS_SIGN_IN_SCOPES", NEEDED),
    ]
}

/// Lets the provider redirect to a server.
async fn allow_redirect(provider: &OpenId, server: &str) {
    let callback = format!("{server}/authorization/openid/callback");
    provider.allow_redirect(&callback).await;
}

/// A function behind a URL, and its table.
async fn function(provider: &OpenId) -> (FunctionUrl, DynamoDb) {
    let table = DynamoDb::start(TABLE).await;
    let address = table.url();
    let mut variables = variables(&provider.url).to_vec();
    variables.extend(CREDENTIALS);
    variables.push(("TOOLS_OAUTH_TABLE", TABLE));
    variables.push(("AWS_ENDPOINT_URL_DYNAMODB", &address));
    let function = FunctionUrl::start(&mut faults(), &variables).await;
    allow_redirect(provider, &function.url).await;
    (function, table)
}

/// Lets a client sign its user in with nothing but the URL, and call two tools, of which the second
/// one needs another scope. `sign_ins` is how often the user signs in for that.
fn check(mode: &str, url: &str, user: &str, sign_ins: usize) {
    let seen = seen_by(mode, url, user);
    let context = format!("{url}: {seen:#}");
    let named = json!({"value": {"result": user}});
    assert_eq!(seen["call"], named, "{context}");
    assert_eq!(seen["step_up"], named, "{context}");
    let asked = seen["asked"].as_array().unwrap();
    assert_eq!(asked.len(), sign_ins, "{context}");
    for one in asked {
        assert_eq!(one["resource"], format!("{url}/mcp"), "{context}");
    }
    let both = format!("{NEEDED} {NEEDED_BY_SEND}");
    assert_eq!(asked[sign_ins - 1]["scope"], both, "{context}");
    if sign_ins > 1 {
        assert_eq!(asked[0]["scope"], NEEDED, "{context}");
    }
    assert_eq!(seen["step_up_scopes"], both, "{context}");
}

/// A function URL renames the header that names the scope of a call, so clients ask for all scopes in
/// the metadata at once.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes, MCP's Python client, and a provider of npm; run tests/all"]
async fn a_published_client_needs_only_the_url_of_a_function() {
    let provider = OpenId::start();
    let (function, table) = function(&provider).await;
    for mode in MODES {
        let records = table.len();
        check(mode, &function.url, "alice", 1);
        assert!(table.len() > records);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes, MCP's Python client, and a provider of npm; run tests/all"]
async fn a_published_client_asks_for_another_scope_when_a_tool_needs_it() {
    let provider = OpenId::start();
    let (_running, url) = Running::serving(faults().envs(variables(&provider.url)));
    allow_redirect(&provider, &url).await;
    for mode in MODES {
        check(mode, &url, "bob", 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes, and npm's conformance suite and oidc-provider; run tests/all"]
async fn the_conformance_suite_for_authorization_servers_passes() {
    let provider = OpenId::start();
    let (function, _table) = function(&provider).await;
    let port = free_address().port().to_string();
    let client = reqwest::Client::new();
    let registration = json!({
        "client_name": "conformance",
        "redirect_uris": [format!("http://127.0.0.1:{port}/callback")],
        "token_endpoint_auth_method": "none",
    });
    let registered = client.post(format!("{}/register", function.url));
    let registered = registered.json(&registration).send().await.unwrap();
    let registered: Value = registered.json().await.unwrap();
    let folder = Scratch::new("conformance");
    let mut suite = node_script("node_modules/.bin/conformance");
    suite.args(["authorization", "--url", &function.url, "--port", &port]);
    suite.args(["--client-id", registered["client_id"].as_str().unwrap()]);
    suite.args(["--resource", &format!("{}/mcp", function.url)]);
    let mut suite = Running::start(suite.arg("--output-dir").arg(&folder.0));
    // It prints where its user has to sign in.
    let address = format!("{}/authorize?", function.url);
    let mut code = None;
    while code.is_none() {
        for line in suite.lines().iter().filter(|it| it.starts_with(&address)) {
            let page = Browser::of("alice").follow(line, Act::Allow).await;
            client.get(&page.headers["location"]).send().await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        code = suite.ends_within(0);
    }
    let mut checks = BTreeMap::new();
    for file in files_below(folder.0.to_str().unwrap()) {
        if file.ends_with("checks.json") {
            let all: Vec<Value> = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
            checks.extend(all.into_iter().map(|it| (it["id"].to_string(), it)));
        }
    }
    let passed = checks.values().all(|it| it["status"] == "SUCCESS");
    assert!(code == Some(0) && passed, "{code:?} {checks:#?}");
    let expected = [
        r#""authorization-code-grant""#,
        r#""authorization-server-metadata""#,
        r#""authorization-server-metadata-cimd""#,
    ];
    assert!(checks.keys().eq(expected), "{checks:#?}");
}
