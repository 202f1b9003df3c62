//! A user who signs in at a server that issues the tokens itself, without a browser.

use serde_json::{Value, json};

use crate::issuer::Issuer;

/// The SHA-256 of the verifier, in base64url: RFC 7636, appendix B.
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CALLBACK: &str = "https://client.example/callback";

fn header<'a>(response: &'a Value, name: &str) -> &'a str {
    let header = response["headers"][name].as_str();
    header.unwrap_or_else(|| panic!("{name} {response}"))
}

fn parameter<'a>(url: &'a str, name: &str) -> &'a str {
    let rest = url.split_once(&format!("{name}="));
    let (_, rest) = rest.unwrap_or_else(|| panic!("{name} {url}"));
    rest.split('&').next().unwrap()
}

fn json_of(response: &Value) -> Value {
    serde_json::from_str(response["body"].as_str().unwrap()).unwrap()
}

/// Signs a user in at an issuer whose client is `client`; the provider's first tokens are `a0` and
/// `r0`. `send` sends a request of a method and a URL with a cookie and a body, and returns the
/// response as a function does. Returns the client's id and its tokens.
///
/// # Panics
///
/// If the user cannot sign in.
pub async fn signed_in(
    send: impl AsyncFn(&str, &str, &str, &str) -> Value,
    issuer: &Issuer,
) -> (String, Value) {
    let body = json!({"client_name": "c", "redirect_uris": [CALLBACK]}).to_string();
    let registered = json_of(&send("POST", "/register", "", &body).await);
    let client = registered["client_id"].as_str().unwrap();
    let url = format!(
        "/authorize?response_type=code&client_id={client}&redirect_uri={CALLBACK}\
         &code_challenge={CHALLENGE}&code_challenge_method=S256"
    );
    let page = send("GET", &url, "", "").await;
    let cookie = page["cookies"][0].as_str().unwrap();
    let (cookie, _) = cookie.split_once(';').unwrap();
    let form = crate::openid::form_in(page["body"].as_str().unwrap()).unwrap();
    let form = format!("form={form}&answer=continue");
    let provider = send("POST", "/authorize", cookie, &form).await;
    let provider = header(&provider, "location");
    let claims = json!({
        "iss": issuer.url, "aud": "client", "sub": "user", "nonce": parameter(provider, "nonce"),
        "exp": 4_000_000_000_u64,
    });
    issuer.change(|it| {
        it.id_token = Some(claims);
        it.tokens = |_| {
            json!({
                "access_token": "a0", "refresh_token": "r0", "token_type": "bearer",
                "expires_in": 3600,
            })
        };
    });
    let state = parameter(provider, "state");
    let callback = format!("/authorization/openid/callback?code=c&state={state}");
    let landed = send("GET", &callback, cookie, "").await;
    let code = parameter(header(&landed, "location"), "code");
    let form = format!(
        "grant_type=authorization_code&client_id={client}&code={code}&redirect_uri={CALLBACK}\
         &code_verifier={VERIFIER}"
    );
    let tokens = json_of(&send("POST", "/token", "", &form).await);
    assert!(tokens["access_token"].is_string(), "{tokens}");
    (client.to_owned(), tokens)
}
