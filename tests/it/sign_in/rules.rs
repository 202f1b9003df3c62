//! The rules of the page about issuing tokens that no attack needs, one test each.

use super::*;

/// Whom the rules name, with the claim that is the user, and the sizes in the page's limits.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_is_named_by_a_rule_and_by_a_claim_that_counts_and_fits() {
    type Change = fn(SignIn) -> SignIn;
    let staff: Change = |it| it.allow("domain:acme.example").allow("group:staff");
    let by_mail: Change = |it| it.allow("anyone").user_claim("email");
    let anyone: Change = |it| it.allow("anyone");
    let groups = vec!["g".repeat(64); 65];
    let verified =
        |is: bool| json!({"sub": "1", "email": "ada@acme.example", "email_verified": is});
    let (server, client) = Server::with_client().await;
    for (change, claims, may) in [
        (staff, verified(true), true),
        (staff, json!({"sub": "a", "groups": ["guests"]}), false),
        (by_mail, verified(true), true),
        (by_mail, verified(false), false),
        (by_mail, json!({"sub": "1"}), false),
        (anyone, json!({"sub": "u".repeat(256)}), true),
        (anyone, json!({"sub": "u".repeat(257)}), false),
        (anyone, json!({"sub": "a", "groups": groups[1..]}), true),
        (anyone, json!({"sub": "a", "groups": groups}), false),
    ] {
        server.replace(change);
        let landed = server.landed(&client, &claims).await;
        let error = (!may).then_some("access_denied");
        assert_error(&landed, error, &claims.to_string());
    }
}

/// The response to the client if the provider returns an error: RFC 6749, 4.1.2.1. RFC 9207, 2.4: a
/// provider that always names its issuer must have done so.
#[tokio::test(flavor = "multi_thread")]
async fn an_error_of_the_provider_is_passed_on_by_its_kind() {
    const OTHER: Option<&str> = Some("server_error");
    const LATER: &str = "temporarily_unavailable";
    let (server, client) = Server::with_client().await;
    let evil = "code={code}&iss=https://evil.example";
    for (names_issuer, returned, expected) in [
        (false, "error=access_denied", Some("access_denied")),
        (false, "error=temporarily_unavailable", Some(LATER)),
        (false, "error=server_error", OTHER),
        (false, "error=%3Cscript%3E&error_description=x", OTHER),
        (false, "", OTHER),
        (false, "code={code}", None),
        (false, "code={code}&iss={iss}", None),
        (false, evil, OTHER),
        (true, "code={code}", OTHER),
        (true, "code={code}&iss={iss}", None),
        (true, evil, OTHER),
    ] {
        let name = "authorization_response_iss_parameter_supported";
        change_metadata(&server, name, names_issuer.into());
        server.replace(|it| it.allow("anyone"));
        let browser = Browser::new();
        let url = server.authorize_url(&client, &[]);
        let provider = browser.to_provider(&url).await;
        let mut callback = callback_of(&provider, &alice());
        let query = callback.query().unwrap().to_owned();
        let (code, state) = query.split_once("&state=").unwrap();
        let returned = returned
            .replace("code={code}", code)
            .replace("{iss}", &server.upstream.url);
        callback.set_query(Some(&format!("state={state}&{returned}")));
        let landed = redirect_of(browser.open(callback).await);
        assert!(!landed.as_str().contains("%3C"), "{landed}");
        assert_error(&landed, expected, &returned);
    }
}

/// Changes a member of the metadata of the server's provider.
fn change_metadata(server: &Server, name: &str, value: Value) {
    let url = &server.upstream.url;
    let mut metadata = json!({
        "issuer": url,
        "jwks_uri": format!("{url}/keys"),
        "authorization_endpoint": format!("{url}/authorize"),
        "token_endpoint": format!("{url}/token"),
    });
    metadata[name] = value;
    server.change_upstream(|it| it.metadata = Some(metadata));
}

