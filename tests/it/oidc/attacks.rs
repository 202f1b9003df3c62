//! Tokens that must not be accepted. References: RFC 8725, section 3; RFC 9068, sections 4 and 5.

use jsonwebtoken::Algorithm;
use lambda_tools::Auth;
use serde_json::{Value, json};

use super::{
    URL, call, event,
    issuer::{Issuer, NOW, SigningKey, claims, encode, sign_with_secret},
    respond, served,
};

/// Changes the claims of an accepted token.
#[expect(clippy::needless_pass_by_value, reason = "called with literals")]
fn with(issuer: &Issuer, change: Value) -> String {
    let mut claims = claims(&issuer.url);
    for (name, value) in change.as_object().unwrap() {
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        } else {
            claims[name] = value.clone();
        }
    }
    issuer.token(&claims)
}

/// Adds to the header of an accepted token.
#[expect(clippy::needless_pass_by_value, reason = "called with literals")]
fn with_header(issuer: &Issuer, change: Value) -> String {
    let mut header = json!({"alg": "RS256", "kid": "RS256"});
    for (name, value) in change.as_object().unwrap() {
        header[name] = value.clone();
    }
    issuer
        .key(Algorithm::RS256)
        .sign_as(&header, &claims(&issuer.url))
}

#[expect(clippy::too_many_lines, reason = "a list")]
fn attacks(issuer: &Issuer) -> Vec<(&'static str, String)> {
    let own = claims(&issuer.url);
    let own_text = own.to_string();
    let rsa = issuer.key(Algorithm::RS256);
    let public = rsa.public();
    let valid = issuer.valid();
    let [header, payload, signature] = valid.split('.').collect::<Vec<_>>()[..] else {
        panic!("a JWT has three parts");
    };
    let stranger = SigningKey::new("RS256", Algorithm::RS256);
    let none = encode(&json!({"alg": "none", "typ": "at+jwt"}));
    let forged = |secret: &str| {
        let header = json!({"alg": "HS256", "kid": "RS256"});
        let token = sign_with_secret(secret, &own);
        let signature = token.rsplit('.').next().unwrap().to_owned();
        // The signature covers another header; both ways are tried.
        [
            token,
            format!("{}.{}.{signature}", encode(&header), encode(&own)),
        ]
    };
    let [modulus, modulus_with_kid] = forged(public["n"].as_str().unwrap());
    let [whole, whole_with_kid] = forged(&public.to_string());
    let mut list = vec![
        // RFC 8725, 3.1 and 3.2: algorithms.
        ("alg none", format!("{none}.{payload}.")),
        (
            "alg none with a signature",
            format!("{none}.{payload}.{signature}"),
        ),
        ("no signature", format!("{header}.{payload}.")),
        ("HS256 with the modulus", modulus),
        ("HS256 with the modulus and a kid", modulus_with_kid),
        ("HS256 with the public key", whole),
        ("HS256 with the public key and a kid", whole_with_kid),
        (
            "the algorithm of another key",
            with_header(issuer, json!({"alg": "PS256"})),
        ),
        (
            "an algorithm of the same family",
            with_header(issuer, json!({"alg": "RS512"})),
        ),
        (
            "an unknown algorithm",
            with_header(issuer, json!({"alg": "XY"})),
        ),
        (
            "alg in another case",
            with_header(issuer, json!({"alg": "rs256"})),
        ),
        // RFC 8725, 3.3: signatures.
        ("another key", stranger.sign(&own)),
        (
            "another payload",
            format!(
                "{header}.{}.{signature}",
                encode(&json!({
                    "iss": issuer.url, "sub": "bob", "aud": URL, "exp": NOW + 600
                }))
            ),
        ),
        ("five parts", format!("{header}.{payload}.{signature}.x.y")),
        ("two parts", format!("{header}.{payload}")),
        ("four parts", format!("{valid}.x")),
        // RFC 8725, 3.10: keys that the token names.
        (
            "an embedded key",
            stranger.sign_as(&json!({"alg": "RS256", "jwk": stranger.public()}), &own),
        ),
        (
            "an embedded key beside a valid signature",
            with_header(issuer, json!({"jwk": stranger.public()})),
        ),
        (
            "jku",
            with_header(issuer, json!({"jku": format!("{}/keys", issuer.url)})),
        ),
        (
            "x5u",
            with_header(issuer, json!({"x5u": "https://elsewhere.example/cert"})),
        ),
        ("x5c", with_header(issuer, json!({"x5c": ["AAAA"]}))),
        (
            "a path as kid",
            with_header(issuer, json!({"kid": "../../dev/null"})),
        ),
        (
            "a query as kid",
            with_header(issuer, json!({"kid": "' OR 1=1 --"})),
        ),
        (
            "the kid of another key",
            with_header(issuer, json!({"kid": "ES256"})),
        ),
        (
            "a kid that is a number",
            with_header(issuer, json!({"kid": 5})),
        ),
        (
            "crit",
            with_header(issuer, json!({"crit": ["exp"], "exp": 1})),
        ),
        ("crit null", with_header(issuer, json!({"crit": null}))),
        ("jwk null", with_header(issuer, json!({"jwk": null}))),
        // RFC 8725, 3.8: the issuer.
        (
            "another issuer",
            with(issuer, json!({"iss": "https://elsewhere.example"})),
        ),
        (
            "a longer issuer",
            with(issuer, json!({"iss": format!("{}.example", issuer.url)})),
        ),
        (
            "the issuer with a slash",
            with(issuer, json!({"iss": format!("{}/", issuer.url)})),
        ),
        ("no issuer", with(issuer, json!({"iss": null}))),
        (
            "an issuer that is a list",
            with(issuer, json!({"iss": [issuer.url]})),
        ),
        // RFC 8725, 3.9: the audience.
        (
            "another audience",
            with(issuer, json!({"aud": "https://elsewhere.example"})),
        ),
        (
            "a client as audience",
            with(issuer, json!({"aud": "app", "client_id": "app"})),
        ),
        ("no audience", with(issuer, json!({"aud": null}))),
        (
            "no audience, but a client",
            with(issuer, json!({"aud": null, "client_id": "app"})),
        ),
        (
            "an audience that is a number",
            with(issuer, json!({"aud": 5})),
        ),
        ("no audiences", with(issuer, json!({"aud": []}))),
        // RFC 7519, 4.1.2: the user.
        ("sub as a number", with(issuer, json!({"sub": 5}))),
        ("sub as a list", with(issuer, json!({"sub": ["alice"]}))),
        ("sub as an object", with(issuer, json!({"sub": {}}))),
        ("neither sub nor client", with(issuer, json!({"sub": null}))),
        (
            "an empty sub and client",
            with(issuer, json!({"sub": "", "client_id": ""})),
        ),
        // RFC 7519, 4.1.4 and 4.1.5: times.
        ("expired", with(issuer, json!({"exp": NOW - 60}))),
        ("no exp", with(issuer, json!({"exp": null}))),
        ("exp as text", with(issuer, json!({"exp": "9999999999"}))),
        ("not yet valid", with(issuer, json!({"nbf": NOW + 61}))),
        ("nbf as text", with(issuer, json!({"nbf": "0"}))),
        // RFC 8725, 3.11, and RFC 9068, 4: the kind of token.
        (
            "an ID token with a nonce",
            with(issuer, json!({"nonce": "n"})),
        ),
        (
            "an ID token with at_hash",
            with(issuer, json!({"at_hash": "h"})),
        ),
        (
            "an ID token with c_hash",
            with(issuer, json!({"c_hash": "h"})),
        ),
        (
            "an ID token with s_hash",
            with(issuer, json!({"s_hash": "h"})),
        ),
        (
            "Cognito's ID token",
            with(issuer, json!({"token_use": "id"})),
        ),
        ("Keycloak's ID token", with(issuer, json!({"typ": "ID"}))),
        (
            "Keycloak's refresh token",
            with(issuer, json!({"typ": "Refresh"})),
        ),
        (
            "a kind that is a number",
            with(issuer, json!({"token_use": 5})),
        ),
        (
            "a logout token",
            with_header(issuer, json!({"typ": "logout+jwt"})),
        ),
        (
            "a security event",
            with_header(issuer, json!({"typ": "secevent+jwt"})),
        ),
        (
            "a typ that is a number",
            with_header(issuer, json!({"typ": 5})),
        ),
        // The same kinds without their typ: OpenID Connect Back-Channel Logout 1.0, 2.4; RFC 8417,
        // 2.2; RFC 9101, 4.
        (
            "a logout token without its typ",
            with(
                issuer,
                json!({"sid": "s", "jti": "1", "events": {
                    "http://schemas.openid.net/event/backchannel-logout": {}
                }}),
            ),
        ),
        (
            "a security event without its typ",
            with(issuer, json!({"jti": "1", "events": {"urn:x": {}}})),
        ),
        (
            "a request object",
            with(
                issuer,
                json!({"client_id": "app", "response_type": "code", "scope": "mail.read"}),
            ),
        ),
        (
            "a request object without a response_type",
            with(
                issuer,
                json!({"client_id": "app", "redirect_uri": "https://app.example"}),
            ),
        ),
        // The form.
        (
            "an oversized token",
            with(issuer, json!({"x": "a".repeat(17 * 1024)})),
        ),
        (
            "claims that are a list",
            rsa.sign_as(&json!({"alg": "RS256"}), &json!([])),
        ),
        (
            "a header that is a list",
            format!("{}.{payload}.{signature}", encode(&json!([]))),
        ),
        ("not base64", format!("{header}.§.{signature}")),
        ("nothing", String::new()),
        ("dots", "..".to_owned()),
    ];
    for name in ["alg", "crit", "kid", "typ"] {
        let own = json!({"alg": "RS256", "kid": "RS256", "typ": "JWT"});
        let twice = own
            .to_string()
            .replace('}', &format!(r#","{name}":"RS256"}}"#));
        list.push(("a header twice", rsa.sign_text(&twice, &own_text)));
    }
    for (name, value) in [("iss", &issuer.url), ("aud", &URL.to_owned())] {
        let twice = own_text.replace('}', &format!(r#","{name}":"{value}"}}"#));
        let header = json!({"alg": "RS256", "kid": "RS256"}).to_string();
        list.push(("a claim twice", rsa.sign_text(&header, &twice)));
    }
    list
}

#[tokio::test]
async fn none_of_these_tokens_is_accepted() {
    let issuer = Issuer::start().await;
    let function = served(Auth::issuer(&issuer.url));
    let valid = call(&function, "Who.AmI", &issuer.valid()).await;
    assert_eq!(valid.status, 200, "{valid:?}");
    for (name, token) in attacks(&issuer) {
        // A function of its own, which may look up an unknown key.
        let function = served(Auth::issuer(&issuer.url));
        let response = call(&function, "Who.AmI", &token).await;
        assert_eq!(response.status, 401, "{name}: {response:?}");
        let challenge = &response.headers["www-authenticate"];
        assert!(
            challenge.starts_with(r#"Bearer error="invalid_token""#),
            "{name}"
        );
    }
}

/// A server that also accepts API keys and shared secrets has no other way in.
#[tokio::test]
async fn none_of_them_is_accepted_beside_other_credentials() {
    let issuer = Issuer::start().await;
    for (name, token) in attacks(&issuer) {
        let auth = Auth::issuer(&issuer.url)
            .or(Auth::api_key_ids(["KEY"]))
            .or(Auth::jwt_secret_ids(["SIGNING"]));
        let function = served(auth);
        let response = call(&function, "Who.AmI", &token).await;
        assert_eq!(response.status, 401, "{name}: {response:?}");
    }
}

#[tokio::test]
async fn these_variations_are_accepted() {
    let issuer = Issuer::start().await;
    let function = served(Auth::issuer(&issuer.url));
    for (name, token) in [
        ("within the leeway", with(&issuer, json!({"exp": NOW - 59}))),
        ("soon valid", with(&issuer, json!({"nbf": NOW + 60}))),
        ("no typ", with_header(&issuer, json!({}))),
        ("typ JWT", with_header(&issuer, json!({"typ": "JWT"}))),
        (
            "typ application/at+jwt",
            with_header(&issuer, json!({"typ": "application/AT+JWT"})),
        ),
        ("a thumbprint", with_header(&issuer, json!({"x5t": "abc"}))),
        (
            "Keycloak's nonce",
            with(&issuer, json!({"typ": "Bearer", "nonce": "n"})),
        ),
        (
            "several audiences",
            with(&issuer, json!({"aud": ["x", URL]})),
        ),
        (
            "a fraction of a second",
            with(&issuer, json!({"exp": 1_696_507_800.5})),
        ),
        (
            "no kid",
            issuer
                .key(Algorithm::RS256)
                .sign_as(&json!({"alg": "RS256"}), &claims(&issuer.url)),
        ),
    ] {
        let response = call(&function, "Who.AmI", &token).await;
        assert_eq!(response.status, 200, "{name}: {response:?}");
    }
}

/// The claims of access tokens in the documentation of Auth0, Entra ID, Keycloak, Okta and Cognito,
/// and at last those of a token of which nobody can say whether it is an ID token.
#[tokio::test]
async fn tokens_with_the_claims_of_known_issuers_are_accepted() {
    let issuer = Issuer::start().await;
    let function = served(Auth::issuer(&issuer.url));
    for claims in [
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
    ] {
        let token = with(&issuer, serde_json::from_str(claims).unwrap());
        let response = call(&function, "Who.AmI", &token).await;
        assert_eq!(response.status, 200, "{claims} {response:?}");
    }
}

/// The audience of an ID token is a client, which an owner may have configured as an audience: then
/// the token itself must say that it is an access token.
#[tokio::test]
async fn an_id_token_for_a_configured_client_is_rejected() {
    let issuer = Issuer::start().await;
    let function = served(Auth::issuer(&issuer.url).audience("app"));
    for (claims, status) in [
        (json!({"aud": "app"}), 401),
        (
            json!({"aud": "app", "azp": "app", "email": "a@b.example"}),
            401,
        ),
        (json!({"aud": "app", "nonce": "n", "scp": "x"}), 401),
        (json!({"aud": "app", "scp": "x"}), 200),
        (json!({"aud": "app", "scope": "x"}), 200),
        (json!({"aud": "app", "azp": "other", "azpacr": "1"}), 200),
    ] {
        let response = call(&function, "Who.AmI", &with(&issuer, claims.clone())).await;
        assert_eq!(response.status, status, "{claims}");
    }
}

/// RFC 6750, 2.2 and 2.3; MCP 2026-07-28, Authorization, Token Requirements.
#[tokio::test]
async fn a_token_in_another_place_is_not_read() {
    let issuer = Issuer::start().await;
    let function = served(Auth::issuer(&issuer.url));
    let token = issuer.valid();
    let body = json!({"tool_id": "Who.AmI", "access_token": token});
    let mut query = event("POST", "/tools/call", None, &body);
    query["rawQueryString"] = format!("access_token={token}").into();
    let mut key = event("POST", "/tools/call", None, &body);
    key["headers"]["oxp-api-key"] = token.clone().into();
    let mut scheme = event("POST", "/tools/call", None, &body);
    scheme["headers"]["authorization"] = format!("DPoP {token}").into();
    for event in [query, key, scheme] {
        let response = respond(&function, &event).await;
        assert_eq!(response.status, 401, "{response:?}");
    }
}
