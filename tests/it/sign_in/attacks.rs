//! Attacks by the sections of RFC 9700 and of MCP's "Security Best Practices". Each fails without
//! its guard.

use lambda_tools::store::Field;
use lambda_tools_accounts::auth::sign_in::with_document_client;
use test_support::issuer::{encode, id_token};

use super::{documents::Hosts, *};

/// Confused deputy: the provider may ask nobody, so this server must.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_reaches_the_provider_without_agreeing_first() {
    let (server, client) = Server::with_client().await;
    let url = server.authorize_url(&client, &[]);
    let browser = Browser::new();
    let (status, page) = browser.open(url.clone()).await;
    assert_eq!(status, 200);
    let shown = "Test|client.example|mail.read|Nobody has checked this name";
    for shown in shown.split('|') {
        assert!(page.contains(shown), "{shown} {page}");
    }
    let records = server.store.0.records.lock().unwrap().len();
    assert_eq!(records, 0, "nothing is stored before that");
    // A page that only reads, such as a preview, begins nothing.
    let sent = browser.0.head(url.clone()).send().await.unwrap();
    assert_eq!(sent.status(), 405);
    let form = form_in(&page).unwrap();
    let landed = redirect_of(browser.submit(&url, form, "cancel").await);
    assert_error(&landed, Some("access_denied"), "");
    assert_answers(&landed, "client-state", &server);
}

/// A browser keeps a user's consent to a client with one address, to 12 clients for 90 days, in a
/// cookie that only this server's pages can set. Nobody else's agreement counts.
#[tokio::test(flavor = "multi_thread")]
async fn an_agreement_is_for_one_client_with_one_address_and_one_user() {
    let server = Server::start().await;
    let browser = Browser::new();
    let asks = async |url: &reqwest::Url| browser.open(url.clone()).await.0 == 200;
    let mut urls = Vec::new();
    for _ in 0..13 {
        let client = server.registered(CALLBACK).await;
        urls.push(server.authorize_url(&client, &[]));
        browser.sign_in(urls.last().unwrap(), &alice()).await;
    }
    let other = server.registered(CALLBACK).await;
    assert!(asks(&server.authorize_url(&other, &[])).await);
    assert!(asks(&urls[0]).await, "the oldest is dropped");
    for url in &urls[1..] {
        assert!(!asks(url).await);
    }
    let mut more = urls[12].clone();
    more.query_pairs_mut().append_pair("scope", "mail.send");
    assert!(asks(&more).await);
    // Another user signs in in the same browser.
    let landed = browser.sign_in(&urls[12], &json!({"sub": "bob"})).await;
    assert_error(&landed, Some("access_denied"), "");
    assert!(asks(&urls[12]).await);

    // Any program on the user's machine could be at these addresses.
    for uri in ["http://localhost:3118/callback", APP] {
        let client = server.registered(uri).await;
        let url = server.authorize_url(&client, &[("redirect_uri", uri)]);
        browser.sign_in(&url, &alice()).await;
        assert!(asks(&url).await, "{uri}");
    }

    let provider = Browser::new();
    let callback = callback_of(&provider.to_provider(&urls[0]).await, &alice());
    let response = provider.0.get(callback).send().await.unwrap();
    let cookie = response.headers()["set-cookie"].to_str().unwrap();
    let attributes = "; Max-Age=7776000; HttpOnly; SameSite=Lax";
    assert!(cookie.contains(attributes), "{cookie}");
    for secret in ["alice", "client.example"] {
        assert!(!cookie.contains(secret), "{cookie}");
    }
}

