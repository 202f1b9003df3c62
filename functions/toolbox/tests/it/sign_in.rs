//! Users of MCP clients who sign in at an identity provider, whose access tokens the function
//! accepts in all protocols. In `sign_in_server.rs`, the function issues the tokens itself.
//!
//! The providers and the clients come from npm and PyPI. `tests/all` installs them and runs these
//! tests; a plain `cargo test` lists them as ignored.

use std::path::Path;

use serde_json::{Value, json};
use test_support::openid::OpenId;

use crate::{
    clients::{json_of, node_script, python},
    support::{Running, faults},
};

pub(crate) const NEEDED: &str = "mail.read";
pub(crate) const NEEDED_BY_SEND: &str = "mail.send";

/// A published client that lets its user sign in, in one of its modes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    script: &'static str,
    mode: &'static str,
}

/// The official ones. Each in another mode, which the tests of clients' calls have all.
pub(crate) const CLIENTS: [Client; 2] = [
    Client::new("mcp_oauth.py", "auto"),
    Client::new("mcp_oauth.mjs", "legacy"),
];

impl Client {
    pub(crate) const fn new(script: &'static str, mode: &'static str) -> Self {
        Self { script, mode }
    }

    /// Signs in as a user, calls `Mail_Whose`, and then `Mail_Send`, which needs another scope; returns
    /// what the client saw.
    pub(crate) fn call(self, url: &str, user: &str) -> Value {
        let is_python = Path::new(self.script).extension() == Some("py".as_ref());
        let mut command = if is_python {
            python(&format!("functions/toolbox/tests/{}", self.script))
        } else {
            node_script(self.script)
        };
        command.args([&format!("{url}/mcp"), user, "--mode", self.mode]);
        command.args(["--tool", "Mail_Whose", "--arguments", "{}"]);
        json_of(command.args(["--step-up", "Mail_Send"]))
    }
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
#[ignore = "needs what sam build makes, and clients and providers of npm and PyPI; run tests/all"]
async fn published_clients_sign_their_users_in() {
    let provider = OpenId::start();
    let (_running, url) = serve_mail(&provider);
    for client in CLIENTS {
        let seen = client.call(&url, "alice");
        let context = format!("{client:?}: {seen:#}");
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
