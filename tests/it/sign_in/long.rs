//! A published client with a metadata document. Those that register are tested with the deployed
//! function. `.ci/long` runs this test.

use std::process::Command;

use lambda_tools::{Auth, OAuth, SignIn, secrets::Secrets};
use serde_json::{Value, json};
use test_support::{Served, installed, openid::OpenId, repository};

use super::documents;
use crate::support::server;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider and FastMCP; run .ci/long"]
async fn fastmcps_client_signs_in_with_its_metadata_document() {
    let (openid, hosts) = (OpenId::start(), documents::Hosts::with_a_client().await);
    let network = hosts.network();
    let router = async |url: &str| {
        let sign_in = SignIn::openid(&openid.url, "toolbox", "SECRET").allow("user:alice");
        let auth = Auth::from(sign_in.documents_from(network)).scope("mail.read");
        let secrets = [
            ("SECRET", "toolbox-secret"),
            ("TOOLS_OAUTH_KEY", super::KEY),
        ];
        let server = server(super::tools()).auth(auth).oauth(OAuth::with([]));
        let server = server.secrets(Secrets::fixed(secrets)).public_url(url);
        server.into_router().unwrap()
    };
    let server = Served::start_with(router).await;
    openid
        .allow_redirect(&format!("{}/authorization/openid/callback", server.url))
        .await;
    let mut command = Command::new("timeout");
    command
        .args(["--kill-after=5", "60"])
        .arg(installed("python"))
        .arg(repository("functions/toolbox/tests/fastmcp_oauth.py"))
        .args([
            &format!("{}/mcp", server.url),
            "alice",
            "--tool",
            "Mail_Whose",
        ])
        .args(["--arguments", "{}", "--metadata-url", documents::ID]);
    let output = tokio::task::block_in_place(|| command.output()).unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let seen: Value = serde_json::from_str(&stdout).unwrap_or_else(|it| panic!("{it}: {stderr}"));
    assert_eq!(seen["asked"][0]["client_id"], documents::ID, "{seen}");
    let said = seen["call"]["value"]["result"].as_str();
    let said: Value = serde_json::from_str(said.unwrap_or_else(|| panic!("{seen}"))).unwrap();
    assert_eq!(said["user"], json!("alice"));
    assert!(hosts.requests() > 0);
}
