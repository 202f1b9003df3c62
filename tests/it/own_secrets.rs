//! The server's own secrets and its users' tokens, which no document gets.

#[cfg(feature = "jwt")]
use lambda_tools::Jwt;
use lambda_tools::{ApiKeys, Auth, Failure, Server, Tool, Toolkit};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::support::server;

/// Does nothing.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Returns the error of a server at its start.
fn error_of(secret: &str, change: impl FnOnce(Server) -> Server) -> Option<String> {
    let run = |_: Nothing| async { Ok::<_, Failure>(1) };
    let tools = [
        Tool::new("A.First@1.0.0", run).secret("FREE_KEY"),
        Tool::new("A.Second@1.0.0", run)
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
fn no_tool_gets_an_api_key_of_callers() {
    let auth = || Auth::from(ApiKeys::with_ids(["PARTNER"])).or(ApiKeys::with_ids(["OLD|NEW"]));
    refuses(&["PARTNER", "OLD", "NEW"], |server| server.auth(auth()));
}

/// The server signs its own requests to AWS with them.
#[test]
fn no_tool_gets_the_credentials_for_aws() {
    let credentials = ["ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN"];
    let credentials = credentials.map(|it| format!("AWS_{it}"));
    refuses(&credentials.each_ref().map(String::as_str), |server| server);
}

#[cfg(feature = "jwt")]
#[test]
fn no_tool_gets_a_secret_that_signs_tokens() {
    let jwt = || Jwt::with_secret_ids(["SIGNER"]);
    refuses(&["SIGNER"], |server| server.auth(jwt()));
}

#[cfg(feature = "oauth")]
#[test]
fn no_tool_gets_a_secret_of_a_provider_or_a_key_of_grants() {
    use lambda_tools::{OAuth, oauth::Provider};

    let oauth = || OAuth::with([Provider::github("id", "GITHUB_SECRET")]).key_ids(["K1", "K2"]);
    let secrets = ["GITHUB_SECRET", "K1", "K2"];
    refuses(&secrets, |server| server.oauth(oauth()));
    let key = ["TOOLS_OAUTH_KEY"];
    refuses(&key, |server| server.oauth(OAuth::with([])));
}

#[cfg(feature = "sign-in")]
#[test]
fn no_tool_gets_the_secrets_of_sign_in() {
    use lambda_tools::SignIn;

    refuses(&["CLIENT_SECRET", "TOOLS_OAUTH_KEY"], |server| {
        let sign_in = SignIn::google("id", "CLIENT_SECRET").allow("anyone");
        server.auth(sign_in).public_url("https://tools.example")
    });
}

/// A document names its API as it likes, and so the provider that its tools require.
#[cfg(all(feature = "from-openapi", feature = "oauth"))]
#[tokio::test]
async fn no_document_gets_the_tokens_of_a_provider_with_the_name_of_its_api() {
    use lambda_tools::{OAuth, from_openapi::OpenApi, oauth::Provider, secrets::Secrets};
    use serde_json::{Value, json};

    let response = async |token_url: &str| -> Value {
        let document = json!({
            "openapi": "3.1.0", "info": {"title": "GitHub", "version": "1"}, "servers": [{"url": "https://api.example"}],
            "components": {"securitySchemes": {"login": {"type": "oauth2", "flows": {"authorizationCode": {
                "authorizationUrl": "https://github.com/login/oauth/authorize", "tokenUrl": token_url}}}}},
            "paths": {"/me": {"get": {"operationId": "me", "summary": "Who", "security": [{"login": ["user"]}], "responses": {}}}},
        });
        let tools = OpenApi::new(document)
            .unwrap()
            .include_all()
            .tools()
            .unwrap();
        let key = ("TOOLS_OAUTH_KEY", "a-key-of-this-server-0123456789abcdef");
        let server = server(Toolkit::new(tools).unwrap())
            .public_url("https://tools.example")
            .oauth(OAuth::with([Provider::github("id", "GITHUB_SECRET")]))
            .secrets(Secrets::fixed([key, ("GITHUB_SECRET", "a-secret")]));
        let body = json!({"tool_id": "GitHub.Me", "input": {}, "context": {"user_id": "ada"}});
        let event = crate::support::event("POST", "/tools/call", &body.to_string());
        let response = crate::support::function(server)
            .invoke(&event)
            .await
            .unwrap();
        serde_json::from_str(response["body"].as_str().unwrap()).unwrap()
    };
    let own = response("https://github.com/login/oauth/access_token").await;
    assert!(
        own.to_string().contains("/authorization/challenges/"),
        "{own}"
    );
    for url in [
        "https://evil.example/login/oauth/access_token",
        "https://github.com/login/oauth/access_token/",
    ] {
        let other = response(url).await.to_string();
        assert!(
            !other.contains("challenges") && other.contains("github"),
            "{other}"
        );
    }
}
