//! Tokens that must not be accepted. References: RFC 8725, section 3; RFC 9068, sections 4 and 5.

use lambda_tools::ApiKeys;
use test_support::issuer::encode;

use super::*;

/// Returns an accepted token with other fields in its header.
fn with_header(issuer: &Issuer, changes: &Value) -> String {
    let mut header = json!({"alg": "RS256", "kid": "RS256"});
    let fields = header.as_object_mut().unwrap();
    fields.extend(changes.as_object().unwrap().clone());
    let key = issuer.key(Algorithm::RS256);
    key.sign_as(&header, &claims(&issuer.url))
}

/// Changes to the header of an accepted token.
fn headers(issuer: &Issuer) -> Vec<Value> {
    let key = SigningKey::new("RS256", Algorithm::RS256).public();
    vec![
        // RFC 8725, 3.1 and 3.2: the algorithm of another key, of the same family, and unknown ones.
        json!({"alg": "PS256"}),
        json!({"alg": "RS512"}),
        json!({"alg": "rs256"}),
        // RFC 8725, 3.10: keys that the token names, beside a valid signature.
        json!({"jwk": key}),
        json!({"jku": format!("{}/keys", issuer.url)}),
        json!({"x5u": "https://elsewhere.example/cert"}),
        json!({"x5c": ["AAAA"]}),
        json!({"kid": "../../dev/null"}),
        json!({"kid": "ES256"}),
        json!({"kid": 5}),
        json!({"crit": ["exp"], "exp": 1}),
        json!({"crit": null}),
        // RFC 8725, 3.11: the kind of token.
        json!({"typ": "logout+jwt"}),
        json!({"typ": "secevent+jwt"}),
        json!({"typ": 5}),
    ]
}

/// Changes to the claims of an accepted token; `null` removes a claim.
fn changed_claims(issuer: &Issuer) -> Vec<Value> {
    let logout = json!({"http://schemas.openid.net/event/backchannel-logout": {}});
    vec![
        // RFC 8725, 3.8: the issuer.
        json!({"iss": "https://elsewhere.example"}),
        json!({"iss": format!("{}.example", issuer.url)}),
        json!({"iss": format!("{}/", issuer.url)}),
        json!({"iss": null}),
        json!({"iss": [issuer.url]}),
        // RFC 8725, 3.9: the audience.
        json!({"aud": "https://elsewhere.example"}),
        json!({"aud": "app", "client_id": "app"}),
        json!({"aud": null}),
        json!({"aud": null, "client_id": "app"}),
        json!({"aud": 5}),
        json!({"aud": []}),
        // RFC 7519, 4.1.2: the user.
        json!({"sub": 5}),
        json!({"sub": null}),
        json!({"sub": "", "client_id": ""}),
        // RFC 7519, 4.1.4 and 4.1.5: times.
        json!({"exp": NOW - 60}),
        json!({"exp": null}),
        json!({"exp": "9999999999"}),
        json!({"nbf": NOW + 61}),
        json!({"nbf": "0"}),
        // RFC 9068, 4: ID tokens, and Cognito's and Keycloak's marks of other tokens.
        json!({"nonce": "n"}),
        json!({"at_hash": "h"}),
        json!({"c_hash": "h"}),
        json!({"s_hash": "h"}),
        json!({"token_use": "id"}),
        json!({"token_use": 5}),
        json!({"typ": "ID"}),
        json!({"typ": "Refresh"}),
        // Other kinds without their typ: OpenID Connect Back-Channel Logout 1.0, 2.4; RFC 8417, 2.2;
        // RFC 9101, 4.
        json!({"sid": "s", "jti": "1", "events": logout}),
        json!({"jti": "1", "events": {"urn:x": {}}}),
        json!({"client_id": "app", "response_type": "code", "scope": "mail.read"}),
        json!({"client_id": "app", "redirect_uri": "https://app.example"}),
        // The size.
        json!({"x": "a".repeat(17 * 1024)}),
    ]
}

