//! The rules of the page about issuing tokens that no attack needs, one test each.

use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Browser, CALLBACK, Server, callback_of, parameter, upstream_tokens};

/// Signs in with these claims; returns the error that the client gets.
async fn error_for(server: &Server, client: &str, claims: &Value) -> Option<String> {
    let url = server.authorize_url(client, &[]);
    let landed = Browser::new().sign_in_with(&url, claims).await;
    assert_eq!(
        parameter(&landed, "code").is_none(),
        parameter(&landed, "error").is_some()
    );
    parameter(&landed, "error")
}

/// "The user has 10 minutes for the page, and 10 more at the provider."
#[tokio::test(flavor = "multi_thread")]
async fn a_user_has_ten_minutes_for_the_page_and_ten_at_the_provider() {
    let server = Server::start().await;
    let client = server.registered(CALLBACK).await;
    let url = server.authorize_url(&client, &[]);
    let minutes = |minutes| Duration::from_mins(minutes);
    for (page, provider, status) in [(9, 9, 303), (10, 0, 400), (0, 10, 400)] {
        let browser = Browser::new();
        let (_, text) = browser.open(url.as_str()).await;
        let form = test_support::openid::form_in(&text).unwrap();
        server.later(minutes(page));
        let (sent, location) = browser.submit(&url, form, "continue").await;
        if page == 10 {
            assert_eq!(sent, status, "{location}");
            continue;
        }
        let callback = callback_of(&location.parse().unwrap(), &json!({"sub": "alice"}));
        server.later(minutes(provider));
        let (landed, text) = browser.open(callback.as_str()).await;
        assert_eq!(landed, status, "{page} {provider} {text}");
    }
}

/// "A browser keeps the consent to 12 clients for 90 days", and none for an app on the computer.
#[tokio::test(flavor = "multi_thread")]
async fn a_browser_keeps_the_consent_to_twelve_clients() {
    let server = Server::start().await;
    let browser = Browser::new();
    let mut urls = Vec::new();
    for _ in 0..13 {
        let client = server.registered(CALLBACK).await;
        urls.push(server.authorize_url(&client, &[]));
        browser.sign_in(urls.last().unwrap(), "alice").await;
    }
    let mut asked = Vec::new();
    for url in &urls {
        asked.push(browser.open(url.as_str()).await.0 == 200);
    }
    let expected: Vec<_> = (0..13).map(|number| number == 0).collect();
    assert_eq!(asked, expected, "the oldest is dropped");
    let app = "cursor://anysphere.cursor-mcp/oauth/callback";
    let client = server.registered(app).await;
    let url = server.authorize_url(&client, &[("redirect_uri", app)]);
    browser.sign_in(&url, "alice").await;
    assert_eq!(browser.open(url.as_str()).await.0, 200);
}

/// The cookie of consents lasts for 90 days, and only this server's pages of this host can set it.
#[tokio::test(flavor = "multi_thread")]
async fn the_consents_are_in_a_cookie_of_ninety_days() {
    let server = Server::start().await;
    let client = server.registered(CALLBACK).await;
    let url = server.authorize_url(&client, &[]);
    let browser = Browser::new();
    let provider = browser.to_provider(&url).await;
    let callback = callback_of(&provider, &json!({"sub": "alice"}));
    let response = browser.0.get(callback).send().await.unwrap();
    let cookie = response.headers()["set-cookie"].to_str().unwrap();
    assert!(
        cookie.contains("; Max-Age=7776000; HttpOnly; SameSite=Lax"),
        "{cookie}"
    );
    assert!(
        !cookie.contains("alice") && !cookie.contains("client.example"),
        "{cookie}"
    );
    // A page that only reads, such as a preview, begins nothing.
    let sent = browser.0.head(url).send().await.unwrap();
    assert_eq!(sent.status(), 405);
}

