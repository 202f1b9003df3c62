//! The rules of the page about issuing tokens that no attack needs, one test each.

use std::time::Duration;

use lambda_tools::SignIn;
use reqwest::Client;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    Browser, CALLBACK, Server, callback_of, parameter, upstream_tokens, upstream_tokens_with,
};

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
        (|body| changed(body, |it| format!("{it}A").into()), false),
        (
            |body| changed(body, |it| it.replacen('.', ".e", 1).into()),
            false,
        ),
        (|body| changed(body, without_signature), false),
        (|body| changed(body, |_| "x".into()), false),
        (|body| changed(body, |_| Value::Null), false),
        (
            |body| upstream_tokens_with(body, &json!({"nonce": null})),
            false,
        ),
    ];
    let server = Server::start().await;
    let client = server.registered(CALLBACK).await;
    for (number, (tokens, is_valid)) in cases.into_iter().enumerate() {
        server.upstream.change(|it| it.tokens = tokens);
        let error = error_for(&server, &client, &json!({"sub": "alice"})).await;
        let expected = (!is_valid).then_some("access_denied");
        assert_eq!(error.as_deref(), expected, "{number}");
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

fn without_signature(token: &str) -> Value {
    let claims = token.split('.').nth(1).unwrap();
    let header = test_support::issuer::encode(&json!({"alg": "none"}));
    format!("{header}.{claims}.").into()
}

/// Changes the ID token of a response.
fn changed(body: &str, change: fn(&str) -> Value) -> Value {
    let mut tokens = upstream_tokens(body);
    tokens["id_token"] = change(tokens["id_token"].as_str().unwrap());
    tokens
}

/// Whom the rules name, with the claim that is the user, and the sizes in the page's limits.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_is_named_by_a_rule_and_by_a_claim_that_counts_and_fits() {
    type Change = fn(SignIn) -> SignIn;
    let staff: Change = |it| it.allow("domain:acme.example").allow("group:staff");
    let by_mail: Change = |it| it.allow("anyone").user_claim("email");
    let anyone: Change = |it| it.allow("anyone");
    let (groups, verified) = (
        vec!["g".repeat(64); 65],
        |is: bool| json!({"sub": "1", "email": "ada@acme.example", "email_verified": is}),
    );
    for (change, claims, may) in [
        (staff, json!({"sub": "a", "groups": ["staff"]}), true),
        (staff, verified(true), true),
        (staff, verified(false), false),
        (staff, json!({"sub": "a", "groups": ["guests"]}), false),
        (staff, json!({"sub": "a"}), false),
        (by_mail, verified(true), true),
        (by_mail, verified(false), false),
        (by_mail, json!({"sub": "1"}), false),
        (anyone, json!({"sub": "u".repeat(256)}), true),
        (anyone, json!({"sub": "u".repeat(257)}), false),
        (anyone, json!({"sub": "a", "groups": groups[1..]}), true),
        (anyone, json!({"sub": "a", "groups": groups}), false),
    ] {
        let server = Server::with(change).await;
        let client = server.registered(CALLBACK).await;
        let error = error_for(&server, &client, &claims).await;
        let expected = (!may).then_some("access_denied");
        assert_eq!(error.as_deref(), expected, "{claims}");
    }
}

/// The response to the client if the provider returns an error: RFC 6749, 4.1.2.1. RFC 9207, 2.4: a
/// provider that always names its issuer must have done so.
#[tokio::test(flavor = "multi_thread")]
async fn an_error_of_the_provider_is_passed_on_by_its_kind() {
    for (names_issuer, returned, expected) in [
        (false, "error=access_denied", Some("access_denied")),
        (
            false,
            "error=temporarily_unavailable",
            Some("temporarily_unavailable"),
        ),
        (false, "error=server_error", Some("server_error")),
        (
            false,
            "error=%3Cscript%3E&error_description=x",
            Some("server_error"),
        ),
        (false, "", Some("server_error")),
        (true, "code={code}", Some("server_error")),
        (true, "code={code}&iss={iss}", None),
        (false, "code={code}&iss={iss}", None),
        (false, "code={code}", None),
        (
            false,
            "code={code}&iss=https://evil.example",
            Some("server_error"),
        ),
    ] {
        let server = Server::start().await;
        let mut metadata = metadata_of(&server);
        metadata["authorization_response_iss_parameter_supported"] = names_issuer.into();
        server.upstream.change(|it| it.metadata = Some(metadata));
        let client = server.registered(CALLBACK).await;
        let browser = Browser::new();
        let provider = browser
            .to_provider(&server.authorize_url(&client, &[]))
            .await;
        let callback = callback_of(&provider, &json!({"sub": "alice"}));
        let query = callback.query().unwrap();
        let (code, state) = query.split_once("&state=").unwrap();
        let returned = returned
            .replace("code={code}", code)
            .replace("{iss}", &server.upstream.url);
        let mut callback = callback.clone();
        callback.set_query(Some(&format!("state={state}&{returned}")));
        let (status, landed) = browser.open(callback.as_str()).await;
        assert_eq!(status, 303, "{returned} {landed}");
        assert!(!landed.contains("%3C"), "{landed}");
        let landed = landed.parse().unwrap();
        assert_eq!(
            parameter(&landed, "error").as_deref(),
            expected,
            "{returned}"
        );
        assert_eq!(parameter(&landed, "code").is_some(), expected.is_none());
    }
}

