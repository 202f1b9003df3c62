//! The flow with a certified provider, npm's `oidc-provider`, and the life of its tokens.
//!
//! `tests/all` installs the provider and runs these tests; a plain `cargo test` ignores them.

use std::process::Stdio;

use lambda_tools::{
    Context, Failure, OAuth, Tool, Toolkit,
    client::{
        ClientOptions,
        oxp::{AuthorizationChallenge, CallOutcome, CallRequest, OxpClient},
    },
    oauth::Provider,
    secrets::Secrets,
};
use serde_json::{Value, json};
use test_support::{
    Running, Served,
    marks::Scratch,
    openid::{Act, Browser, OpenId, SCOPE},
};

use crate::{support::server, tools::program};

/// A running server whose tools return the name of a token's user, which they request from the
/// provider.
struct ToolServer {
    client: OxpClient,
    _served: Served,
}

impl ToolServer {
    async fn start(openid: &OpenId) -> Self {
        let whoami = {
            let url = format!("{}/whoami", openid.url);
            move |_: Value, cx: Context| {
                let request = reqwest::Client::new().get(&url);
                async move {
                    let request = request.bearer_auth(cx.token("google")?.expose());
                    let response = request.send().await?;
                    if response.status() == 401 {
                        return Err(cx.token_rejected("google"));
                    }
                    let body: Value = response.json().await?;
                    Ok::<_, Failure>(body["user"].clone())
                }
            }
        };
        let tool = |id: &'static str, scopes: &[&str]| {
            let input = json!({"type": "object"});
            let tool = Tool::dynamic(id, "Says who.", input, json!({}), whoami.clone());
            tool.authorization("google", scopes.iter().copied())
        };
        let tools = [tool(WHOAMI, &[SCOPE]), tool(WITH_MAIL, &[SCOPE, "mail"])];
        let google = Provider::google("toolbox", "GOOGLE_CLIENT_SECRET").issuer(&openid.url);
        let server = server(Toolkit::new(tools).unwrap())
            .secrets(Secrets::fixed([
                ("GOOGLE_CLIENT_SECRET", "toolbox-secret"),
                ("TOOLS_OAUTH_KEY", "a-key-of-this-server-0123456789abcdef"),
            ]))
            .oauth(OAuth::with([google]));
        let router = async |url: &str| server.public_url(url).into_router().unwrap();
        let served = Served::start_with(router).await;
        openid.allow_redirects_to(&served.url).await;
        let client = client_of(&served.url);
        Self {
            client,
            _served: served,
        }
    }

    async fn call(&self, tool: &str) -> CallOutcome {
        call(&self.client, tool).await
    }

    async fn challenge(&self, tool: &str) -> AuthorizationChallenge {
        challenge_in(self.call(tool).await)
    }

    async fn assert_succeeds(&self, tool: &str) {
        assert_eq!(self.call(tool).await.value(), Some(json!("alice")));
    }
}

const WHOAMI: &str = "Account.Whoami@1.0.0";
const WITH_MAIL: &str = "Account.WhoamiWithMail@1.0.0";

fn client_of(url: &str) -> OxpClient {
    OxpClient::new(url, ClientOptions::default().attempts(1)).unwrap()
}

async fn call(client: &OxpClient, tool: &str) -> CallOutcome {
    let call = CallRequest::new(tool).user_id("user-1");
    client.call(&call).await.unwrap().outcome
}

#[track_caller]
fn challenge_in(outcome: CallOutcome) -> AuthorizationChallenge {
    match outcome {
        CallOutcome::MissingRequirements(mut missing) => missing.challenges.remove(0),
        other => panic!("{other:?}"),
    }
}