/// Returns tokens with other signatures, and in other formats.
fn forged(issuer: &Issuer) -> Vec<(&'static str, String)> {
    let own = claims(&issuer.url);
    let rsa = issuer.key(Algorithm::RS256);
    let public = rsa.public();
    let valid = issuer.valid();
    let [header, payload, signature] = valid.split('.').collect::<Vec<_>>()[..] else {
        panic!("a JWT has three parts");
    };
    let stranger = SigningKey::new("RS256", Algorithm::RS256);
    let embedded = json!({"alg": "RS256", "jwk": stranger.public()});
    let none = encode(&json!({"alg": "none", "typ": "at+jwt"}));
    let bob = encode(&json!({"iss": issuer.url, "sub": "bob", "aud": URL, "exp": NOW + 600}));
    let list = encode(&json!([]));
    let mut forged = vec![
        // RFC 8725, 3.1 to 3.3: algorithms and signatures.
        ("alg none", format!("{none}.{payload}.")),
        ("alg none, signed", format!("{none}.{payload}.{signature}")),
        ("no signature", format!("{header}.{payload}.")),
        ("another key", stranger.sign(&own)),
        ("an embedded key", stranger.sign_as(&embedded, &own)),
        ("another payload", format!("{header}.{bob}.{signature}")),
        // The format.
        ("two parts", format!("{header}.{payload}")),
        ("four parts", format!("{valid}.x")),
        ("a list", rsa.sign_as(&json!({"alg": "RS256"}), &json!([]))),
        ("a list as header", format!("{list}.{payload}.{signature}")),
        ("not base64", format!("{header}.§.{signature}")),
        ("nothing", String::new()),
    ];
    // HS256 with the public key as its secret. The signature covers another header; both are tried.
    let with_kid = encode(&json!({"alg": "HS256", "kid": "RS256"}));
    for secret in [public["n"].as_str().unwrap(), &public.to_string()] {
        let token = sign_with_secret(secret, &own);
        let signature = token.rsplit('.').next().unwrap();
        let other = format!("{with_kid}.{}.{signature}", encode(&own));
        forged.extend([("HS256", token), ("HS256 with a kid", other)]);
    }
    let header = json!({"alg": "RS256", "kid": "RS256", "typ": "JWT"}).to_string();
    for name in ["alg", "crit", "kid", "typ"] {
        let twice = header.replace('}', &format!(r#","{name}":"RS256"}}"#));
        forged.push(("a header twice", rsa.sign_text(&twice, &own.to_string())));
    }
    for (name, value) in [("iss", &*issuer.url), ("aud", URL)] {
        let twice = format!(r#","{name}":"{value}"}}"#);
        let twice = own.to_string().replace('}', &twice);
        forged.push(("a claim twice", rsa.sign_text(&header, &twice)));
    }
    forged
}

/// A server that also accepts API keys and shared secrets has no other way in.
#[tokio::test]
async fn none_of_these_tokens_is_accepted() {
    let issuer = Issuer::start().await;
    let alone = || Oidc::issuer(&issuer.url);
    let beside = || {
        let jwt = Jwt::with_secret_ids(["SIGNING"]);
        Auth::from(alone()).or(ApiKeys::with_ids(["KEY"])).or(jwt)
    };
    assert_eq!(status(&served(alone()), &issuer.valid()).await, 200);
    let of_headers = headers(&issuer).into_iter();
    let of_headers = of_headers.map(|it| (it.to_string(), with_header(&issuer, &it)));
    let of_claims = changed_claims(&issuer).into_iter();
    let of_claims = of_claims.map(|it| (it.to_string(), issuer.token_with(&it)));
    let forged = forged(&issuer).into_iter();
    let forged = forged.map(|(name, token)| (name.to_owned(), token));
    for (name, token) in of_headers.chain(of_claims).chain(forged) {
        // Functions of their own, which may look up an unknown key.
        let response = call(&served(alone()), "Who.AmI", &token).await;
        assert_eq!(response.status, 401, "{name}: {response:?}");
        let challenge = &response.headers["www-authenticate"];
        let is_invalid = challenge.starts_with(r#"Bearer error="invalid_token""#);
        assert!(is_invalid, "{name}");
        assert_eq!(status(&served(beside()), &token).await, 401, "{name}");
    }
}

#[tokio::test]
async fn these_variations_are_accepted() {
    let issuer = Issuer::start().await;
    let function = served(Oidc::issuer(&issuer.url));
    let key = issuer.key(Algorithm::RS256);
    let without_id = key.sign_as(&json!({"alg": "RS256"}), &claims(&issuer.url));
    assert_eq!(status(&function, &without_id).await, 200);
    for header in [
        json!({}),
        json!({"typ": "JWT"}),
        json!({"typ": "application/AT+JWT"}),
        json!({"x5t": "abc"}),
    ] {
        let token = with_header(&issuer, &header);
        assert_eq!(status(&function, &token).await, 200, "{header}");
    }
    let accepted = [
        // Within the leeway.
        json!({"exp": NOW - 59}),
        json!({"nbf": NOW + 60}),
        json!({"exp": 1_696_507_800.5}),
        json!({"aud": ["x", URL]}),
        // Keycloak's nonce.
        json!({"typ": "Bearer", "nonce": "n"}),
    ];
    check(&function, &issuer, 200, accepted).await;
    // The claims of access tokens in the documentation of Auth0, Entra ID, Keycloak, Okta and
    // Cognito, and at last those of a token of which nobody can say whether it is an ID token.
    let documented = [
        r#"{"azp": "app", "scope": "tools.call", "gty": "password", "permissions": ["tools.call"]}"#,
        r#"{"aio": "x", "azp": "app", "azpacr": "1", "name": "A", "oid": "1", "preferred_username": "a",
            "rh": "x", "roles": [], "scp": "tools.call", "sid": "1", "tid": "1", "uti": "x", "ver": "2.0"}"#,
        r#"{"typ": "Bearer", "azp": "app", "session_state": "1", "sid": "1", "acr": "1", "auth_time": 1,
            "allowed-origins": ["*"], "realm_access": {}, "resource_access": {}, "scope": "email",
            "email_verified": true, "email": "a@b.example", "jti": "1"}"#,
        r#"{"ver": 1, "jti": "1", "cid": "app", "uid": "1", "scp": ["tools.call"], "auth_time": 1}"#,
        r#"{"token_use": "access", "client_id": "app", "username": "a", "origin_jti": "1", "version": 2,
            "event_id": "1", "auth_time": 1, "scope": "tools.call", "jti": "1", "cognito:groups": ["a"]}"#,
        r#"{"azp": "app", "auth_time": 1, "email": "a@b.example"}"#,
    ];
    let documented = documented.map(|it| serde_json::from_str(it).unwrap());
    check(&function, &issuer, 200, documented).await;
}

/// The audience of an ID token is a client, which an owner may have configured as an audience: then
/// the token itself must say that it is an access token.
#[tokio::test]
async fn an_id_token_for_a_configured_client_is_rejected() {
    let issuer = Issuer::start().await;
    let function = served(Oidc::issuer(&issuer.url).audience("app"));
    let rejected = [
        json!({"aud": "app"}),
        json!({"aud": "app", "azp": "app", "email": "a"}),
        json!({"aud": "app", "nonce": "n", "scp": "x"}),
    ];
    check(&function, &issuer, 401, rejected).await;
    let accepted = [
        json!({"aud": "app", "scp": "x"}),
        json!({"aud": "app", "scope": "x"}),
        json!({"aud": "app", "azp": "other", "azpacr": "1"}),
    ];
    check(&function, &issuer, 200, accepted).await;
}

/// RFC 6750, 2.2 and 2.3; MCP 2026-07-28, Authorization, Token Requirements.
#[tokio::test]
async fn a_token_in_another_place_is_not_read() {
    let issuer = Issuer::start().await;
    let function = served(Oidc::issuer(&issuer.url));
    let token = issuer.valid();
    let body = json!({"tool_id": "Who.AmI", "access_token": token});
    let event = event("POST", "/tools/call", None, &body);
    let (mut query, mut key, mut scheme) = (event.clone(), event.clone(), event);
    query["rawQueryString"] = format!("access_token={token}").into();
    key["headers"]["oxp-api-key"] = token.clone().into();
    scheme["headers"]["authorization"] = format!("DPoP {token}").into();
    for event in [query, key, scheme] {
        let response = respond(&function, &event).await;
        assert_eq!(response.status, 401, "{response:?}");
    }
}
