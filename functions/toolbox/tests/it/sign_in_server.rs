//! Users of MCP clients that know nothing but the function's URL: the function is the authorization
//! server, and lets its users sign in at an identity provider.
//!
//! The providers and the clients come from npm and PyPI. `tests/all` installs them and runs these
//! tests; a plain `cargo test` lists them as ignored.

use serde_json::json;
use test_support::{
    aws::CREDENTIALS, dynamodb::DynamoDb, function_url::FunctionUrl, openid::OpenId,
};

use crate::{
    clients::{json_of, node_script},
    sign_in::{CLIENTS, Client, NEEDED, NEEDED_BY_SEND},
    support::{Running, faults},
};

const TABLE: &str = "grants";
const KEY: &str = "a-key-of-this-server-0123456789abcdef";

/// Returns the settings of a server at which everyone may sign in, at this provider.
fn variables(provider: &OpenId) -> [(&'static str, &str); 8] {
    [
        ("TOOLS_AUTH", "sign-in"),
        ("TOOLS_OAUTH_KEY", KEY),
        ("TOOLS_SIGN_IN_PROVIDER", "openid"),
        ("TOOLS_SIGN_IN_ISSUER", &provider.url),
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
    let mut variables = variables(provider).to_vec();
    variables.extend(CREDENTIALS);
    variables.push(("TOOLS_OAUTH_TABLE", TABLE));
    variables.push(("AWS_ENDPOINT_URL_DYNAMODB", &address));
    let function = FunctionUrl::start(&mut faults(), &variables).await;
    allow_redirect(provider, &function.url).await;
    (function, table)
}

/// Lets a client sign its user in with nothing but the URL, and call two tools, of which the second
/// one needs another scope. `sign_ins` is how often the user signs in for that.
fn check(client: Client, url: &str, user: &str, sign_ins: usize) {
    let seen = client.call(url, user);
    let context = format!("{client:?} at {url}: {seen:#}");
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
#[ignore = "needs what sam build makes, and clients and a provider of npm and PyPI; run tests/all"]
async fn published_clients_need_only_the_url_of_a_function() {
    let provider = OpenId::start();
    let (function, table) = function(&provider).await;
    for client in CLIENTS {
        let records = table.len();
        check(client, &function.url, "alice", 1);
        assert!(table.len() > records, "{client:?}");
    }
}

/// Lets clients sign in at a local server.
async fn check_local(clients: &[Client]) {
    let provider = OpenId::start();
    let (_running, url) = Running::serving(faults().envs(variables(&provider)));
    allow_redirect(&provider, &url).await;
    for client in clients {
        check(*client, &url, "bob", 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes, and clients and a provider of npm and PyPI; run tests/all"]
async fn published_clients_ask_for_another_scope_when_a_tool_needs_it() {
    check_local(&CLIENTS).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes, and npm's conformance suite and oidc-provider; run tests/all"]
async fn the_conformance_suite_for_authorization_servers_passes() {
    let provider = OpenId::start();
    let (function, _table) = function(&provider).await;
    let mut suite = node_script("conformance_authorization.mjs");
    let seen = json_of(suite.args([&function.url, "alice"]));
    let checks = json!({
        "authorization-server-metadata": "SUCCESS",
        "authorization-server-metadata-cimd": "SUCCESS",
        "authorization-code-grant": "SUCCESS",
    });
    assert_eq!(seen, json!({"code": 0, "checks": checks}));
}

/// `.ci/long` runs this test.
mod long {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs what sam build makes, FastMCP and a provider of npm; run .ci/long"]
    async fn fastmcps_client_asks_for_another_scope_when_a_tool_needs_it() {
        check_local(&[Client::new("fastmcp_oauth.py", "auto")]).await;
    }
}
