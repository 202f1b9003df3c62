//! Authentication with API keys, beside the events in `events/authentication`, and the server's own
//! secrets and its users' tokens, which no tool and no document gets.

use lambda_tools::{
    ApiKeys, Auth, Context, Failure, Server, Tool, Toolkit, secrets::Secrets,
    testing::ExpectedResponse,
};
use serde_json::{Value, json};

use crate::support::{Nothing, function, idle, post, server};

const ONE: &str = "one-0123456789ab";
const TWO: &str = "two-0123456789ab";

async fn who_am_i(_: Nothing, cx: Context) -> Result<String, Failure> {
    Ok(cx.caller().to_string())
}

async fn respond(
    auth: impl Into<Auth>,
    secrets: Secrets,
    headers: &[(&str, &str)],
) -> ExpectedResponse {
    let tool = Tool::new("Who.AmI@1.0.0", who_am_i);
    let server = server(Toolkit::new([tool]).unwrap()).secrets(secrets);
    let body = json!({"tool_id": "Who.AmI"});
    post(&function(server.auth(auth)), "/tools/call", headers, &body).await
}

/// Makes a call; returns the status, and the caller if the call was accepted.
async fn call_with(auth: impl Into<Auth>, headers: &[(&str, &str)]) -> (u16, Value) {
    let keys = Secrets::fixed([
        ("ONE", ONE),
        ("TWO", " two-0123456789ab\n"),
        ("SHORT", "short-012345678\n"),
        ("EMPTY", ""),
        ("BLANK", " \n"),
        ("SPACES", "                "),
    ]);
    let response = respond(auth, keys, headers).await;
    (response.status, response.body["value"].clone())
}

/// Either header may carry a key, whose id is the caller. While a key is replaced, the caller has
/// both, and stays the same caller: the first id names it.
#[tokio::test]
async fn the_first_id_names_the_caller_of_each_key() {
    for (ids, header, value, name) in [
        ("TWO", "authorization", "bearer  two-0123456789ab ", "TWO"),
        ("ONE|TWO", "oxp-api-key", ONE, "ONE"),
        ("ONE|TWO", "oxp-api-key", TWO, "ONE"),
        (" TWO | ONE ", "oxp-api-key", ONE, "TWO"),
        ("|NOWHERE||TWO|ONE|", "oxp-api-key", ONE, "NOWHERE"),
    ] {
        let auth = Auth::from(ApiKeys::with_ids(["|", ""])).or(ApiKeys::with_ids([ids]));
        let result = call_with(auth, &[(header, value)]).await;
        assert_eq!(result, (200, json!(format!("key {name}"))), "{ids} {value}");
    }
}

#[tokio::test]
async fn any_other_credential_is_rejected() {
    for headers in [
        &[("oxp-api-key", "")],
        &[("oxp-api-key", "one-0123456789a")],
        &[("oxp-api-key", "one-0123456789abc")],
        &[("oxp-api-key", "One-0123456789ab")],
        &[("oxp-api-key", "ONE")],
        &[("oxp-api-key", "one-0123456789ab,one-0123456789ab")],
        // It has fewer than 16 bytes.
        &[("oxp-api-key", "short-012345678")],
        &[("authorization", ONE)],
        &[("authorization", "Bearer")],
        &[("authorization", "Bearer ")],
        &[("authorization", "Basic one-0123456789ab")],
        &[("authorization", "é")],
        &[("authorization", "Beareré one-0123456789ab")],
    ] {
        let ids = ["ONE", "SHORT", "EMPTY", "BLANK", "SPACES", "NOWHERE"];
        for ids in [&ids[..], &ids[2..], &["|", ""], &[]] {
            let seen = call_with(ApiKeys::with_ids(ids.to_vec()), headers).await;
            assert_eq!(seen, (401, Value::Null), "{ids:?} {headers:?}");
        }
    }
}

