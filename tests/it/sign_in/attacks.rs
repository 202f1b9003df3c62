//! Attacks by the sections of RFC 9700 and of MCP's "Security Best Practices". Each fails without
//! its guard.

use std::sync::Arc;

use lambda_tools::SignIn;
use serde_json::{Value, json};
use test_support::{issuer::Issuer, lambda::event};

use super::{Browser, CALLBACK, Server, Shared, callback_of, parameter};

async fn refused(server: &Server, client: &str, changes: &[(&str, &str)]) -> String {
    let url = server.authorize_url(client, changes);
    let (status, page) = Browser::new().open(url.as_str()).await;
    assert_eq!(status, 400, "{changes:?} {page}");
    page
}

/// Confused deputy: the provider may ask nobody, so this server must.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_reaches_the_provider_without_agreeing_first() {
    let server = Server::start().await;
    let client = server.registered(CALLBACK).await;
    let url = server.authorize_url(&client, &[]);
    let browser = Browser::new();
    let (status, page) = browser.open(url.as_str()).await;
    assert_eq!(status, 200);
    for shown in [
        "Test",
        "client.example",
        "mail.read",
        "Nobody has checked this name",
    ] {
        assert!(page.contains(shown), "{shown} {page}");
    }
    assert_eq!(server.store.len(), 0, "nothing is stored before that");
    let form = test_support::openid::form_in(&page).unwrap();
    let (status, landed) = browser.submit(&url, form, "cancel").await;
    assert_eq!(status, 303);
    let landed = landed.parse().unwrap();
    assert_eq!(
        parameter(&landed, "error").as_deref(),
        Some("access_denied")
    );
    assert_eq!(parameter(&landed, "state").as_deref(), Some("client-state"));
    assert_eq!(parameter(&landed, "iss"), Some(server.url.clone()));
}

/// The user agrees once for each client, and nobody else's agreement counts.
#[tokio::test(flavor = "multi_thread")]
async fn an_agreement_is_for_one_client_with_one_address_and_one_user() {
    let server = Server::start().await;
    let (client, other) = (
        server.registered(CALLBACK).await,
        server.registered(CALLBACK).await,
    );
    let (browser, url) = (Browser::new(), server.authorize_url(&client, &[]));
    browser.sign_in(&url, "alice").await;
    let asks = async |url: &reqwest::Url| browser.open(url.as_str()).await.0 == 200;
    assert!(!asks(&url).await);
    assert!(asks(&server.authorize_url(&other, &[])).await);
    assert!(asks(&server.authorize_url(&client, &[("scope", "mail.send")])).await);
    // Another user signs in in the same browser.
    let landed = browser.sign_in(&url, "bob").await;
    assert_eq!(
        parameter(&landed, "error").as_deref(),
        Some("access_denied")
    );
    assert!(asks(&url).await);

    // Any program on the user's machine could be at this address.
    let local = "http://localhost:3118/callback";
    let client = server.registered(local).await;
    let url = server.authorize_url(&client, &[("redirect_uri", local)]);
    browser.sign_in(&url, "alice").await;
    assert!(asks(&url).await);
}

/// CSRF, and fixation: a form or a sign-in of another browser.
#[tokio::test(flavor = "multi_thread")]
async fn forms_and_sign_ins_belong_to_one_browser() {
    let server = Server::start().await;
    let client = server.registered(CALLBACK).await;
    let url = server.authorize_url(&client, &[]);
    let (attacker, victim) = (Browser::new(), Browser::new());
    let (_, page) = attacker.open(url.as_str()).await;
    let form = test_support::openid::form_in(&page).unwrap();
    assert_eq!(
        victim.submit(&url, form, "continue").await.0,
        400,
        "without a cookie"
    );
    victim.open(url.as_str()).await;
    assert_eq!(
        victim.submit(&url, form, "continue").await.0,
        400,
        "with its own"
    );
    for forged in ["", "x", "AAAA.BBBB"] {
        assert_eq!(attacker.submit(&url, forged, "continue").await.0, 400);
    }
    // The victim follows the attacker's link from the provider, and would use the attacker's account.
    let provider = attacker.to_provider(&url).await;
    let callback = callback_of(&provider, &json!({"sub": "mallory"}));
    assert_eq!(victim.open(callback.as_str()).await.0, 400);
    let (status, landed) = attacker.open(callback.as_str()).await;
    assert_eq!(status, 303, "{landed}");
    // A state works once.
    assert_eq!(attacker.open(callback.as_str()).await.0, 400);
}