/// The parts of an ID token: OpenID Connect Core 1.0, 3.1.3.7, besides those of another provider.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_token_must_be_signed_and_have_the_nonce() {
    type Tokens = fn(&str) -> Value;
    let cases: [(Tokens, bool); 7] = [
        (upstream_tokens, true),
        (|body| changed(body, |token| format!("{token}A")), false),
        (
            |body| changed(body, |token| token.replacen('.', ".e", 1)),
            false,
        ),
        (
            |body| {
                changed(body, |token| {
                    let claims = token.split('.').nth(1).unwrap().to_owned();
                    let header = test_support::issuer::encode(&json!({"alg": "none"}));
                    format!("{header}.{claims}.")
                })
            },
            false,
        ),
        (|body| changed(body, |_| "x".to_owned()), false),
        (
            |body| super::upstream_tokens_with(body, &json!({"nonce": null})),
            false,
        ),
        (
            |body| {
                let mut tokens = upstream_tokens(body);
                tokens.as_object_mut().unwrap().remove("id_token");
                tokens
            },
            false,
        ),
    ];
    let server = Server::start().await;
    let client = server.registered(CALLBACK).await;
    for (number, (tokens, is_valid)) in cases.into_iter().enumerate() {
        server.upstream.change(|it| it.tokens = tokens);
        let error = error_for(&server, &client, &json!({"sub": "alice"})).await;
        let expected = (!is_valid).then(|| "access_denied".to_owned());
        assert_eq!(error, expected, "{number}");
    }
    server.upstream.change(|it| it.tokens = upstream_tokens);
    // These name this client, too.
    for claims in [
        json!({"sub": "alice", "aud": [super::CLIENT]}),
        json!({"sub": "alice", "azp": super::CLIENT}),
        json!({"sub": "alice", "aud": [super::CLIENT, "other"], "azp": super::CLIENT}),
    ] {
        assert_eq!(error_for(&server, &client, &claims).await, None, "{claims}");
    }
}

/// Changes the ID token of a response.
fn changed(body: &str, change: impl Fn(&str) -> String) -> Value {
    let mut tokens = upstream_tokens(body);
    tokens["id_token"] = change(tokens["id_token"].as_str().unwrap()).into();
    tokens
}

/// "an `email` counts only if the provider has verified it", as the user too; and the sizes in the
/// page's limits.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_is_a_claim_that_counts_and_fits() {
    let server = Server::with(|it| it.allow("anyone").user_claim("email")).await;
    let client = server.registered(CALLBACK).await;
    let denied = Some("access_denied".to_owned());
    for (claims, expected) in [
        (
            json!({"sub": "1", "email": "Ada@acme.example", "email_verified": true}),
            None,
        ),
        (
            json!({"sub": "1", "email": "ada@acme.example", "email_verified": false}),
            denied.clone(),
        ),
        (
            json!({"sub": "1", "email": "ada@acme.example"}),
            denied.clone(),
        ),
        (json!({"sub": "1"}), denied.clone()),
    ] {
        assert_eq!(
            error_for(&server, &client, &claims).await,
            expected,
            "{claims}"
        );
    }
    let server = Server::start().await;
    let client = server.registered(CALLBACK).await;
    for (claims, expected) in [
        (json!({"sub": "u".repeat(256)}), None),
        (json!({"sub": "u".repeat(257)}), denied.clone()),
        (
            json!({"sub": "a", "groups": vec!["g".repeat(64); 64]}),
            None,
        ),
        (
            json!({"sub": "a", "groups": vec!["g".repeat(64); 65]}),
            denied,
        ),
    ] {
        assert_eq!(error_for(&server, &client, &claims).await, expected);
    }
}