/// Userinfo over plain HTTP is not asked: it would get the user's token. OpenID Connect Discovery 1.0,
/// 4.3: the metadata is the provider's own.
#[tokio::test(flavor = "multi_thread")]
async fn the_providers_metadata_is_trusted_as_far_as_it_goes() {
    let server = Server::start().await;
    let userinfo = "http://userinfo.example/".into();
    change_metadata(&server, "userinfo_endpoint", userinfo);
    let (client, tokens) = server.tokens(&alice()).await;
    for secret in ["upstream", "id_token"] {
        assert!(!tokens.to_string().contains(secret), "{tokens}");
    }
    server.change_upstream(|it| it.tokens = without_id_token);
    assert_eq!(server.refresh(&client, &tokens).await.0, 200);
    let url = server.authorize_url(&client, &[]);
    for (name, value) in [
        ("issuer", "https://evil.example"),
        ("authorization_endpoint", "http://p.example/authorize"),
        ("token_endpoint", "http://p.example/token"),
    ] {
        change_metadata(&server, name, value.into());
        server.replace(|it| it.allow("anyone"));
        let browser = Browser::new();
        let form = browser.form(&url).await;
        let (status, page) = browser.submit(&url, &form, "continue").await;
        assert_eq!(status, 503, "{name} {page}");
    }
}

/// RFC 7636, 4.1: a verifier has 43 to 128 characters. RFC 6749, 4.1.3 and OAuth 2.1: the redirect
/// URI may be left out.
#[tokio::test(flavor = "multi_thread")]
async fn a_verifier_has_a_length_and_the_redirect_uri_may_be_left_out() {
    let (server, client) = Server::with_client().await;
    for (length, status) in [(42, 400), (43, 200), (128, 200), (129, 400)] {
        let verifier = "v".repeat(length);
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
        let url = server.authorize_url(&client, &[("code_challenge", &challenge)]);
        let landed = Browser::new().sign_in(&url, &alice()).await;
        let code = parameter(&landed, "code").unwrap();
        let changes = [("code_verifier", &*verifier), ("redirect_uri", "")];
        let (redeemed, answer) = server.redeem(&client, &code, &changes).await;
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
        (json!("https://a.example/cb"), 400),
        (json!([CALLBACK, "javascript:alert(1)"]), 400),
    ] {
        let method = "client_secret_basic";
        let body = json!({"redirect_uris": uris, "token_endpoint_auth_method": method});
        let (registered, answer) = server.register(&body).await;
        assert_eq!(registered, status, "{uris} {answer}");
        if status == 201 {
            assert_eq!(answer["token_endpoint_auth_method"], "none");
            assert!(answer["client_secret"].is_null());
            assert!(text(&answer, "client_id").len() <= 4096);
        }
    }
    // RFC 7591, 2: every other member may be absent, and `null` is no value.
    for (member, value, name) in [
        ("client_name", json!("App"), Some("App")),
        ("client_name", json!(null), Some("")),
        ("client_name", json!(5), None),
        ("client_id", json!(null), Some("")),
        ("token_endpoint_auth_method", json!(null), Some("")),
    ] {
        let body = json!({"redirect_uris": [CALLBACK], member: value});
        let (status, answer) = server.register(&body).await;
        let expected = if name.is_some() { 201 } else { 400 };
        assert_eq!(status, expected, "{body} {answer}");
        assert_eq!(answer["client_name"].as_str(), name, "{body}");
    }
    // A form in which a field occurs twice, and one that is too large.
    let large = format!("token={}", "t".repeat(33_000));
    for body in ["client_id=a&client_id=b", &large] {
        for path in ["token", "revoke"] {
            let request = Client::new().post(format!("{}/{path}", server.url));
            let sent = request.body(body.to_owned()).send().await.unwrap();
            let (status, answer) = answer_of(sent).await;
            assert_eq!((status, text(&answer, "error")), (400, "invalid_request"));
        }
    }
}