/// CSRF, and fixation: a form or a sign-in of another browser.
#[tokio::test(flavor = "multi_thread")]
async fn forms_and_sign_ins_belong_to_one_browser() {
    let (server, client) = Server::with_client().await;
    let url = server.authorize_url(&client, &[]);
    let (attacker, victim) = (Browser::new(), Browser::new());
    let form = attacker.form(&url).await;
    let submitted = victim.submit(&url, &form, "continue").await;
    assert_eq!(submitted.0, 400, "without a cookie");
    victim.form(&url).await;
    let submitted = victim.submit(&url, &form, "continue").await;
    assert_eq!(submitted.0, 400, "with its own");
    for forged in ["", "x", "AAAA.BBBB"] {
        assert_eq!(attacker.submit(&url, forged, "continue").await.0, 400);
    }
    // The victim follows the attacker's link from the provider, and would use the attacker's account.
    let provider = attacker.to_provider(&url).await;
    let callback = callback_of(&provider, &json!({"sub": "mallory"}));
    assert_eq!(victim.open(callback.clone()).await.0, 400);
    // A code without its state.
    for state in ["", "sign-in.", "sign-in.00000000000000000000000000000000"] {
        let code = parameter(&callback, "code").unwrap();
        let mut changed = callback.clone();
        changed.set_query(Some(&format!("state={state}")));
        changed.query_pairs_mut().append_pair("code", &code);
        assert_eq!(attacker.open(changed).await.0, 400, "{state}");
    }
    assert_eq!(server.upstream.behaviour().token_requests, 0);
    redirect_of(attacker.open(callback.clone()).await);
    // A state works once.
    assert_eq!(attacker.open(callback).await.0, 400);
    assert_eq!(server.upstream.behaviour().token_requests, 1);
}

/// Open redirect: RFC 9700, 4.11; forged registrations. Only to addresses that the client has
/// registered here, even with an error.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_redirected_to_an_address_that_is_not_the_clients() {
    let (server, client) = Server::with_client().await;
    let (key, sealed) = client.split_once('.').unwrap();
    let flipped = if sealed.ends_with('A') { "B" } else { "A" };
    let forged = format!("{}{flipped}", &client[..client.len() - 1]);
    for change in [
        ("redirect_uri", "https://evil.example/callback"),
        ("redirect_uri", "//evil.example"),
        ("redirect_uri", "javascript:alert(1)"),
        ("client_id", ""),
        ("client_id", "unknown"),
        ("client_id", &forged),
        // As of a server with another key.
        ("client_id", &format!("0000000000000000.{sealed}")),
        ("client_id", &format!("{key}.{}", "A".repeat(9000))),
        ("client_id", "http://a.example/c"),
    ] {
        let (status, page) = server.opened(&client, &[change]).await;
        assert_eq!(status, 400, "{change:?} {page}");
        assert!(!page.contains("evil.example"), "{page}");
    }
    // Without it, the only registered one counts.
    assert_eq!(server.opened(&client, &[("redirect_uri", "")]).await.0, 200);
    let name = "<script>alert(1)</script>\u{202e}".repeat(20);
    let body = json!({"client_name": name, "redirect_uris": [CALLBACK]});
    let (status, answer) = server.register(&body).await;
    assert_eq!(status, 201, "{answer}");
    let (_, page) = server.opened(text(&answer, "client_id"), &[]).await;
    assert!(!page.contains("<script"), "{page}");
}