/// What the client gets if the provider returns an error: RFC 6749, 4.1.2.1.
#[tokio::test(flavor = "multi_thread")]
async fn an_error_of_the_provider_is_passed_on_by_its_kind() {
    let server = Server::start().await;
    let client = server.registered(CALLBACK).await;
    let url = server.authorize_url(&client, &[]);
    for (returned, expected) in [
        ("error=access_denied", "access_denied"),
        ("error=temporarily_unavailable", "temporarily_unavailable"),
        ("error=server_error", "server_error"),
        ("error=%3Cscript%3E&error_description=x", "server_error"),
        ("", "server_error"),
    ] {
        let browser = Browser::new();
        let provider = browser.to_provider(&url).await;
        let state = parameter(&provider, "state").unwrap();
        let redirect = parameter(&provider, "redirect_uri").unwrap();
        let (status, landed) = browser
            .open(&format!("{redirect}?state={state}&{returned}"))
            .await;
        assert_eq!(status, 303, "{returned} {landed}");
        assert!(!landed.contains("%3C"), "{landed}");
        let error = parameter(&landed.parse().unwrap(), "error");
        assert_eq!(error.as_deref(), Some(expected), "{returned}");
    }
}

/// RFC 9207, 2.4: a provider that always names its issuer must have done so.
#[tokio::test(flavor = "multi_thread")]
async fn a_response_without_its_issuer_is_refused_if_the_provider_always_names_it() {
    for (always, expected) in [(false, None), (true, Some("server_error".to_owned()))] {
        let server = Server::start().await;
        let url = server.upstream.url.clone();
        let metadata = json!({
            "issuer": url,
            "jwks_uri": format!("{url}/keys"),
            "authorization_endpoint": format!("{url}/authorize"),
            "token_endpoint": format!("{url}/token"),
            "authorization_response_iss_parameter_supported": always,
        });
        server.upstream.change(|it| it.metadata = Some(metadata));
        let client = server.registered(CALLBACK).await;
        let error = error_for(&server, &client, &json!({"sub": "alice"})).await;
        assert_eq!(error, expected, "{always}");
        let provider = Browser::new();
        let request = server.authorize_url(&client, &[]);
        let leads_to = provider.to_provider(&request).await;
        let mut callback = callback_of(&leads_to, &json!({"sub": "alice"}));
        callback.query_pairs_mut().append_pair("iss", &url);
        let (_, landed) = provider.open(callback.as_str()).await;
        assert!(landed.contains("code="), "{landed}");
    }
}

/// Userinfo over plain HTTP is not asked: it would get the user's token.
#[tokio::test(flavor = "multi_thread")]
async fn no_token_is_sent_without_tls() {
    let server = Server::start().await;
    let url = server.upstream.url.clone();
    let metadata = json!({
        "issuer": url,
        "jwks_uri": format!("{url}/keys"),
        "authorization_endpoint": format!("{url}/authorize"),
        "token_endpoint": format!("{url}/token"),
        "userinfo_endpoint": "http://userinfo.example/",
    });
    server.upstream.change(|it| {
        it.metadata = Some(metadata);
        it.tokens = |body| {
            let mut tokens = upstream_tokens(body);
            if body.contains("refresh_token") {
                tokens.as_object_mut().unwrap().remove("id_token");
            }
            tokens
        };
    });
    let (client, tokens) = server.tokens("alice").await;
    let text = tokens.to_string();
    assert!(
        !text.contains("upstream") && !text.contains("id_token"),
        "{text}"
    );
    let refreshed = server.refresh(&client, tokens["refresh_token"].as_str().unwrap());
    assert_eq!(refreshed.await.0, 200);
}

/// RFC 7636, 4.1: a verifier has 43 to 128 characters. RFC 6749, 4.1.3 and OAuth 2.1: the redirect
/// URI may be left out.
#[tokio::test(flavor = "multi_thread")]
async fn a_verifier_has_a_length_and_the_redirect_uri_may_be_left_out() {
    use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

    let server = Server::start().await;
    let client = server.registered(CALLBACK).await;
    for (length, status) in [(42, 400), (43, 200), (128, 200), (129, 400)] {
        let verifier = "v".repeat(length);
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
        let url = server.authorize_url(&client, &[("code_challenge", &challenge)]);
        let landed = Browser::new().sign_in(&url, "alice").await;
        let code = parameter(&landed, "code").unwrap();
        let changes = [("code_verifier", &*verifier), ("redirect_uri", "")];
        let (redeemed, answer) = server.redeem_with(&client, &code, &changes).await;
        assert_eq!(redeemed, status, "{length} {answer}");
    }
}

