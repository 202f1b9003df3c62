//! The server's own secrets and its users' tokens, which no document gets.

use lambda_tools::{ApiKeys, Auth, Server, Toolkit};

use crate::support::{idle, server};

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
    let credentials = [
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
    ];
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

/// A document names its API as it likes, and so the provider that its tools require.
#[cfg(all(feature = "from-openapi", feature = "oauth"))]
#[tokio::test]
async fn no_document_gets_the_tokens_of_a_provider_with_the_name_of_its_api() {
    use lambda_tools::{OAuth, from_openapi::OpenApi, oauth::Provider, secrets::Secrets};
    use serde_json::{Value, json};

    use crate::support::{function, post};

    let response = async |token_url: &str| -> Value {
        let document = json!({
            "openapi": "3.1.0", "info": {"title": "GitHub", "version": "1"}, "servers": [{"url": "https://api.example"}],
            "components": {"securitySchemes": {"login": {"type": "oauth2", "flows": {"authorizationCode": {
                "authorizationUrl": "https://github.com/login/oauth/authorize", "tokenUrl": token_url}}}}},
            "paths": {"/me": {"get": {"operationId": "me", "summary": "Who", "security": [{"login": ["user"]}], "responses": {}}}},
        });
        let api = OpenApi::new(document).unwrap().include_all();
        let tools = api.tools().unwrap();
        let key = ("TOOLS_OAUTH_KEY", "a-key-of-this-server-0123456789abcdef");
        let server = server(Toolkit::new(tools).unwrap())
            .public_url("https://tools.example")
            .oauth(OAuth::with([Provider::github("id", "GITHUB_SECRET")]))
            .secrets(Secrets::fixed([key, ("GITHUB_SECRET", "a-secret")]));
        let body = json!({"tool_id": "GitHub.Me", "input": {}, "context": {"user_id": "ada"}});
        post(&function(server), "/tools/call", &[], &body)
            .await
            .body
    };
    let own = response("https://github.com/login/oauth/access_token")
        .await
        .to_string();
    assert!(own.contains("/authorization/challenges/"), "{own}");
    for url in [
        "https://evil.example/login/oauth/access_token",
        "https://github.com/login/oauth/access_token/",
    ] {
        let other = response(url).await.to_string();
        assert!(other.contains("github"), "{other}");
        assert!(!other.contains("challenges"), "{other}");
    }
}