/// PKCE and the other parameters: RFC 9700, 2.1.1; RFC 7636; RFC 8707. Only a client that the owner
/// has listed gets the error: anyone can register any address, or name it in a document (RFC 9700,
/// 4.11.2).
#[tokio::test(flavor = "multi_thread")]
async fn weak_requests_are_refused() {
    let hosts = Hosts::with_a_client().await;
    let server = documents::serving(&hosts).await;
    let (registered, browser) = (server.registered(CALLBACK).await, Browser::new());
    let long = "s".repeat(2049);
    let of_another = format!("{}.evil.example", server.url);
    let other_path = format!("{}/other", server.url);
    let requests = [
        ("response_type", "token", "unsupported_response_type"),
        ("response_type", "", "invalid_request"),
        ("code_challenge", "", "invalid_request"),
        ("code_challenge", "short", "invalid_request"),
        ("code_challenge_method", "plain", "invalid_request"),
        ("code_challenge_method", "s256", "invalid_request"),
        ("response_mode", "fragment", "invalid_request"),
        ("resource", "https://other.example/mcp", "invalid_target"),
        ("resource", &of_another, "invalid_target"),
        ("resource", &other_path, "invalid_target"),
        ("state", &long, "invalid_request"),
    ];
    for client in [&*registered, documents::ID] {
        for (name, value, _) in requests {
            let (status, page) = server.opened(client, &[(name, value)]).await;
            assert_eq!(status, 400, "{name}={value} {page}");
            assert!(!page.contains(CALLBACK), "{page}");
        }
    }
    // What this server does not know or does not do shows the page, which leads nowhere by itself.
    for change in [
        ("prompt", "none"),
        ("scope", "unknown"),
        ("max_age", "0"),
        ("state", &long[..2048]),
    ] {
        let (status, page) = server.opened(documents::ID, &[change]).await;
        assert_eq!(status, 200, "{change:?} {page}");
    }
    let mut twice = server.authorize_url(&registered, &[]);
    twice.query_pairs_mut().append_pair("state", "other");
    assert_eq!(browser.open(twice).await.0, 400);

    server.replace(|it| {
        let listed = it.allow("anyone").client("client.example");
        with_document_client(listed, hosts.client())
    });
    for client in [&*registered, documents::ID] {
        for (name, value, code) in requests {
            let landed = redirect_of(server.opened(client, &[(name, value)]).await);
            assert!(landed.as_str().starts_with(CALLBACK), "{landed}");
            assert_error(&landed, Some(code), name);
            let is_state = name == "state";
            let state = if is_state { value } else { "client-state" };
            assert_answers(&landed, state, &server);
        }
    }
}

/// Who presses the button of one page ten times begins one sign-in, whose record is small, whatever
/// the client has registered.
#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_is_sent_again_goes_on_with_the_same_sign_in() {
    let server = Server::start().await;
    let uri = |number| format!("https://client.example/{number}{}", "a".repeat(200));
    let uris: Vec<_> = (0..9).map(uri).chain([CALLBACK.to_owned()]).collect();
    let body = json!({"client_name": "Test", "redirect_uris": uris});
    let (_, answer) = server.register(&body).await;
    let client = text(&answer, "client_id");
    assert!(client.len() > 2000);
    let state = "s".repeat(2048);
    let url = server.authorize_url(client, &[("state", &state)]);
    let browser = Browser::new();
    let form = browser.form(&url).await;
    let first = browser.submit(&url, &form, "continue").await;
    assert_eq!(first.0, 303);
    for _ in 0..9 {
        assert_eq!(browser.submit(&url, &form, "continue").await, first);
    }
    let records = || server.store.0.records.lock().unwrap();
    assert_eq!(records().len(), 1);
    for (name, field) in records().values().flat_map(|it| &it.fields) {
        let is_large = matches!(field, Field::Bytes(it) if it.len() >= 4 * 1024);
        assert!(!is_large, "{name}");
    }
    // A second page of the same browser is another sign-in.
    let other = browser.form(&url).await;
    assert_ne!(browser.submit(&url, &other, "continue").await, first);
    assert_eq!(records().len(), 2);
    let callback = callback_of(&first.1.parse().unwrap(), &alice());
    let landed = redirect_of(browser.open(callback).await);
    assert_eq!(parameter(&landed, "state"), Some(state));
    let code = parameter(&landed, "code").unwrap();
    assert_eq!(server.redeem(client, &code, &[]).await.0, 200);
    // It has been used up.
    assert_eq!(browser.submit(&url, &form, "continue").await.0, 400);
}