/// The sizes of a registration, and what it always has.
#[tokio::test(flavor = "multi_thread")]
async fn a_registration_is_limited_and_of_a_public_client() {
    let server = Server::start().await;
    let uris = |count: usize, length: usize| {
        let uri = |number| format!("https://client.example/{number}{}", "a".repeat(length - 24));
        (0..count).map(uri).collect::<Vec<_>>()
    };
    for (uris, status) in [
        (uris(1, 1024), 201),
        (uris(10, 200), 201),
        (uris(1, 1025), 400),
        (uris(10, 400), 400),
        (uris(0, 100), 400),
    ] {
        let body =
            json!({"redirect_uris": uris, "token_endpoint_auth_method": "client_secret_basic"});
        let (registered, answer) = server.post_json("register", &body).await;
        assert_eq!(registered, status, "{answer}");
        if status == 201 {
            assert_eq!(answer["token_endpoint_auth_method"], "none");
            assert!(answer["client_secret"].is_null());
            assert!(answer["client_id"].as_str().unwrap().len() <= 4096);
        }
    }
    // A form in which a field occurs twice, and one that is too large.
    for body in [
        "client_id=a&client_id=b".to_owned(),
        format!("token={}", "t".repeat(33_000)),
    ] {
        for path in ["token", "revoke"] {
            let request = Client::new().post(format!("{}/{path}", server.url));
            let (status, answer) =
                super::answer_of(request.body(body.clone()).send().await.unwrap()).await;
            assert_eq!((status, &answer["error"]), (400, &json!("invalid_request")));
        }
    }
}

/// Scopes at each step: those of the session, whatever a refresh asks for.
#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_adds_no_scope() {
    let server = Server::start().await;
    let (client, tokens) = server.tokens("alice").await;
    assert_eq!(tokens["scope"], "mail.read");
    let fields = [
        ("grant_type", "refresh_token"),
        ("client_id", &*client),
        ("refresh_token", tokens["refresh_token"].as_str().unwrap()),
        ("scope", "mail.read mail.send"),
    ];
    let (status, refreshed) = server.post_form("token", &fields).await;
    assert_eq!(status, 200, "{refreshed}");
    assert_eq!(refreshed["scope"], "mail.read");
    let (_, said) = server
        .whose(refreshed["access_token"].as_str().unwrap())
        .await;
    assert_eq!(said["scopes"], json!(["mail.read"]));
}

/// `domain:` and `address:` in any case of ASCII letters, and no other letters.
#[tokio::test(flavor = "multi_thread")]
async fn addresses_and_domains_are_compared_without_the_case_of_ascii() {
    let denied = Some("access_denied".to_owned());
    for (rule, email, expected) in [
        ("domain:Acme.Example", "ada@acme.example", None),
        ("domain:acme.example", "Ada@ACME.example", None),
        ("address:Mike@acme.example", "mike@Acme.Example", None),
        (
            "address:mike@acme.example",
            "mi\u{212a}e@acme.example",
            denied.clone(),
        ),
        (
            "domain:kelvin.example",
            "ada@\u{212a}elvin.example",
            denied.clone(),
        ),
        (
            "domain:acme.example",
            "ada@acme.example.evil.example",
            denied.clone(),
        ),
        (
            "domain:acme.example",
            "\"x@acme.example\"@evil.example",
            denied,
        ),
    ] {
        let server = Server::with(|it| it.allow(rule)).await;
        let client = server.registered(CALLBACK).await;
        let claims = json!({"sub": "1", "email": email, "email_verified": true});
        assert_eq!(
            error_for(&server, &client, &claims).await,
            expected,
            "{rule} {email}"
        );
    }
}
