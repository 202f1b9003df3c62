//! Attacks on the authorization flow, all of which must fail.

use test_support::openid::{Act, Browser, OpenId, Page, form_in};

use super::{ToolServer, assert_value, serve, status};

/// Returns a browser whose user has allowed access, and the callback URL to which the provider
/// sends it.
async fn before_callback(server: &ToolServer, user: &str, login: &str) -> (Browser, String) {
    let challenge = server.challenge(user).await;
    let browser = Browser::of(login);
    let callback = browser.follow_to_callback(&challenge.url, Act::Allow).await;
    (browser, callback.to_string())
}

#[track_caller]
fn assert_rejected(page: &Page) {
    assert_eq!(page.status, 400, "{page:?}");
    assert!(
        page.body.contains("cannot be used in this browser"),
        "{page:?}"
    );
}

/// Returns the URL with another value for one query parameter.
fn with_parameter(url: &str, name: &str, value: &str) -> String {
    let mut url: reqwest::Url = url.parse().unwrap();
    let pairs = url.query_pairs().into_owned();
    let pairs: Vec<(String, String)> = pairs.filter(|(key, _)| key != name).collect();
    url.query_pairs_mut()
        .clear()
        .extend_pairs(pairs)
        .append_pair(name, value);
    url.to_string()
}

