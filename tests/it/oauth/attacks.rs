//! Attacks on the authorization flow, all of which must fail.

use lambda_tools::{OAuth, oauth::Provider};
use serde_json::json;
use test_support::issuer::Issuer;

use super::{assert_done, query_for, start};
use crate::consent_page::local::{AUTHORIZE, Local, Page};

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
    let replaced = |at: usize| {
        let other = if &state[at..=at] == "A" { "B" } else { "A" };
        format!("{}{other}{}", &state[..at], &state[at + 1..])
    };
    // In the id, and in the signature.
    let changed = [replaced(0), replaced(state.len() - 5)];
    let [of_id, of_signature] = changed.each_ref().map(String::as_str);
    let short = &state[..state.len() - 1];
    for state in [of_id, of_signature, "", &state[1..], short, other.state()] {
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
    let query = format!(
        "{}&error={script}&error_description={script}",
        query_for(&own)
    );
    let strangers = server.back("", &query).await;
    assert_rejected(&strangers, "without the cookie");
    let users = server.back(own.cookie(), &query).await;
    assert!(users.body.contains("did not work"), "{}", users.body);
    for page in [strangers, users] {
        assert!(!page.body.contains("mark"), "{}", page.body);
    }
}

#[tokio::test]
async fn requests_cannot_choose_the_redirect_target() {
    let (server, _issuer) = start().await;
    let id = server.challenge("alice").await;
    let start = format!("/authorization/challenges/{id}/start");
    let queries = ["redirect_uri", "url", "next", "return_to", "iss"];
    let queries = queries.map(|it| (format!("{start}?{it}=https://evil.example"), ("x-a", "b")));
    let headers = [
        ("host", "evil.example"),
        ("x-forwarded-host", "evil.example"),
        ("origin", "https://evil.example"),
    ];
    let headers = headers.map(|header| (start.clone(), header));
    for (path, header) in queries.into_iter().chain(headers) {
        let page = server.send("GET", &path, &[header], "").await;
        let form = format!("form={}", page.form());
        let headers = [header, ("cookie", page.cookie())];
        let redirect = server.send("POST", &path, &headers, form).await;
        let location = redirect.header("location");
        assert!(location.starts_with(AUTHORIZE), "{location}");
        for text in [&page.body, location] {
            assert!(!text.contains("evil"), "{header:?}: {text}");
        }
    }
}

/// RFC 9207, 2.4: a callback of another issuer, or without the issuer that this provider names.
#[tokio::test]
async fn a_callback_of_another_issuer_is_rejected() {
    let issuer = Issuer::start().await;
    let url = issuer.url.clone();
    let metadata = json!({
        "issuer": url,
        "authorization_endpoint": format!("{url}/authorize"),
        "token_endpoint": format!("{url}/token"),
        "authorization_response_iss_parameter_supported": true,
    });
    issuer.change(|it| it.metadata = Some(metadata));
    let server = Local::with_oauth(OAuth::with([Provider::openid(
        "mail", "id", "SECRET", &url,
    )]));
    for (user, named, is_accepted) in [
        ("alice", "&iss=https://evil.example".to_owned(), false),
        ("bob", String::new(), false),
        ("carol", format!("&iss={url}"), true),
    ] {
        let parameters = format!("code=c{named}");
        let page = server
            .finish(&server.challenge(user).await, &parameters)
            .await;
        let text = if is_accepted { "Done" } else { "did not work" };
        assert!(page.body.contains(text), "{user}: {}", page.body);
        assert_eq!(issuer.behaviour().token_requests, usize::from(is_accepted));
    }
}
