//! Users of MCP clients who sign in at an identity provider, whose access tokens the function
//! accepts in all protocols. In `sign_in_server.rs`, the function issues the tokens itself.
//!
//! The providers and the clients come from npm and PyPI. `tests/all` installs them and runs these
//! tests; a plain `cargo test` lists them as ignored.

use std::{
    path::Path,
    process::{Command, Output},
};

use serde_json::{Value, json};
use test_support::{
    node,
    openid::{Act, Browser, OpenId},
};

use crate::{
    clients::stdout_of,
    mcp_clients::limited,
    support::{Running, faults, installed, repository, toolbox},
};
use events::Stub;

pub(crate) const NEEDED: &str = "mail.read";
pub(crate) const NEEDED_BY_SEND: &str = "mail.send";

/// A published client that lets its user sign in, in one of its modes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    pub(crate) script: &'static str,
    mode: &'static str,
}

pub(crate) const CLIENTS: [Client; 4] = [
    Client::new("mcp_oauth.py", "auto"),
    Client::new("mcp_oauth.py", "legacy"),
    Client::new("mcp_oauth.mjs", "auto"),
    Client::new("mcp_oauth.mjs", "legacy"),
];

impl Client {
    pub(crate) const fn new(script: &'static str, mode: &'static str) -> Self {
        Self { script, mode }
    }

    /// Signs in as a user and calls a tool without arguments; returns what the client saw.
    pub(crate) fn call(self, url: &str, user: &str, tool: &str, others: &[&str]) -> Value {
        let stdout = stdout_of(&self.run(url, user, tool, others));
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"))
    }

    /// Does the same; returns what the program printed, also if it failed.
    pub(crate) fn run(self, url: &str, user: &str, tool: &str, others: &[&str]) -> Output {
        let is_python = Path::new(self.script).extension() == Some("py".as_ref());
        let mut command = if is_python {
            let mut command = limited(match self.script {
                "fastmcp_oauth.py" => repository("target/venv-sign-in/bin/python"),
                _ => installed("python"),
            });
            command.arg(repository("functions/toolbox/tests").join(self.script));
            command
        } else {
            let mut command = limited(node());
            command.arg(repository("target/conformance").join(self.script));
            command
        };
        command.args([&format!("{url}/mcp"), user, "--mode", self.mode]);
        command
            .args(["--tool", tool, "--arguments", "{}"])
            .args(others);
        tokio::task::block_in_place(|| command.output()).unwrap()
    }
}

/// Returns a function with the settings that accept tokens of this provider.
fn accepting(mut command: Command, provider: &OpenId) -> Command {
    command.env("TOOLS_AUTH", "oidc");
    command.env("TOOLS_OIDC_ISSUERS", &provider.url);
    command
}

/// Returns a function with tools that say for whom they run, one of which needs another scope.
fn mail(provider: &OpenId) -> Command {
    accepting(faults(), provider)
}

/// Starts a server of this function, for which tokens need a scope.
pub(crate) fn serve_mail(provider: &OpenId) -> (Running, String) {
    Running::serving(mail(provider).env("TOOLS_OIDC_SCOPES", NEEDED))
}

/// Returns the response to a call in OXP.
async fn call(url: &str, token: &str, tool: &str) -> (u16, Value) {
    let body = json!({"tool_id": tool, "input": {}});
    post(&format!("{url}/tools/call"), token, &body).await
}

/// Returns the same call in MCP.
fn mcp_call() -> Value {
    let params = json!({"name": "Mail_Whose", "arguments": {}});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
}