/// Stolen codes: RFC 9700, 4.5. A code is bound to everything that the request had.
#[tokio::test(flavor = "multi_thread")]
async fn a_stolen_code_is_useless() {
    let (server, client) = Server::with_client().await;
    let other = server.registered(CALLBACK).await;
    let code = server.code(&client, &alice()).await;
    let last = if code.ends_with('A') { "B" } else { "A" };
    let forged = format!("{}{last}", &code[..code.len() - 1]);
    let verifier = "another-verifier-of-this-test-0123456789-abc";
    for (name, value, error) in [
        ("client_id", &*other, "invalid_grant"),
        ("client_id", "", "invalid_request"),
        ("client_id", "unknown", "invalid_client"),
        ("code_verifier", verifier, "invalid_grant"),
        ("code_verifier", "", "invalid_grant"),
        ("redirect_uri", "https://evil.example/cb", "invalid_grant"),
        ("resource", "https://other.example/mcp", "invalid_target"),
        ("code", "unknown", "invalid_grant"),
        ("code", &forged, "invalid_grant"),
        ("grant_type", "password", "unsupported_grant_type"),
        ("grant_type", "", "invalid_request"),
    ] {
        let (status, answer) = server.redeem(&client, &code, &[(name, value)]).await;
        assert_eq!(status, 400, "{name}={value} {answer}");
        assert_eq!(answer["error"], error, "{name}={value}");
    }
    // None of these has used it up.
    let tokens = server.redeemed(&client, &code).await;
    assert_invalid(&server.refresh(&other, &tokens).await);
    assert_eq!(server.refresh(&client, &tokens).await.0, 200);
}

/// Mix-up: RFC 9700, 4.4; the parts of an ID token: OpenID Connect Core 1.0, 3.1.3.7. It names the
/// provider, this server and its request.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_token_is_the_providers_for_this_request() {
    let (server, client) = Server::with_client().await;
    let rejected = Some("access_denied");
    for (error, changes) in [
        (rejected, json!({"aud": "another-client"})),
        (rejected, json!({"aud": [CLIENT, "another"]})),
        (rejected, json!({"azp": "another-client"})),
        (rejected, json!({"iss": "https://evil.example"})),
        (rejected, json!({"nonce": "another"})),
        (rejected, json!({"nonce": null})),
        (rejected, json!({"exp": 1000})),
        (rejected, json!({"exp": null})),
        (rejected, json!({"sub": null})),
        (rejected, json!({"sub": ""})),
        (None, json!({})),
        (None, json!({"aud": [CLIENT]})),
        (None, json!({"azp": CLIENT})),
        (None, json!({"aud": [CLIENT, "other"], "azp": CLIENT})),
    ] {
        server.change_upstream(|it| it.id_token = Some(changes.clone()));
        let landed = server.landed(&client, &alice()).await;
        assert_error(&landed, error, &changes.to_string());
    }
    server.change_upstream(|it| it.id_token = None);
    let tampered: [fn(&str) -> Value; 5] = [
        |body| tampered(body, |it| format!("{it}A")),
        |body| tampered(body, |it| it.replacen('.', ".e", 1)),
        |body| tampered(body, without_signature),
        |body| tampered(body, |_| "x".to_owned()),
        without_id_token,
    ];
    for (number, tokens) in tampered.into_iter().enumerate() {
        server.change_upstream(|it| it.tokens = tokens);
        let landed = server.landed(&client, &alice()).await;
        assert_error(&landed, rejected, &number.to_string());
    }
}

fn without_signature(token: &str) -> String {
    let claims = token.split('.').nth(1).unwrap();
    format!("{}.{claims}.", encode(&json!({"alg": "none"})))
}

/// Returns the provider's tokens with another ID token.
fn tampered(body: &str, change: fn(&str) -> String) -> Value {
    let mut tokens = upstream_tokens(body);
    tokens["id_token"] = change(&id_token(&tokens["id_token"])).into();
    tokens
}