fn value_of(url: &str, name: &str) -> String {
    let url: reqwest::Url = url.parse().unwrap();
    let mut pairs = url.query_pairs().into_owned();
    pairs.find(|(key, _)| key == name).unwrap().1
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn a_callback_works_only_in_the_browser_that_started_it() {
    let openid = OpenId::start();
    let server = serve(&openid).await;
    // CSRF: the attacker's callback URL, opened by another user.
    let (_, callback) = before_callback(&server, "mallory", "mallory").await;
    assert_rejected(&Browser::of("alice").get(&callback).await);
    // Also in a browser that has started its own challenge.
    let (alice, own) = before_callback(&server, "user-1", "alice").await;
    assert_rejected(&alice.get(&callback).await);
    assert_eq!(
        openid.token_requests("authorization_code").await,
        (0, 0),
        "no code is exchanged"
    );
    assert!(alice.get(&own).await.body.contains("Done"));
    assert_value(server.call("user-1").await, "alice");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn a_code_from_another_session_is_rejected() {
    let openid = OpenId::start();
    let server = serve(&openid).await;
    let (_, attackers) = before_callback(&server, "mallory", "mallory").await;
    let challenge = server.challenge("user-1").await;
    let alice = Browser::of("alice");
    let own = alice.follow_to_callback(&challenge.url, Act::Allow).await;
    // The attacker's code with the victim's state: the PKCE verifier does not match.
    let mixed = with_parameter(own.as_str(), "code", &value_of(&attackers, "code"));
    let page = alice.get(&mixed).await;
    assert!(page.body.contains("did not work"), "{page:?}");
    assert_eq!(status(&challenge).await, "failed");
    server.challenge("user-1").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn a_modified_state_is_rejected() {
    let openid = OpenId::start();
    let server = serve(&openid).await;
    let (browser, callback) = before_callback(&server, "user-1", "alice").await;
    let other = server.challenge("user-2").await;
    let state = value_of(&callback, "state");
    let (id, tag) = state.split_once('.').unwrap();
    let flipped = if tag.starts_with('A') { "B" } else { "A" };
    for state in [
        String::new(),
        id.to_owned(),
        // Of another user's challenge.
        format!("{}.{tag}", other.id),
        format!("{id}.{flipped}{}", &tag[1..]),
    ] {
        assert_rejected(
            &browser
                .get(&with_parameter(&callback, "state", &state))
                .await,
        );
    }
    // A parameter must not be repeated: RFC 6749, 3.1.
    assert_rejected(&browser.get(&format!("{callback}&state={state}")).await);
    assert_rejected(&browser.get(&format!("{callback}&code=x")).await);
    // On the path of another provider.
    let elsewhere = callback.replace("/google/", "/github/");
    assert_eq!(browser.get(&elsewhere).await.status, 404);
    assert_eq!(openid.token_requests("authorization_code").await, (0, 0));
    assert!(browser.get(&callback).await.body.contains("Done"));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn a_callback_works_once() {
    let openid = OpenId::start();
    let server = serve(&openid).await;
    let (browser, callback) = before_callback(&server, "user-1", "alice").await;
    // Other methods do not consume it.
    for method in [reqwest::Method::HEAD, reqwest::Method::POST] {
        let sent = reqwest::Client::new().request(method, &callback).send();
        assert_eq!(sent.await.unwrap().status(), 405);
    }
    assert!(browser.get(&callback).await.body.contains("Done"));
    // The browser may reload the page; the code is not exchanged again.
    assert!(browser.get(&callback).await.body.contains("Done"));
    assert_eq!(openid.token_requests("authorization_code").await, (1, 0));
    assert_value(server.call("user-1").await, "alice");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn pages_do_not_echo_the_request() {
    let openid = OpenId::start();
    let server = serve(&openid).await;
    let (browser, callback) = before_callback(&server, "user-1", "alice").await;
    let script = "<script>alert('mark')</script>";
    let error = with_parameter(
        &with_parameter(&callback, "error", script),
        "error_description",
        script,
    );
    let strangers_page = Browser::of("mallory").get(&error).await;
    let users_page = browser.get(&error).await;
    for page in [&strangers_page, &users_page] {
        assert!(
            !page.body.contains("mark") && !page.body.contains("<script"),
            "{page:?}"
        );
    }
    assert_rejected(&strangers_page);
    assert!(users_page.body.contains("did not work"), "{users_page:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn requests_cannot_choose_the_redirect_target() {
    let openid = OpenId::start();
    let server = serve(&openid).await;
    let challenge = server.challenge("user-1").await;
    let evil = "https://evil.example";
    for query in ["redirect_uri", "url", "next", "return_to", "iss"] {
        let page = Browser::of("alice")
            .start(&format!("{}?{query}={evil}", challenge.url))
            .await;
        assert_eq!(page.status, 303);
        let location = &page.headers["location"];
        assert!(
            location.starts_with(&openid.url) && !location.contains("evil"),
            "{location}"
        );
    }
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    let client = client.build().unwrap();
    for (name, value) in [
        ("host", "evil.example"),
        ("x-forwarded-host", "evil.example"),
        ("origin", evil),
    ] {
        let request = client.get(&challenge.url).header(name, value);
        let response = request.send().await.unwrap();
        let cookie = &response.headers()["set-cookie"];
        let cookie = cookie.to_str().unwrap().to_owned();
        let page = response.text().await.unwrap();
        assert!(!page.contains("evil"), "{page}");
        let request = client.post(&challenge.url).header(name, value);
        let request = request
            .header("cookie", cookie.split(';').next().unwrap())
            .form(&[("form", form_in(&page).unwrap())]);
        let response = request.send().await.unwrap();
        let location = response.headers()["location"].to_str().unwrap();
        assert!(location.starts_with(&openid.url), "{location}");
        assert!(!location.contains("evil"), "{location}");
        let body = serde_json::json!({"tool_id": "Account.Whoami", "context": {"user_id": "u"}});
        let request = client
            .post(format!("{}/tools/call", server.served.url))
            .header(name, value);
        let response = request.body(body.to_string()).send().await.unwrap();
        let text = response.text().await.unwrap();
        assert!(!text.contains("evil"), "{text}");
    }
    // A callback of another issuer, or without the issuer that this provider always names: RFC
    // 9207, 2.4.
    for (user, issuer) in [("user-3", Some(evil)), ("user-4", None)] {
        let (browser, callback) = before_callback(&server, user, "alice").await;
        let named = value_of(&callback, "iss");
        assert_eq!(named, openid.url);
        let changed = match issuer {
            Some(issuer) => with_parameter(&callback, "iss", issuer),
            None => callback.replace("&iss=", "&other="),
        };
        let page = browser.get(&changed).await;
        assert!(page.body.contains("did not work"), "{issuer:?} {page:?}");
    }
    assert_eq!(openid.token_requests("authorization_code").await, (0, 0));
}
