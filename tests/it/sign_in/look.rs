//! The pages on which users sign in, in Chromium: their look, and a sign-in with the keyboard.

use std::collections::HashMap;

use axum::{Router, http::HeaderMap, response::Html, routing::get};
use lambda_tools::{Auth, OAuth, ServerInfo, SignIn, secrets::Secrets};
use reqwest::Url;
use serde_json::{Value, json};
use test_support::{Served, chromium, openid::OpenId, repository};

use super::{Browser, CALLBACK, Server, documents};
use crate::{
    consent_page::look::{Recorded, problems_of},
    support::server,
};

/// Returns a page with its status and headers.
async fn shown(url: &Url) -> (u16, HeaderMap, String) {
    let response = reqwest::get(url.clone()).await.unwrap();
    let (status, mut headers) = (response.status().as_u16(), response.headers().clone());
    for name in ["set-cookie", "content-length", "date"] {
        headers.remove(name);
    }
    (status, headers, response.text().await.unwrap())
}

async fn pages() -> Recorded {
    let hosts = documents::Hosts::with_a_client();
    let server = documents::serving(&hosts).await;
    let mut pages = HashMap::new();
    let mut keep = async |name: &str, status: u16, url: Url| {
        let page = shown(&url).await;
        assert_eq!(page.0, status, "{name} {}", page.2);
        pages.insert(name.to_owned(), page);
    };
    let local = ("redirect_uri", "http://localhost:3118/callback");
    keep("document", 200, server.authorize_url(documents::ID, &[])).await;
    keep(
        "program",
        200,
        server.authorize_url(documents::ID, &[local]),
    )
    .await;
    let registered = server.registered(CALLBACK).await;
    let scope = ("scope", "mail.send");
    keep(
        "registered",
        200,
        server.authorize_url(&registered, &[scope]),
    )
    .await;
    let app = "cursor://anysphere.cursor-mcp/oauth/callback";
    let registration = json!({
        "client_name": format!("<b>\u{202e}{}", "long name ".repeat(20)),
        "redirect_uris": [app],
    });
    let (_, answer) = server.post_json("register", &registration).await;
    let id = answer["client_id"].as_str().unwrap();
    keep(
        "app",
        200,
        server.authorize_url(id, &[("redirect_uri", app)]),
    )
    .await;
    keep("unknown", 400, server.authorize_url("unknown", &[])).await;
    let address = ("redirect_uri", "https://evil.example/callback");
    keep(
        "address",
        400,
        server.authorize_url(&registered, &[address]),
    )
    .await;
    let unreadable = "https://client.example/other.json";
    keep("unreadable", 400, server.authorize_url(unreadable, &[])).await;
    let mut twice = server.authorize_url(&registered, &[]);
    twice.query_pairs_mut().append_pair("state", "again");
    keep("invalid", 400, twice).await;
    let callback = format!(
        "{}/authorization/openid/callback?state=sign-in.x",
        server.url
    );
    keep("expired", 400, callback.parse().unwrap()).await;
    let listed = Server::with(|it| it.allow("anyone").client("other.example")).await;
    keep("unlisted", 403, listed.authorize_url(&registered, &[])).await;
    server.store.kill_at(0, false);
    server.upstream.change(|it| it.status = 503);
    let (browser, url) = (Browser::new(), server.authorize_url(&registered, &[]));
    let (_, page) = browser.open(url.as_str()).await;
    let form = test_support::openid::form_in(&page).unwrap();
    let (status, page) = browser.submit(&url, form, "continue").await;
    assert_eq!(status, 503);
    let (_, headers, _) = pages["expired"].clone();
    pages.insert("unavailable".to_owned(), (status, headers, page));
    pages
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's axe-core and Chromium; run tests/all"]
async fn every_page_is_readable_on_telephones_and_desktops_in_light_and_dark() {
    let views = problems_of("sign-in", pages().await).await;
    assert_eq!(views.len(), 44);
    let faulty: Vec<_> = views.iter().filter(|(_, it)| !it.is_empty()).collect();
    assert!(faulty.is_empty(), "{faulty:#?}");
}

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