/// Access tokens: RFC 9068, section 4; RFC 8725. No provider's token is one, and no other server's.
#[tokio::test(flavor = "multi_thread")]
async fn only_this_servers_own_access_tokens_are_accepted() {
    let server = Server::start().await;
    let other = Server::start().await;
    let (_, tokens) = server.tokens(&alice()).await;
    let access = text(&tokens, "access_token");
    assert_eq!(server.call("Mail.Whose", access).await.0, 200);
    let elsewhere = other.call("Mail.Whose", access).await.0;
    assert_eq!(elsewhere, 401, "the same key, another server");
    let own = json!({"iss": server.url, "aud": server.url});
    let unsigned = format!("{}.", access.rsplit_once('.').unwrap().0);
    for token in [
        text(&tokens, "refresh_token"),
        "upstream-0",
        &id_token(&json!({"iss": server.upstream.url, "aud": CLIENT, "sub": "alice"})),
        &server.upstream.valid(),
        &server.upstream.token_with(&own),
        &unsigned,
    ] {
        let (status, answer) = server.call("Mail.Whose", token).await;
        assert_eq!(status, 401, "{token} {answer}");
    }
}

/// A list of clients keeps the others out, whichever way they are known, and however long.
#[tokio::test(flavor = "multi_thread")]
async fn only_listed_clients_may_ask_if_there_is_a_list() {
    const EVIL: &str = "https://evil.example/callback";
    let hosts = Hosts::with_a_client().await;
    let server = Server::start().await;
    let evil = server.registered(EVIL).await;
    let (client, tokens) = server.tokens(&alice()).await;
    let list = |entry: &str| {
        server.replace(|it| {
            let listed = it.allow("anyone").client(entry);
            let listed = listed.client("http://localhost/callback");
            with_document_client(listed, hosts.client())
        });
    };
    list("client.example");
    server.registered(CALLBACK).await;
    server.registered("http://localhost:1234/callback").await;
    for uri in [EVIL, "http://127.0.0.1/callback"] {
        let body = json!({"client_name": "Evil", "redirect_uris": [uri]});
        let (status, answer) = server.register(&body).await;
        assert_eq!(status, 400, "{uri} {answer}");
        assert_eq!(answer["error"], "invalid_redirect_uri", "{uri}");
    }
    let opened = server.opened(&evil, &[("redirect_uri", EVIL)]).await;
    assert_eq!(opened.0, 403, "registered before the list");
    assert_eq!(server.opened(documents::ID, &[]).await.0, 200);
    let requests = hosts.requests();
    list("other.example");
    // A document can name a listed redirect URI.
    assert_eq!(server.opened(documents::ID, &[]).await.0, 403);
    assert_eq!(hosts.requests(), requests + 1);
    assert_invalid(&server.refresh(&client, &tokens).await);
    server.replace(|it| {
        let listed = it.allow("anyone").client("other.example");
        with_document_client(listed, hosts.client())
    });
    assert_eq!(server.opened(documents::ID, &[]).await.0, 403);
    assert_eq!(hosts.requests(), requests + 1, "it is not even fetched");
    server.replace(|it| it.allow("anyone"));
    assert_eq!(server.refresh(&client, &tokens).await.0, 200);
}

/// "The user has 10 minutes for the page, and 10 more at the provider."
#[tokio::test(flavor = "multi_thread")]
async fn a_user_has_ten_minutes_for_the_page_and_ten_at_the_provider() {
    let (server, client) = Server::with_client().await;
    let url = server.authorize_url(&client, &[]);
    let rows = [(9, 9, 303, 303), (10, 0, 400, 0), (0, 10, 303, 400)];
    for (page, provider, submitted, landed) in rows {
        let browser = Browser::new();
        let form = browser.form(&url).await;
        server.later(Duration::from_mins(page));
        let (status, location) = browser.submit(&url, &form, "continue").await;
        assert_eq!(status, submitted, "{page} {location}");
        if status == 303 {
            let callback = callback_of(&location.parse().unwrap(), &alice());
            server.later(Duration::from_mins(provider));
            let (status, text) = browser.open(callback).await;
            assert_eq!(status, landed, "{page} {provider} {text}");
        }
    }
}