/// Returns the metadata of the server's provider, which a test changes.
fn metadata_of(server: &Server) -> Value {
    let url = &server.upstream.url;
    json!({
        "issuer": url,
        "jwks_uri": format!("{url}/keys"),
        "authorization_endpoint": format!("{url}/authorize"),
        "token_endpoint": format!("{url}/token"),
    })
}

/// Userinfo over plain HTTP is not asked: it would get the user's token.
#[tokio::test(flavor = "multi_thread")]
async fn no_token_is_sent_without_tls() {
    let server = Server::start().await;
    let mut metadata = metadata_of(&server);
    metadata["userinfo_endpoint"] = "http://userinfo.example/".into();
    server.upstream.change(|it| it.metadata = Some(metadata));
    let (client, tokens) = server.tokens("alice").await;
    let text = tokens.to_string();
    assert!(
        !text.contains("upstream") && !text.contains("id_token"),
        "{text}"
    );
    server
        .upstream
        .change(|it| it.tokens = |body| changed(body, |_| Value::Null));
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

/// The required members of a registration, its largest size, and the members that the server sets.
#[tokio::test(flavor = "multi_thread")]
async fn a_registration_names_addresses_and_is_of_a_public_client() {
    let server = Server::start().await;
    let uris = |count: usize, length: usize| {
        let uri = |number| format!("https://client.example/{number}{}", "a".repeat(length - 24));
        json!((0..count).map(uri).collect::<Vec<_>>())
    };
    for (uris, status) in [
        (uris(1, 1024), 201),
        (uris(10, 200), 201),
        (uris(1, 1025), 400),
        (uris(10, 400), 400),
        (uris(11, 100), 400),
        (uris(0, 100), 400),
        (json!(null), 400),
        (json!([null]), 400),
        (json!("https://a.example/cb"), 400),
        (json!(["http://evil.example/cb"]), 400),
        (json!([CALLBACK, "javascript:alert(1)"]), 400),
    ] {
        let body =
            json!({"redirect_uris": uris, "token_endpoint_auth_method": "client_secret_basic"});
        let (registered, answer) = server.post_json("register", &body).await;
        assert_eq!(registered, status, "{uris} {answer}");
        if status == 201 {
            assert_eq!(answer["token_endpoint_auth_method"], "none");
            assert!(answer["client_secret"].is_null());
            assert!(answer["client_id"].as_str().unwrap().len() <= 4096);
        }
    }
    // RFC 7591, 2: every other member may be absent, and `null` is no value.
    for (member, value, name) in [
        ("client_name", json!("App"), Some("App")),
        ("client_name", json!(null), Some("")),
        ("client_name", json!(5), None),
        ("client_name", json!(["App"]), None),
        ("application_type", json!(null), Some("")),
        ("client_id", json!(null), Some("")),
        ("contacts", json!(null), Some("")),
        ("grant_types", json!(null), Some("")),
        ("jwks", json!(null), Some("")),
        ("scope", json!(null), Some("")),
        ("token_endpoint_auth_method", json!(null), Some("")),
        ("unknown", json!(null), Some("")),
    ] {
        let body = json!({"redirect_uris": [CALLBACK], member: value});
        let (status, answer) = server.post_json("register", &body).await;
        let expected = if name.is_some() { 201 } else { 400 };
        assert_eq!(status, expected, "{body} {answer}");
        assert_eq!(answer["client_name"].as_str(), name, "{body}");
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