/// Clickjacking, and what else a page could do with the consent page.
#[tokio::test(flavor = "multi_thread")]
async fn the_consent_page_cannot_be_framed_or_cached() {
    let server = Server::start().await;
    let client = server
        .registered("cursor://anysphere.cursor-mcp/oauth/callback")
        .await;
    let uri = (
        "redirect_uri",
        "cursor://anysphere.cursor-mcp/oauth/callback",
    );
    let url = server.authorize_url(&client, &[uri]);
    let response = reqwest::get(url).await.unwrap();
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    let policy = header("content-security-policy");
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    assert!(policy.contains("default-src 'none'"), "{policy}");
    assert!(
        policy.contains("form-action 'self' https: http: cursor:;"),
        "{policy}"
    );
    assert_eq!(header("cache-control"), "no-store");
    let cookie = header("set-cookie");
    assert!(cookie.contains("HttpOnly; SameSite=Lax"), "{cookie}");
}

/// Open redirect: RFC 9700, 4.11. Only to the client's own addresses, even with an error.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_redirected_to_an_address_that_is_not_the_clients() {
    let server = Server::start().await;
    let client = server.registered(CALLBACK).await;
    for uri in [
        "https://evil.example/callback",
        "//evil.example",
        "javascript:alert(1)",
    ] {
        let page = refused(&server, &client, &[("redirect_uri", uri)]).await;
        assert!(!page.contains("evil.example"), "{page}");
    }
    // Without it, the only registered one counts.
    let url = server.authorize_url(&client, &[("redirect_uri", "")]);
    assert_eq!(Browser::new().open(url.as_str()).await.0, 200);
}

/// Forged registrations.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_id_must_be_one_that_this_server_has_issued() {
    let server = Server::start().await;
    let client = server.registered(CALLBACK).await;
    let (key, sealed) = client.split_once('.').unwrap();
    let flipped = if sealed.ends_with('A') { "B" } else { "A" };
    for forged in [
        "",
        "unknown",
        ".",
        &format!("{}{flipped}", &client[..client.len() - 1]),
        &format!("0000000000000000.{sealed}"),
        &format!("{key}.{}", "A".repeat(9000)),
        "https://",
        "http://a.example/c",
    ] {
        refused(&server, forged, &[("client_id", forged)]).await;
    }
    let other = Server::with_key("another-key-of-this-server-0123456789").await;
    refused(&other, &client, &[]).await;
    let name = "<script>alert(1)</script>\u{202e}".repeat(20);
    let body = json!({"client_name": name, "redirect_uris": [CALLBACK]});
    let (status, answer) = server.post_json("register", &body).await;
    assert_eq!(status, 201, "{answer}");
    let url = server.authorize_url(answer["client_id"].as_str().unwrap(), &[]);
    let (_, page) = Browser::new().open(url.as_str()).await;
    assert!(!page.contains("<script"), "{page}");
}

