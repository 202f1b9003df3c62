//! Tools that act for a user, with a certified `OpenID` provider.
//!
//! The provider is npm's `oidc-provider`. `tests/all` installs it and runs these tests; a plain
//! `cargo test` ignores them.

mod attacks;
mod flow;
#[cfg(feature = "dynamodb")]
mod instances;

use lambda_tools::{
    Context, Failure, OAuth, Server, Tool, Toolkit,
    client::{
        ClientOptions,
        oxp::{AuthorizationChallenge, CallOutcome, CallRequest, MissingRequirements, OxpClient},
    },
    oauth::Provider,
    secrets::Secrets,
};
use schemars::JsonSchema;
use serde::Deserialize;
use test_support::{
    Served,
    openid::{Act, Browser, OpenId, SCOPE},
};

use crate::support::server;

const KEY: &str = "a-key-of-this-server-0123456789abcdef";

const JWT_SECRET: &str = "jwt-secret-of-the-caller-0123456789abcdef";

/// A running server whose tools need the provider's tokens.
struct ToolServer {
    served: Served,
    client: OxpClient,
}

/// Returns tools that return the name of the token's user, which they request from the provider.
fn whoami_tools(openid: &OpenId) -> Vec<Tool> {
    /// Returns the user's name at the provider.
    #[derive(Deserialize, JsonSchema)]
    struct Whoami {}

    let whoami = {
        let url = format!("{}/whoami", openid.url);
        move |_: Whoami, cx: Context| {
            let url = url.clone();
            async move {
                let token = cx.token("google")?.expose();
                let response = reqwest::Client::new()
                    .get(url)
                    .bearer_auth(token)
                    .send()
                    .await?;
                if response.status() == 401 {
                    return Err(cx.token_rejected("google"));
                }
                let body: serde_json::Value = response.json().await?;
                Ok::<_, Failure>(body["user"].as_str().unwrap_or_default().to_owned())
            }
        }
    };
    let (by_mail, with_mail) = (whoami.clone(), whoami.clone());
    vec![
        Tool::new("Account.WhoamiByMail@1.0.0", by_mail)
            .description("Returns the user's name, with another scope.")
            .authorization("google", ["mail"]),
        Tool::new("Account.Whoami@1.0.0", whoami).authorization("google", [SCOPE]),
        Tool::new("Account.WhoamiWithMail@1.0.0", with_mail)
            .name("Account_WithMail")
            .description("Returns the user's name, with more scopes.")
            .authorization("google", [SCOPE, "mail"]),
    ]
}

async fn serve(openid: &OpenId) -> ToolServer {
    serve_as(openid, |it| it, |server| server).await
}

async fn serve_as(
    openid: &OpenId,
    change: impl FnOnce(OAuth) -> OAuth,
    change_server: impl FnOnce(Server) -> Server,
) -> ToolServer {
    let google = Provider::google("toolbox", "GOOGLE_CLIENT_SECRET").issuer(&openid.url);
    let secrets = [
        ("GOOGLE_CLIENT_SECRET", "toolbox-secret"),
        ("TOOLS_OAUTH_KEY", KEY),
        ("JWT_SECRET", JWT_SECRET),
        ("KEY", "key-of-the-caller"),
    ];
    let server = server(Toolkit::new(whoami_tools(openid)).unwrap())
        .secrets(Secrets::fixed(secrets))
        .oauth(change(OAuth::with([google])));
    let router = async |url: &str| change_server(server.public_url(url)).into_router().unwrap();
    let running = Served::start_with(router).await;
    openid.allow_redirects_to(&running.url).await;
    let client = client_of(&running.url);
    ToolServer {
        served: running,
        client,
    }
}

fn client_of(url: &str) -> OxpClient {
    client_with(url, ClientOptions::default())
}

fn client_with(url: &str, options: ClientOptions) -> OxpClient {
    OxpClient::new(url, options.attempts(1)).unwrap()
}

impl ToolServer {
    async fn call(&self, user: &str) -> CallOutcome {
        call(&self.client, "Account.Whoami", user).await
    }

    async fn challenge(&self, user: &str) -> AuthorizationChallenge {
        challenge_in(self.call(user).await)
    }
}

async fn call(client: &OxpClient, tool: &str, user: &str) -> CallOutcome {
    let call = CallRequest::new(tool).user_id(user);
    client.call(&call).await.unwrap().outcome
}

#[track_caller]
fn missing_in(outcome: CallOutcome) -> MissingRequirements {
    match outcome {
        CallOutcome::MissingRequirements(missing) => missing,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn challenge_in(outcome: CallOutcome) -> AuthorizationChallenge {
    let mut challenges = missing_in(outcome).challenges;
    assert_eq!(challenges.len(), 1);
    challenges.remove(0)
}

#[track_caller]
fn assert_value(outcome: CallOutcome, expected: &str) {
    match outcome {
        CallOutcome::Value(value) => assert_eq!(value, expected),
        other => panic!("{other:?}"),
    }
}

/// Lets alice follow a challenge's link and allow access.
async fn allow(challenge: &AuthorizationChallenge) {
    Browser::of("alice")
        .follow(&challenge.url, Act::Allow)
        .await;
}

async fn status(challenge: &AuthorizationChallenge) -> String {
    let response = reqwest::get(&challenge.check_url).await.unwrap();
    assert_eq!(response.status(), 200);
    let body: serde_json::Value = response.json().await.unwrap();
    body["status"].as_str().unwrap().to_owned()
}