async fn post(url: &str, token: &str, body: &Value) -> (u16, Value) {
    let request = reqwest::Client::new().post(url).bearer_auth(token);
    let request = request.header("content-type", "application/json");
    let response = request.body(body.to_string()).send().await.unwrap();
    let status = response.status().as_u16();
    (status, response.json().await.unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes, and clients and providers of npm and PyPI; run tests/all"]
async fn published_clients_sign_their_users_in() {
    let provider = OpenId::start();
    let (_running, url) = serve_mail(&provider);
    for client in CLIENTS {
        let seen = client.call(&url, "alice", "Mail_Whose", &["--step-up", "Mail_Send"]);
        let context = format!("{client:?}: {seen:#}");
        let alice = json!({"value": {"result": "alice"}});
        assert_eq!(seen["call"], alice, "{context}");
        assert_eq!(seen["scopes"], NEEDED, "{context}");
        assert_eq!(seen["step_up"], alice, "{context}");
        let both = format!("{NEEDED} {NEEDED_BY_SEND}");
        assert_eq!(seen["step_up_scopes"], both, "{context}");
        assert_eq!(seen["registered"], true, "{context}");
        let asked = seen["asked"].as_array().unwrap();
        assert_eq!(asked.len(), 2, "{context}");
        for one in asked {
            assert_eq!(one["resource"], format!("{url}/mcp"), "{context}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes, and clients and a provider of npm and PyPI; run tests/all"]
async fn published_clients_can_be_registered_beforehand() {
    let provider = OpenId::with(&[("CLIENT_ID", "registered")]);
    let (_running, url) = serve_mail(&provider);
    for client in CLIENTS {
        let seen = client.call(&url, "bob", "Mail_Whose", &["registered"]);
        let context = format!("{client:?}: {seen:#}");
        assert_eq!(seen["call"]["value"]["result"], "bob", "{context}");
        assert_eq!(seen["asked"][0]["client_id"], "registered", "{context}");
        assert_eq!(seen["registered"], false, "{context}");
    }
}

/// Two providers: one where the caller signs in, and Google, which the tool asks for the user's
/// mail.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs clients and providers of npm and PyPI; run tests/all"]
async fn a_grant_belongs_to_the_user_who_signed_in() {
    let provider = OpenId::start();
    let google = OpenId::start();
    let stub = Stub::start().await;
    let (_running, url) = Running::serving(
        accepting(toolbox(), &provider)
            .envs(google.variables())
            .env("GMAIL_URL", stub.url()),
    );
    google.allow_redirects_to(&url).await;
    let [first, second, ..] = CLIENTS;
    let seen = first.call(&url, "alice", "Gmail_GetEmails", &[]);
    let text = seen["call"]["failure"].as_str();
    let text = text.unwrap_or_else(|| panic!("{seen:#}"));
    let words = text.split_whitespace();
    let mut links = words.map(|word| word.trim_end_matches(['.', ',']));
    let challenge = links.rfind(|word| word.starts_with(&url));
    let challenge = challenge.unwrap_or_else(|| panic!("{text}"));
    let browser = Browser::of("alice@gmail");
    let page = browser.follow(challenge, Act::Allow).await;
    assert!(page.body.contains("Done"), "{page:?}");

    let seen = second.call(&url, "alice", "Gmail_GetEmails", &[]);
    let subject = &seen["call"]["value"]["emails"][0]["subject"];
    assert_eq!(subject, "Welcome to Gmail", "{seen:#}");
    let seen = first.call(&url, "bob", "Gmail_GetEmails", &[]);
    assert!(seen["call"]["failure"].is_string(), "{seen:#}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes, and npm's oidc-provider; run tests/all"]
async fn tokens_are_checked_with_the_providers_keys() {
    let provider = OpenId::start();
    let (_running, url) = serve_mail(&provider);
    let resource = format!("{url}/mcp");
    for alg in ["RS256", "PS256", "ES256", "ES384", "EdDSA"] {
        let for_server = [
            ("user", alg),
            ("resource", &*resource),
            ("scope", NEEDED),
            ("alg", alg),
        ];
        let token = provider.token(&for_server).await;
        let (status, answer) = call(&url, &token, "Mail.Whose").await;
        assert_eq!((status, &answer["value"]), (200, &json!(alg)), "{answer}");

        let (signed, signature) = token.rsplit_once('.').unwrap();
        let other = if signature.starts_with('A') { 'B' } else { 'A' };
        let changed = format!("{signed}.{other}{}", &signature[1..]);
        let (status, answer) = call(&url, &changed, "Mail.Whose").await;
        assert_eq!(status, 401, "{alg} {answer}");
    }
    let for_another = [
        ("user", "alice"),
        ("resource", "http://127.0.0.1:1/mcp"),
        ("scope", NEEDED),
    ];
    let token = provider.token(&for_another).await;
    let (status, answer) = call(&url, &token, "Mail.Whose").await;
    assert_eq!(status, 401, "{answer}");
    let without_scope = [("user", "alice"), ("resource", &*resource)];
    let token = provider.token(&without_scope).await;
    let (status, answer) = post(&format!("{url}/mcp"), &token, &mcp_call()).await;
    assert_eq!(status, 403, "{answer}");
}