/// PKCE and the other parameters: RFC 9700, 2.1.1; RFC 7636; RFC 8707. Only a client that the owner
/// has listed gets the error: anyone can register any address, or name it in a document (RFC 9700,
/// 4.11.2).
#[tokio::test(flavor = "multi_thread")]
async fn weak_requests_are_refused() {
    let hosts = super::documents::Hosts::with_a_client();
    let open = super::documents::serving(&hosts).await;
    let network = hosts.network();
    let listed = Server::with(move |it| {
        let sign_in = it.allow("anyone").client("client.example");
        sign_in.documents_from(network.clone())
    });
    let listed = listed.await;
    let (stranger, known) = (
        open.registered(CALLBACK).await,
        listed.registered(CALLBACK).await,
    );
    let long = "s".repeat(2049);
    for (name, value, code) in [
        ("response_type", "token", "unsupported_response_type"),
        ("response_type", "", "invalid_request"),
        ("code_challenge", "", "invalid_request"),
        ("code_challenge", "short", "invalid_request"),
        ("code_challenge_method", "plain", "invalid_request"),
        ("code_challenge_method", "s256", "invalid_request"),
        ("code_challenge_method", "", "invalid_request"),
        ("response_mode", "fragment", "invalid_request"),
        ("response_mode", "form_post", "invalid_request"),
        ("resource", "https://other.example/mcp", "invalid_target"),
        (
            "resource",
            &format!("{}.evil.example", listed.url),
            "invalid_target",
        ),
        (
            "resource",
            &format!("{}/other", listed.url),
            "invalid_target",
        ),
        ("state", &long, "invalid_request"),
    ] {
        for client in [&*stranger, super::documents::ID] {
            let page = refused(&open, client, &[(name, value)]).await;
            assert!(!page.contains(CALLBACK), "{page}");
        }
        for client in [&*known, super::documents::ID] {
            let url = listed.authorize_url(client, &[(name, value)]);
            let (status, landed) = Browser::new().open(url.as_str()).await;
            assert_eq!(status, 303, "{name} {landed}");
            assert!(landed.starts_with(CALLBACK), "{landed}");
            let landed = landed.parse().unwrap();
            assert_eq!(
                parameter(&landed, "error").as_deref(),
                Some(code),
                "{name}={value}"
            );
            let state = if name == "state" {
                &*long
            } else {
                "client-state"
            };
            assert_eq!(parameter(&landed, "state").as_deref(), Some(state));
            assert_eq!(parameter(&landed, "iss"), Some(listed.url.clone()));
        }
    }
    // What this server does not know or does not do shows the page, which leads nowhere by itself.
    for (name, value) in [
        ("prompt", "none"),
        ("scope", "unknown"),
        ("max_age", "0"),
        ("state", &long[..2048]),
    ] {
        let url = open.authorize_url(super::documents::ID, &[(name, value)]);
        assert_eq!(Browser::new().open(url.as_str()).await.0, 200, "{name}");
    }
    let twice = format!("{}&state=other", open.authorize_url(&stranger, &[]));
    assert_eq!(Browser::new().open(&twice).await.0, 400);
}

/// Who presses the button of one page ten times begins one sign-in, whose record is small, whatever
/// the client has registered.
#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_is_sent_again_goes_on_with_the_same_sign_in() {
    let server = Server::start().await;
    let uris: Vec<_> = (0..9)
        .map(|it| format!("https://client.example/{it}{}", "a".repeat(200)))
        .chain([CALLBACK.to_owned()])
        .collect();
    let body = json!({"client_name": "Test", "redirect_uris": uris});
    let (_, answer) = server.post_json("register", &body).await;
    let client = answer["client_id"].as_str().unwrap();
    assert!(client.len() > 2000);
    let state = "s".repeat(2048);
    let (browser, url) = (
        Browser::new(),
        server.authorize_url(client, &[("state", &state)]),
    );
    let (_, page) = browser.open(url.as_str()).await;
    let form = test_support::openid::form_in(&page).unwrap();
    let first = browser.submit(&url, form, "continue").await;
    assert_eq!((first.0, server.store.len()), (303, 1));
    for _ in 0..9 {
        assert_eq!(browser.submit(&url, form, "continue").await, first);
    }
    assert_eq!(server.store.len(), 1);
    let bytes = server.store.largest_field();
    assert!(bytes < 4 * 1024, "{bytes}");
    // A second page of the same browser is another sign-in.
    let (_, page) = browser.open(url.as_str()).await;
    let other = test_support::openid::form_in(&page).unwrap();
    assert_ne!(browser.submit(&url, other, "continue").await, first);
    assert_eq!(server.store.len(), 2);
    let callback = callback_of(&first.1.parse().unwrap(), &json!({"sub": "alice"}));
    let (status, landed) = browser.open(callback.as_str()).await;
    assert_eq!(status, 303, "{landed}");
    let landed = landed.parse().unwrap();
    assert_eq!(parameter(&landed, "state"), Some(state));
    let code = parameter(&landed, "code").unwrap();
    assert_eq!(server.redeem(client, &code).await.0, 200);
    // It has been used up.
    assert_eq!(browser.submit(&url, form, "continue").await.0, 400);
}