/// Lets alice follow a challenge's link and allow access.
async fn allow(challenge: &AuthorizationChallenge) {
    let browser = Browser::of("alice");
    let page = browser.follow(&challenge.url, Act::Allow).await;
    assert!(page.body.contains("<title>Done</title>"), "{page:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn calls_succeed_after_the_user_allows_access_once() {
    let openid = OpenId::start();
    let server = ToolServer::start(&openid).await;
    allow(&server.challenge(WHOAMI).await).await;
    server.assert_succeeds(WHOAMI).await;
    // More scopes need another challenge; then one token has both scopes.
    allow(&server.challenge(WITH_MAIL).await).await;
    server.assert_succeeds(WITH_MAIL).await;
    server.assert_succeeds(WHOAMI).await;
    // The tokens are still valid.
    assert_eq!(openid.token_requests("refresh_token").await, (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn a_code_from_another_session_is_rejected() {
    let openid = OpenId::start();
    let server = ToolServer::start(&openid).await;
    let challenge = server.challenge(WHOAMI).await;
    let [alice, mallory] = ["alice", "mallory"].map(Browser::of);
    let attackers = mallory.follow_to_callback(&challenge.url, Act::Allow).await;
    let mut own = alice.follow_to_callback(&challenge.url, Act::Allow).await;
    // The attacker's code with the victim's state: the PKCE verifier does not match.
    let mut pairs: Vec<_> = own.query_pairs().into_owned().collect();
    let code = attackers.query_pairs().find(|(name, _)| name == "code");
    pairs.retain(|(name, _)| name != "code");
    pairs.push(
        code.map(|(name, code)| (name.into_owned(), code.into_owned()))
            .unwrap(),
    );
    own.query_pairs_mut().clear().extend_pairs(pairs);
    let page = alice.get(own.as_str()).await;
    assert!(page.body.contains("did not work"), "{page:?}");
    assert_eq!(openid.token_requests("authorization_code").await, (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn a_revoked_grant_leads_to_a_new_challenge() {
    // With a long life, the server considers the token valid but the API rejects it. With a short
    // one, the token must be refreshed, and the provider rejects that.
    for life in ["3600", "1"] {
        let openid = OpenId::with(&[("ACCESS_TOKEN_TTL", life)]);
        let server = ToolServer::start(&openid).await;
        let first = server.challenge(WHOAMI).await;
        allow(&first).await;
        server.assert_succeeds(WHOAMI).await;
        openid.revoke("alice").await;
        let second = server.challenge(WHOAMI).await;
        assert_ne!(first.id, second.id, "{life}");
        allow(&second).await;
        server.assert_succeeds(WHOAMI).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn tokens_that_rotate_are_refreshed_and_nothing_secret_is_printed() {
    let openid = OpenId::with(&[("ACCESS_TOKEN_TTL", "1"), ("ROTATE", "1")]);
    let tokens = Scratch::new("tokens");
    let mut command = program();
    command
        .envs(openid.variables())
        .env("TOKENS", &tokens.0)
        .env("RUST_LOG", "trace")
        .stderr(Stdio::null());
    let (running, url) = Running::serving(&mut command);
    openid.allow_redirects_to(&url).await;
    let client = client_of(&url);
    let challenge = challenge_in(call(&client, "Gmail.GetEmails").await);
    let browser = Browser::of("alice");
    let callback = browser.follow_to_callback(&challenge.url, Act::Allow).await;
    browser.get(callback.as_str()).await;
    for count in 1..=3 {
        let value = call(&client, "Gmail.GetEmails").await.value();
        assert!(value.is_some(), "{count}");
        assert_eq!(openid.token_requests("refresh_token").await, (count, 0));
    }
    let mut marks: Vec<_> = tokens.text().lines().map(str::to_owned).collect();
    assert_eq!(marks.len(), 3, "the tool's tokens");
    let [_, _, (_, key), _] = openid.variables();
    marks.extend([key, "toolbox-secret"].map(str::to_owned));
    for name in ["code", "state"] {
        let (_, value) = callback.query_pairs().find(|it| it.0 == name).unwrap();
        marks.extend(value.rsplit('.').next().map(str::to_owned));
    }
    let lines = running.end();
    let is_trace = |line: &String| line.contains("TRACE");
    assert!(
        lines.iter().any(is_trace),
        "everything is logged: {lines:?}"
    );
    for mark in &marks {
        let line = lines.iter().find(|line| line.contains(mark));
        assert_eq!(line, None, "{mark} is printed");
    }
}
