//! What must not be possible: each attack, refused.

use std::time::Duration;

use lambda_tools::Auth;

use test_support::openid::{Act, Browser, OpenId, Page, form_in};

use super::{Served, assert_value, call, challenge_in, serve, serve_as, serve_with, status};

/// A browser that has allowed access, and the URL to which the provider sends it back.
async fn on_the_way_back(served: &Served, user: &str, login: &str) -> (Browser, String) {
    let challenge = served.challenge(user).await;
    let browser = Browser::of(login);
    let callback = browser.follow_to_callback(&challenge.url, Act::Allow).await;
    (browser, callback.to_string())
}

#[track_caller]
fn assert_refused(page: &Page) {
    assert_eq!(page.status, 400, "{page:?}");
    assert!(
        page.body.contains("does not belong to this browser"),
        "{page:?}"
    );
}

/// The same URL with another value for one parameter.
fn with(url: &str, name: &str, value: &str) -> String {
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
async fn a_callback_works_in_its_own_browser_only() {
    let openid = OpenId::start();
    let served = serve(&openid).await;
    // CSRF: the attacker's own answer, opened by somebody else.
    let (_, callback) = on_the_way_back(&served, "mallory", "mallory").await;
    assert_refused(&Browser::of("alice").get(&callback).await);
    // Also by a browser that is in a challenge of its own.
    let (alice, own) = on_the_way_back(&served, "user-1", "alice").await;
    assert_refused(&alice.get(&callback).await);
    assert_eq!(
        openid.asked_for("authorization_code").await,
        (0, 0),
        "no code is exchanged"
    );
    assert!(alice.get(&own).await.body.contains("Done"));
    assert_value(served.call("user-1").await, "alice");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn a_code_of_another_session_is_worth_nothing() {
    let openid = OpenId::start();
    let served = serve(&openid).await;
    let (_, theirs) = on_the_way_back(&served, "mallory", "mallory").await;
    let challenge = served.challenge("user-1").await;
    let alice = Browser::of("alice");
    let own = alice.follow_to_callback(&challenge.url, Act::Allow).await;
    // The attacker's code with the victim's state: the verifier is another browser's.
    let mixed = with(own.as_str(), "code", &value_of(&theirs, "code"));
    let page = alice.get(&mixed).await;
    assert!(page.body.contains("did not work"), "{page:?}");
    assert_eq!(status(&challenge).await, "failed");
    served.challenge("user-1").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn a_state_that_was_changed_is_refused() {
    let openid = OpenId::start();
    let served = serve(&openid).await;
    let (browser, callback) = on_the_way_back(&served, "user-1", "alice").await;
    let other = served.challenge("user-2").await;
    let state = value_of(&callback, "state");
    let parts: Vec<_> = state.split('.').collect();
    let (id, until, tag) = (parts[0], parts[1], parts[2]);
    let flipped = if tag.starts_with('A') { "B" } else { "A" };
    for state in [
        String::new(),
        "x".to_owned(),
        format!("{id}.{until}"),
        format!("{id}.{until}."),
        // For another user.
        format!("{}.{until}.{tag}", other.id),
        // For longer.
        format!("{id}.9{until}.{tag}"),
        format!("{id}.{until}.{flipped}{}", &tag[1..]),
        format!("{id}.{until}.{tag}.{tag}"),
        format!("{id}.-1.{tag}"),
    ] {
        assert_refused(&browser.get(&with(&callback, "state", &state)).await);
    }
    // Twice is none: RFC 6749, 3.1.
    assert_refused(&browser.get(&format!("{callback}&state={state}")).await);
    assert_refused(&browser.get(&format!("{callback}&code=x")).await);
    // At another provider's path.
    let elsewhere = callback.replace("/google/", "/github/");
    assert_eq!(browser.get(&elsewhere).await.status, 404);
    assert_eq!(openid.asked_for("authorization_code").await, (0, 0));
    assert!(browser.get(&callback).await.body.contains("Done"));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn a_callback_works_once_and_in_time() {
    let openid = OpenId::start();
    let served = serve(&openid).await;
    let (browser, callback) = on_the_way_back(&served, "user-1", "alice").await;
    assert!(browser.get(&callback).await.body.contains("Done"));
    // Its own browser may reload the page; no code is exchanged again.
    assert!(browser.get(&callback).await.body.contains("Done"));
    assert_eq!(openid.asked_for("authorization_code").await, (1, 0));
    assert_value(served.call("user-1").await, "alice");

    let life = Duration::from_secs(1);
    let served = serve_with(&openid, |it| it.challenges_expire_after(life)).await;
    let challenge = served.challenge("user-1").await;
    let browser = Browser::of("alice");
    let callback = browser.follow_to_callback(&challenge.url, Act::Allow).await;
    tokio::time::sleep(life + Duration::from_millis(300)).await;
    // The cookie has expired with it.
    assert_refused(&browser.get(callback.as_str()).await);
    assert_eq!(status(&challenge).await, "failed");
    let page = browser.get(&challenge.url).await;
    assert!(
        page.status == 404 && page.body.contains("expired"),
        "{page:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn pages_repeat_nothing_and_load_nothing() {
    let openid = OpenId::start();
    let served = serve(&openid).await;
    let (browser, callback) = on_the_way_back(&served, "user-1", "alice").await;
    let script = "<script>alert('mark')</script>";
    let error = with(
        &with(&callback, "error", script),
        "error_description",
        script,
    );
    let strangers = Browser::of("mallory").get(&error).await;
    let owners = browser.get(&error).await;
    for page in [&strangers, &owners] {
        assert!(
            !page.body.contains("mark") && !page.body.contains("<script"),
            "{page:?}"
        );
        let policy = &page.headers["content-security-policy"];
        assert!(
            policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'")
        );
        assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
        assert_eq!(page.headers["referrer-policy"], "no-referrer");
        assert_eq!(page.headers["cache-control"], "no-store");
        assert_eq!(page.headers["x-content-type-options"], "nosniff");
    }
    assert_refused(&strangers);
    assert!(owners.body.contains("did not work"), "{owners:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn nothing_in_a_request_decides_where_browsers_are_sent() {
    let openid = OpenId::start();
    let served = serve(&openid).await;
    let challenge = served.challenge("user-1").await;
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
        let asked = client.get(&challenge.url).header(name, value);
        let asked = asked.send().await.unwrap();
        let cookie = asked.headers()["set-cookie"].to_str().unwrap().to_owned();
        let page = asked.text().await.unwrap();
        assert!(!page.contains("evil"), "{page}");
        let sent = client.post(&challenge.url).header(name, value);
        let sent = sent
            .header("cookie", cookie.split(';').next().unwrap())
            .form(&[("form", form_in(&page).unwrap())]);
        let sent = sent.send().await.unwrap();
        let location = sent.headers()["location"].to_str().unwrap();
        assert!(location.starts_with(&openid.url), "{location}");
        assert!(!location.contains("evil"), "{location}");
        let body = serde_json::json!({"tool_id": "Account.Whoami", "context": {"user_id": "u"}});
        let sent = client
            .post(format!("{}/tools/call", served.url))
            .header(name, value);
        let sent = sent.body(body.to_string()).send().await.unwrap();
        let answer = sent.text().await.unwrap();
        assert!(!answer.contains("evil"), "{answer}");
    }
    // An answer of another issuer: RFC 9207.
    let (browser, callback) = on_the_way_back(&served, "user-3", "alice").await;
    let page = browser.get(&with(&callback, "iss", evil)).await;
    assert!(page.body.contains("did not work"), "{page:?}");
    assert_eq!(openid.asked_for("authorization_code").await, (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn challenges_cannot_be_guessed_and_tell_nothing() {
    let openid = OpenId::start();
    let served = serve(&openid).await;
    let challenge = served.challenge("user-1").await;
    // The first half says where it is kept; the second has to be known.
    let (place, nonce) = challenge.id.split_at(32);
    let check = format!("{}/authorization/challenges", served.url);
    let guesses = [
        format!("{place}{}", "0".repeat(32)),
        format!("{}{nonce}", "0".repeat(32)),
        place.to_owned(),
        "x".to_owned(),
        "%00".to_owned(),
        "..%2f..".to_owned(),
        "é".to_owned(),
        "0".repeat(10_000),
    ];
    for guess in guesses {
        let answer = reqwest::get(format!("{check}/{guess}")).await.unwrap();
        let (status, body) = (answer.status(), answer.text().await.unwrap());
        assert_eq!(
            (status.as_u16(), &*body),
            (200, r#"{"status":"failed"}"#),
            "{guess}"
        );
        let page = Browser::of("mallory")
            .get(&format!("{check}/{guess}/start"))
            .await;
        assert_eq!(page.status, 404, "{guess}");
    }
    // Users do not show.
    assert!(!challenge.url.contains("user-1") && !challenge.url.contains("alice"));
    assert_eq!(
        status(&challenge).await,
        "pending",
        "nothing of it did any harm"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn looking_uses_nothing_up() {
    let openid = OpenId::start();
    let served = serve(&openid).await;
    let (browser, callback) = on_the_way_back(&served, "user-1", "alice").await;
    let client = reqwest::Client::new();
    for method in [reqwest::Method::HEAD, reqwest::Method::POST] {
        let answer = client.request(method, &callback).send().await.unwrap();
        assert_eq!(answer.status(), 405);
    }
    assert!(browser.get(&callback).await.body.contains("Done"));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn a_caller_gets_nothing_of_what_anothers_user_has_allowed() {
    let openid = OpenId::start();
    let keys = Auth::api_key_ids(["KEY", "OTHER_KEY"]);
    let served = serve_as(&openid, |it| it, |server| server.auth(keys)).await;
    let client = |key: &str| served.client.clone().api_key(key);
    let (ours, theirs) = (client("key-of-the-caller"), client("key-of-another-caller"));
    let tool = "Account.Whoami";
    let challenge = challenge_in(call(&ours, tool, "alice").await);
    Browser::of("alice")
        .follow(&challenge.url, Act::Allow)
        .await;
    assert_value(call(&ours, tool, "alice").await, "alice");
    // The other caller's alice is somebody else.
    let other = challenge_in(call(&theirs, "Account.WhoamiByMail", "alice").await);
    let page = Browser::of("mallory").get(&other.url).await;
    assert!(page.body.contains("key OTHER_KEY"), "{page:?}");
    assert!(!page.body.contains("gmail.readonly"), "{page:?}");
    let page = Browser::of("mallory").start(&other.url).await;
    assert_eq!(value_of(&page.headers["location"], "scope"), "mail");
    Browser::of("mallory").follow(&other.url, Act::Allow).await;
    let tool_of_theirs = challenge_in(call(&theirs, tool, "alice").await);
    assert_eq!(status(&tool_of_theirs).await, "pending");
    // Nor has it become the first one's.
    assert_value(call(&ours, tool, "alice").await, "alice");
    assert_ne!(challenge.id, tool_of_theirs.id);
}