/// Other sites of the same domain set cookies, and every way of transport keeps this server's.
#[tokio::test(flavor = "multi_thread")]
async fn cookies_of_other_sites_do_not_hide_this_servers_own() {
    const FOREIGN: &str = "__utmz=utmccn=Unders\u{f8}gelse";
    let (upstream, url) = (Issuer::start().await, "https://tools.example");
    let sign_in = SignIn::openid(&upstream.url, super::CLIENT, "SECRET").allow("anyone");
    let function = super::instance(sign_in, Shared::default(), super::KEY, url, &Arc::default());
    let invoke = async |event: Value| function.invoke(&event.to_string()).await.unwrap();
    let body = json!({"redirect_uris": [CALLBACK]}).to_string();
    let registered = invoke(http_event("POST", "/register", &[], &body)).await;
    let registered: Value = serde_json::from_str(registered["body"].as_str().unwrap()).unwrap();
    let client = registered["client_id"].as_str().unwrap();
    let mut opening = http_event("GET", "/authorize", &[], "");
    let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
    opening["rawQueryString"] = format!(
        "response_type=code&client_id={client}&code_challenge={challenge}\
         &code_challenge_method=S256"
    )
    .into();
    let page = invoke(opening).await;
    let (own, _) = page["cookies"][0]
        .as_str()
        .unwrap()
        .split_once(';')
        .unwrap();
    let form = test_support::openid::form_in(page["body"].as_str().unwrap()).unwrap();
    let form = format!("form={form}&answer=continue");
    let together = format!("{FOREIGN}; {own}");
    let multiple = |name: &str, cookies: &[&str]| {
        let mut sent = event(&format!("sources/{name}"));
        sent["path"] = "/authorize".into();
        sent["httpMethod"] = "POST".into();
        sent["body"] = form.clone().into();
        sent["multiValueHeaders"]["cookie"] = json!(cookies);
        sent
    };
    let http = |cookies: &[&str]| http_event("POST", "/authorize", cookies, &form);
    for (sent, status) in [
        (http(&[FOREIGN, own]), 303),
        (http(&[&together]), 303),
        (multiple("rest-api", &[&together]), 303),
        (multiple("rest-api", &[FOREIGN, own]), 303),
        (multiple("alb.multi-value-headers", &[own, FOREIGN]), 303),
        (http(&[FOREIGN]), 400),
    ] {
        let answer = invoke(sent.clone()).await;
        assert_eq!(answer["statusCode"], status, "{sent} {answer}");
    }
}

/// Returns the event of a request to an HTTP API.
fn http_event(method: &str, path: &str, cookies: &[&str], body: &str) -> Value {
    let mut sent = event("sources/http-api");
    sent["rawPath"] = path.into();
    sent["requestContext"]["http"]["method"] = method.into();
    sent["cookies"] = json!(cookies);
    sent["body"] = body.into();
    sent
}

/// Stolen codes: RFC 9700, 4.5. A code is bound to everything that the request had.
#[tokio::test(flavor = "multi_thread")]
async fn a_stolen_code_is_useless() {
    let server = Server::start().await;
    let client = server.registered(CALLBACK).await;
    let other = server.registered(CALLBACK).await;
    let code = server.code(&client, "alice").await;
    let forged = format!("{}A", &code[..code.len() - 1]);
    for (changes, error) in [
        (("client_id", &*other), "invalid_grant"),
        (("client_id", ""), "invalid_request"),
        (("client_id", "unknown"), "invalid_client"),
        (
            (
                "code_verifier",
                "another-verifier-of-this-test-0123456789-abc",
            ),
            "invalid_grant",
        ),
        (("code_verifier", ""), "invalid_grant"),
        (
            ("redirect_uri", "https://evil.example/callback"),
            "invalid_grant",
        ),
        (("resource", "https://other.example/mcp"), "invalid_target"),
        (("code", "unknown"), "invalid_grant"),
        (("code", &forged), "invalid_grant"),
        (("grant_type", "password"), "unsupported_grant_type"),
        (("grant_type", ""), "invalid_request"),
    ] {
        if changes.1 != code {
            let (status, answer) = server.redeem_with(&client, &code, &[changes]).await;
            assert_eq!(
                (status, &answer["error"]),
                (400, &json!(error)),
                "{changes:?}"
            );
        }
    }
    // None of these has used it up.
    let (status, answer) = server.redeem(&client, &code).await;
    assert_eq!(status, 200, "{answer}");
    let token = answer["refresh_token"].as_str().unwrap();
    let (status, answer) = server.refresh(&other, token).await;
    assert_eq!((status, &answer["error"]), (400, &json!("invalid_grant")));
    assert_eq!(server.refresh(&client, token).await.0, 200);
}

