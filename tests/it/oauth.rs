//! Users' grants, with a provider in this process: the ways to one, and attacks, all of which must
//! fail. `openid.rs` has a certified `OpenID` provider.

#[cfg(feature = "dynamodb")]
mod instances;
mod openid;

use std::future::ready;

use axum::Router;
use lambda_tools::{Jwt, OAuth, oauth::Provider};
use serde_json::json;
use test_support::{
    Served, answer,
    issuer::{Issuer, sign_with_secret, tokens_for},
};

use crate::consent_page::local::{AUTHORIZE, Local, Page, Setup, challenge_in, mail_at, oauth_at};

/// Starts a server, and the provider that issues its tokens.
async fn start() -> (Local, Issuer) {
    let issuer = Issuer::start().await;
    (Local::with_oauth(oauth_at(&issuer)), issuer)
}

/// Returns the query with which the provider sends a browser back.
fn query_for(redirect: &Page) -> String {
    format!("code=c&state={}", redirect.state())
}

#[track_caller]
fn assert_done(page: &Page) {
    assert!(page.body.contains("<title>Done</title>"), "{}", page.body);
}

#[tokio::test]
async fn concurrent_callbacks_in_two_tabs_exchange_one_code() {
    let (server, issuer) = start().await;
    let id = server.challenge("alice").await;
    let page = server.open(&id).await;
    let redirect = server.press(&id, &page).await;
    // The tabs share the browser's state, and the provider returns to each with a code of its own.
    let back = async |code: &str| {
        let query = format!("code={code}&state={}", redirect.state());
        server.back(page.cookie(), &query).await
    };
    let (first, second) = tokio::join!(back("one"), back("other"));
    let is_done = [first, second].map(|it| it.body.contains("<title>Done</title>"));
    assert!(is_done.contains(&true));
    assert_eq!(issuer.behaviour().token_requests, 1);
    assert!(server.call("alice").await["value"].is_string());
    assert_done(&server.open(&id).await);
}

#[tokio::test]
async fn two_challenges_can_be_completed_in_one_browser() {
    let (server, _issuer) = start().await;
    let one = server.to_provider(&server.challenge("alice").await).await;
    let other = server.to_provider(&server.challenge("bob").await).await;
    let cookies = format!("{}; {}", one.cookie(), other.cookie());
    for redirect in [one, other] {
        assert_done(&server.back(&cookies, &query_for(&redirect)).await);
    }
}

#[tokio::test]
async fn a_user_who_has_denied_access_can_be_asked_again() {
    let (server, _issuer) = start().await;
    let denied = server.challenge("alice").await;
    server.finish(&denied, "error=access_denied").await;
    let again = server.challenge("alice").await;
    assert_ne!(again, denied);
    assert_done(&server.finish(&again, "code=c").await);
    assert!(server.call("alice").await["value"].is_string());
    assert_eq!(server.status(&denied).await, "failed");
}

#[tokio::test]
async fn a_grant_that_has_ended_leads_to_a_new_challenge() {
    let (server, issuer) = start().await;
    server.granted("alice").await;
    // The provider's API does not accept the token.
    let input = json!({"reject": true});
    let rejected = server.call_tool("Mail.Read", input, "alice").await;
    issuer.change(|it| it.tokens = |_| tokens_for(30));
    server.finish(&challenge_in(&rejected), "code=c").await;
    assert!(server.call("alice").await["value"].is_string());
    // The token must be refreshed, and the provider refuses that.
    issuer.change(|it| it.tokens = |_| json!({"error": "invalid_grant"}));
    server.challenge("alice").await;
}

#[tokio::test]
async fn more_scopes_need_another_challenge_and_then_one_token_has_them_all() {
    let (server, _issuer) = start().await;
    server.granted("alice").await;
    let call = async || server.call_tool("Mail.Send", json!({}), "alice").await;
    let redirect = server.to_provider(&challenge_in(&call().await)).await;
    let location = redirect.header("location");
    for scope in ["mail.read", "mail.send", "offline"] {
        assert!(location.contains(scope), "{location}");
    }
    assert_done(&server.back(redirect.cookie(), &query_for(&redirect)).await);
    let sent = call().await;
    assert!(sent["value"].is_string(), "{sent}");
    assert_eq!(server.call("alice").await["value"], sent["value"]);
}

#[tokio::test]
async fn an_unavailable_provider_does_not_fail_the_challenge() {
    let provider = Provider::openid("mail", "id", "SECRET", "http://127.0.0.1:9");
    let server = Local::with_oauth(OAuth::with([provider]));
    let id = server.challenge("alice").await;
    assert_eq!(server.to_provider(&id).await.status, 503);
    assert_eq!(server.status(&id).await, "pending");
}

/// A token request has the client secret, which a redirect would bring to another server.
#[tokio::test]
async fn a_token_request_is_not_redirected() {
    let issuer = Issuer::start().await;
    let location = format!("{}/token", issuer.url);
    let moved = move || ready(answer(307, &[("location", &location)], ""));
    let moved = Served::start(Router::new().fallback(moved)).await;
    let server = Local::with_oauth(OAuth::with([mail_at(&moved.url)]));
    let id = server.challenge("alice").await;
    let page = server.finish(&id, "code=c").await;
    assert!(page.body.contains("did not work"), "{}", page.body);
    assert_eq!(issuer.behaviour().token_requests, 0);
}

