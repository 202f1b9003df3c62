//! Tools that act for a user, against a certified `OpenID` provider.
//!
//! `oidc-provider` comes from npm. `tests/all` installs it and runs these tests; a plain
//! `cargo test` lists them as ignored.

mod attacks;
mod flow;
#[cfg(feature = "dynamodb")]
mod instances;
mod page;

use std::time::Duration;

use lambda_tools::{
    Context, Failure, OAuth, Server, Tool, Toolkit,
    client::oxp::{
        AuthorizationChallenge, CallOutcome, CallRequest, MissingRequirements, OxpClient,
    },
    oauth::Provider,
    secrets::Secrets,
};
use schemars::JsonSchema;
use serde::Deserialize;
use test_support::openid::{OpenId, SCOPE};

const KEY: &str = "a-key-of-this-server-0123456789abcdef";

const JWT_SECRET: &str = "jwt-secret-of-the-caller-0123456789abcdef";

/// A server whose tools need tokens of the provider.
struct Served {
    url: String,
    client: OxpClient,
    server: tokio::task::JoinHandle<()>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Says whose token it has, by asking the provider.
fn whoami(openid: &OpenId) -> Vec<Tool> {
    /// Says who the user is at the provider.
    #[derive(Deserialize, JsonSchema)]
    struct Whoami {}

    let ask = {
        let url = format!("{}/whoami", openid.url);
        move |_: Whoami, cx: Context| {
            let url = url.clone();
            async move {
                let token = cx.token("google")?.expose();
                let answer = reqwest::Client::new()
                    .get(url)
                    .bearer_auth(token)
                    .send()
                    .await?;
                if answer.status() == 401 {
                    return Err(cx.token_refused("google"));
                }
                let answer: serde_json::Value = answer.json().await?;
                Ok::<_, Failure>(answer["user"].as_str().unwrap_or_default().to_owned())
            }
        }
    };
    let (other, by_mail) = (ask.clone(), ask.clone());
    vec![
        Tool::new("Account.WhoamiByMail@1.0.0", by_mail)
            .description("Says who the user is, with another scope.")
            .authorization("google", ["mail"]),
        Tool::new("Account.Whoami@1.0.0", ask).authorization("google", [SCOPE]),
        Tool::new("Account.WhoamiWithMail@1.0.0", other)
            .name("Account_WithMail")
            .description("Says who the user is, with more scopes.")
            .authorization("google", [SCOPE, "mail"]),
    ]
}

async fn serve(openid: &OpenId) -> Served {
    serve_with(openid, |authorization| authorization).await
}

async fn serve_with(openid: &OpenId, change: impl FnOnce(OAuth) -> OAuth) -> Served {
    serve_as(openid, change, |server| server).await
}

async fn serve_as(
    openid: &OpenId,
    change: impl FnOnce(OAuth) -> OAuth,
    change_server: impl FnOnce(Server) -> Server,
) -> Served {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let google = Provider::google("toolbox", "GOOGLE_CLIENT_SECRET").issuer(&openid.url);
    let secrets = [
        ("GOOGLE_CLIENT_SECRET", "toolbox-secret"),
        ("TOOLS_OAUTH_KEY", KEY),
        ("JWT_SECRET", JWT_SECRET),
        ("KEY", "key-of-the-caller"),
        ("OTHER_KEY", "key-of-another-caller"),
    ];
    let server = Server::new(Toolkit::new(whoami(openid)).unwrap())
        .secrets(Secrets::fixed(secrets))
        .oauth(change(OAuth::with([google]).public_url(&url)));
    let router = change_server(server).into_router().unwrap();
    let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    openid.allow_redirects_to(&url).await;
    let client = client_of(&url);
    Served {
        url,
        client,
        server,
    }
}

fn client_of(url: &str) -> OxpClient {
    let client = OxpClient::new(url).unwrap().attempts(1);
    client.wait_at_most(Duration::from_secs(5), Duration::from_millis(50))
}

impl Served {
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

async fn status(challenge: &AuthorizationChallenge) -> String {
    let answer = reqwest::get(&challenge.check_url).await.unwrap();
    assert_eq!(answer.status(), 200);
    let body: serde_json::Value = answer.json().await.unwrap();
    body["status"].as_str().unwrap().to_owned()
}