/// Mix-up: RFC 9700, 4.4. The ID token names the provider, this server and its request.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_token_of_another_provider_is_refused() {
    let server = Server::start().await;
    let client = server.registered(CALLBACK).await;
    let url = server.authorize_url(&client, &[]);
    for claims in [
        json!({"sub": "alice", "aud": "another-client"}),
        json!({"sub": "alice", "aud": ["upstream-client", "another"]}),
        json!({"sub": "alice", "azp": "another-client"}),
        json!({"sub": "alice", "iss": "https://evil.example"}),
        json!({"sub": "alice", "nonce": "another"}),
        json!({"sub": "alice", "exp": 1000}),
        json!({"sub": "alice", "exp": null}),
        json!({"sub": null}),
        json!({"sub": ""}),
        json!({}),
    ] {
        let landed = Browser::new().sign_in_with(&url, &claims).await;
        let error = parameter(&landed, "error");
        assert_eq!(error.as_deref(), Some("access_denied"), "{claims} {landed}");
        assert_eq!(parameter(&landed, "code"), None);
    }
}

/// Access tokens: RFC 9068, section 4; RFC 8725. No provider's token is one, and no other server's.
#[tokio::test(flavor = "multi_thread")]
async fn only_this_servers_own_access_tokens_are_accepted() {
    let server = Server::start().await;
    let other = Server::start().await;
    let (_, tokens) = server.tokens("alice").await;
    let access = tokens["access_token"].as_str().unwrap();
    assert_eq!(server.whose(access).await.0, 200);
    assert_eq!(
        other.whose(access).await.0,
        401,
        "the same key, another server"
    );
    let refresh = tokens["refresh_token"].as_str().unwrap();
    let id_token = super::upstream_tokens(&format!("code={}", json!({"sub": "alice"})));
    let forged = server
        .upstream
        .token_with(&json!({"iss": server.url, "aud": server.url}));
    let unsigned = format!("{}.", access.rsplit_once('.').unwrap().0);
    for token in [
        refresh,
        "upstream-access",
        id_token["id_token"].as_str().unwrap(),
        &server.upstream.valid(),
        &forged,
        &unsigned,
    ] {
        let (status, answer) = server.whose(token).await;
        assert_eq!(status, 401, "{token} {answer}");
    }
}

/// A list of clients keeps the others out, whichever way they are known.
#[tokio::test(flavor = "multi_thread")]
async fn only_listed_clients_may_ask_if_there_is_a_list() {
    let server = Server::with(|it| {
        let sign_in = it.allow("anyone").client("client.example");
        sign_in.client("http://localhost/callback")
    });
    let server = server.await;
    server.registered(CALLBACK).await;
    server.registered("http://localhost:1234/callback").await;
    for uri in ["https://evil.example/callback", "http://127.0.0.1/callback"] {
        let body: Value = json!({"client_name": "Evil", "redirect_uris": [uri]});
        let (status, answer) = server.post_json("register", &body).await;
        assert_eq!(
            (status, &answer["error"]),
            (400, &json!("invalid_redirect_uri")),
            "{uri}"
        );
    }
    // Registered elsewhere, or before the list.
    let open = Server::start().await;
    let client = open.registered("https://evil.example/callback").await;
    let url = server.authorize_url(
        &client,
        &[("redirect_uri", "https://evil.example/callback")],
    );
    let (status, page) = Browser::new().open(url.as_str()).await;
    assert_eq!(status, 403, "{page}");
}