/// Only a token that an unreadable secret may have signed has to wait for it. `events/undecided` has
/// the same of API keys.
#[cfg(feature = "jwt")]
#[tokio::test]
async fn what_a_readable_secret_decides_does_not_wait_for_another_one() {
    use lambda_tools::{Jwt, Secret, StoreError};
    use test_support::issuer::{NOW, sign_with_secret};

    use crate::support::Reads;

    const SECRET: &str = "a-signing-secret-0123456789abcdefgh";
    let read = |id: &str| match id {
        "SIGNING" => Ok(Some(Secret::from(SECRET))),
        _ => Err(StoreError::unavailable("it is down")),
    };
    for (secret, exp, status) in [
        (SECRET, NOW + 60, 200),
        (&SECRET.replace('a', "b"), NOW + 60, 400),
        // Signed, and not valid: no other secret can change that.
        (SECRET, NOW - 60, 401),
    ] {
        let token = sign_with_secret(secret, &json!({"sub": "alice", "exp": exp}));
        let headers = [("authorization", &*format!("Bearer {token}"))];
        let auth = Jwt::with_secret_ids(["SIGNING", "DOWN"]);
        let response = respond(auth, Secrets::from_store(Reads(read)), &headers).await;
        assert_eq!(response.status, status, "{response:?}");
        let waits = response.headers.contains_key("retry-after");
        assert_eq!(waits, status == 400, "{response:?}");
    }
}

/// Returns the error of a server at its start.
fn error_of(secret: &str, change: impl FnOnce(Server) -> Server) -> Option<String> {
    let tools = [
        idle("A.First@1.0.0", "A tool.").secret("FREE_KEY"),
        idle("A.Second@1.0.0", "A tool.")
            .secret("OTHER_KEY")
            .secret(secret),
    ];
    let server = change(server(Toolkit::new(tools).unwrap()));
    server.into_router().err().map(|it| it.to_string())
}

#[track_caller]
fn refuses(secrets: &[&str], change: impl Fn(Server) -> Server) {
    for secret in secrets {
        let error = error_of(secret, &change).unwrap_or_default();
        let expected =
            format!("a tool declares the secret '{secret}', which this server uses for itself");
        assert!(error.starts_with(&expected), "{error}");
    }
    assert_eq!(error_of("ITS_OWN_KEY", change), None);
}

#[test]
fn no_tool_gets_a_secret_that_the_server_uses_for_itself() {
    let auth = || Auth::from(ApiKeys::with_ids(["PARTNER"])).or(ApiKeys::with_ids(["OLD|NEW"]));
    refuses(&["PARTNER", "OLD", "NEW"], |server| server.auth(auth()));
    // The server signs its own requests to AWS with them.
    let credentials = "AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN";
    let credentials: Vec<_> = credentials.split(' ').collect();
    refuses(&credentials, |server| server);
    #[cfg(feature = "jwt")]
    refuses(&["SIGNER"], |server| {
        server.auth(lambda_tools::Jwt::with_secret_ids(["SIGNER"]))
    });
    #[cfg(feature = "oauth")]
    {
        use lambda_tools::{OAuth, oauth::Provider};

        let github = || OAuth::with([Provider::github("id", "GITHUB_SECRET")]);
        refuses(&["GITHUB_SECRET", "K1", "K2"], |server| {
            server.oauth(github().key_ids(["K1", "K2"]))
        });
        let key = ["TOOLS_OAUTH_KEY"];
        refuses(&key, |server| server.oauth(OAuth::with([])));
    }
    #[cfg(feature = "sign-in")]
    refuses(&["CLIENT_SECRET", "TOOLS_OAUTH_KEY"], |server| {
        let sign_in = lambda_tools::SignIn::google("id", "CLIENT_SECRET").allow("anyone");
        server.auth(sign_in).public_url("https://tools.example")
    });
}

/// A document names its API as it likes, and so the provider that its tools require. Tokens of the
/// server's provider with this name are for its own URL alone.
#[cfg(feature = "from-openapi")]
#[test]
fn a_tool_of_a_document_requires_tokens_of_the_documents_issuer() {
    use lambda_tools::from_openapi::{OpenApi, OpenApiOptions};

    let token_url = "https://evil.example/login/oauth/access_token";
    let flow = json!({"authorizationUrl": "https://github.com/login/oauth/authorize", "tokenUrl": token_url});
    let document = json!({
        "openapi": "3.1.0", "info": {"title": "GitHub", "version": "1"}, "servers": [{"url": "https://api.example"}],
        "components": {"securitySchemes": {"login": {"type": "oauth2", "flows": {"authorizationCode": flow}}}},
        "paths": {"/me": {"get": {"operationId": "me", "summary": "Who", "security": [{"login": ["user"]}], "responses": {}}}},
    });
    let api = OpenApi::new(document, OpenApiOptions::all()).unwrap();
    let toolkit = Toolkit::new(api.tools().unwrap()).unwrap();
    let needed = &toolkit.definitions()[0].requirements.authorization[0];
    let seen = (&*needed.id, needed.token_url.as_deref());
    assert_eq!(seen, ("github", Some(token_url)));
}
