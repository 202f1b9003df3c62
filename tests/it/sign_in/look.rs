//! A sign-in with the keyboard, in Chromium.

use axum::{Router, response::Html, routing::get};
use lambda_tools::{Auth, OAuth, ServerInfo, SignIn, secrets::Secrets};
use serde_json::Value;
use test_support::{Served, chromium, openid::OpenId, repository};

use super::Server;
use crate::support::server;

/// Chromium applies the page's policy to all redirects after the form: to the provider, back, and to
/// the client on this machine.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider and Chromium; run tests/all"]
async fn a_user_signs_in_with_the_keyboard() {
    let openid = OpenId::start();
    let landed = async || Html("<!doctype html><title>Landed</title><button>Landed</button>");
    let client_page = Served::start(Router::new().route("/callback", get(landed))).await;
    let router = async |url: &str| {
        let sign_in = SignIn::openid(&openid.url, "toolbox", "SECRET").allow("user:alice");
        let secrets = [
            ("SECRET", "toolbox-secret"),
            ("TOOLS_OAUTH_KEY", super::KEY),
        ];
        let server = server(super::tools()).auth(Auth::from(sign_in));
        let server = server
            .oauth(OAuth::with([]))
            .secrets(Secrets::fixed(secrets));
        let server = server.info(ServerInfo::new("Acme Assistant", "1.0.0"));
        server.public_url(url).into_router().unwrap()
    };
    let server = Server::at(Served::start_with(router).await).await;
    openid
        .allow_redirect(&format!("{}/authorization/openid/callback", server.url))
        .await;
    let callback = format!("{}/callback", client_page.url);
    let client = server.registered(&callback).await;
    let start = server.authorize_url(&client, &[("redirect_uri", &callback)]);
    let screenshot = repository("target/artifacts/sign-in.keyboard.png");
    std::fs::create_dir_all(screenshot.parent().unwrap()).unwrap();
    let file = screenshot.display().to_string();
    let arguments = [start.to_string(), file, "keyboard".to_owned()];
    let report: Value = chromium("authorization_flow.mjs", &arguments).await;
    assert_eq!(report["title"], "Landed", "{report}");
    assert!(
        !report["log"].to_string().contains("Security Policy"),
        "{report}"
    );
    assert!(report["outside"].as_array().unwrap().is_empty(), "{report}");
    let question = report["question"].as_str().unwrap();
    assert!(
        question.contains("A program on this computer"),
        "{question}"
    );
}