#[tokio::test]
async fn an_opentool_error_contains_the_link() {
    let issuer = Issuer::start().await;
    let server = Local::with(Setup {
        auth: Jwt::with_secret_ids(["NEW_KEY"]).subject_is_user().into(),
        oauth: oauth_at(&issuer),
        ..Setup::default()
    });
    let claims = json!({"sub": "alice", "exp": 4_000_000_000_u64});
    let token = sign_with_secret("another-key-of-this-server-0123456789", &claims);
    let headers = [("authorization", &*format!("Bearer {token}"))];
    let body = json!({"jsonrpc": "2.0", "id": "1", "method": "Mail_Read", "params": {}});
    let sent = server.send("POST", "/opentool/call", &headers, body.to_string());
    let error = sent.await.body;
    let (_, link) = error.split_once("/authorization/challenges/").unwrap();
    assert!(link.contains("/start"), "{error}");
}

#[track_caller]
fn assert_rejected(page: &Page, what: &str) {
    let why = "cannot be used in this browser";
    assert_eq!(page.status, 400, "{what}");
    assert!(page.body.contains(why), "{what}: {}", page.body);
}

#[tokio::test]
async fn a_callback_works_only_in_the_browser_that_started_it() {
    let (server, issuer) = start().await;
    // CSRF: the attacker's callback URL, opened by another user.
    let attackers = server.to_provider(&server.challenge("mallory").await).await;
    let own = server.to_provider(&server.challenge("alice").await).await;
    let (name, _) = attackers.cookie().split_once('=').unwrap();
    let (_, value) = own.cookie().split_once('=').unwrap();
    for cookie in ["", own.cookie(), &format!("{name}={value}")] {
        let page = server.back(cookie, &query_for(&attackers)).await;
        assert_rejected(&page, cookie);
    }
    assert_eq!(issuer.behaviour().token_requests, 0);
    assert_done(&server.back(own.cookie(), &query_for(&own)).await);
    assert!(server.call("alice").await["value"].is_string());
}

#[tokio::test]
async fn a_modified_state_is_rejected() {
    let (server, issuer) = start().await;
    let own = server.to_provider(&server.challenge("alice").await).await;
    let other = server.to_provider(&server.challenge("bob").await).await;
    let (cookie, state) = (own.cookie(), own.state());
    let short = &state[..state.len() - 1];
    for state in ["", &state[1..], short, other.state()] {
        let page = server.back(cookie, &format!("code=c&state={state}")).await;
        assert_rejected(&page, state);
    }
    // A parameter must not be repeated: RFC 6749, 3.1.
    let query = query_for(&own);
    for repeated in [format!("{query}&state={state}"), format!("{query}&code=x")] {
        assert_rejected(&server.back(cookie, &repeated).await, &repeated);
    }
    // On the path of another provider.
    let elsewhere = format!("/authorization/github/callback?{query}");
    let headers = [("cookie", cookie)];
    let page = server.send("GET", &elsewhere, &headers, "").await;
    assert_eq!(page.status, 404);
    assert_eq!(issuer.behaviour().token_requests, 0);
    assert_done(&server.back(cookie, &query).await);
}

#[tokio::test]
async fn a_callback_works_once() {
    let (server, issuer) = start().await;
    let own = server.to_provider(&server.challenge("alice").await).await;
    let (query, headers) = (query_for(&own), [("cookie", own.cookie())]);
    // Other methods do not consume it.
    for method in ["HEAD", "POST"] {
        let path = format!("/authorization/mail/callback?{query}");
        assert_eq!(server.send(method, &path, &headers, "").await.status, 405);
    }
    // The browser may reload the page; the code is not exchanged again.
    for _ in 0..2 {
        assert_done(&server.back(own.cookie(), &query).await);
        assert_eq!(issuer.behaviour().token_requests, 1);
    }
}

#[tokio::test]
async fn pages_do_not_echo_the_request() {
    let (server, _issuer) = start().await;
    let own = server.to_provider(&server.challenge("alice").await).await;
    let script = "%3Cscript%3Ealert('mark')%3C/script%3E";
    let own_query = query_for(&own);
    let query = format!("{own_query}&error={script}&error_description={script}");
    let strangers = server.back("", &query).await;
    assert_rejected(&strangers, "without the cookie");
    let users = server.back(own.cookie(), &query).await;
    assert!(users.body.contains("did not work"), "{}", users.body);
    for page in [strangers, users] {
        assert!(!page.body.contains("mark"), "{}", page.body);
    }
}

/// `events/authorization` has requests with another `Host`.
#[tokio::test]
async fn requests_cannot_choose_the_redirect_target() {
    let (server, _issuer) = start().await;
    let id = server.challenge("alice").await;
    let evil = "https://evil.example";
    let query = format!("redirect_uri={evil}&url={evil}&next={evil}&return_to={evil}&iss={evil}");
    let path = format!("/authorization/challenges/{id}/start?{query}");
    let page = server.send("GET", &path, &[("origin", evil)], "").await;
    let headers = [("origin", evil), ("cookie", page.cookie())];
    let form = format!("form={}", page.form());
    let redirect = server.send("POST", &path, &headers, form).await;
    let location = redirect.header("location");
    assert!(location.starts_with(AUTHORIZE), "{location}");
    for text in [&page.body, location] {
        assert!(!text.contains("evil"), "{text}");
    }
}
