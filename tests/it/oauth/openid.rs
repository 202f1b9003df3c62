//! The flow with a certified provider, npm's `oidc-provider`.
//!
//! `tests/all` installs the provider and runs these tests; a plain `cargo test` ignores them.

use std::process::Stdio;

use lambda_tools::client::{
    ClientOptions,
    oxp::{AuthorizationChallenge, CallOutcome, CallRequest, OxpClient},
};
use test_support::{
    Running,
    marks::Scratch,
    openid::{Act, Browser, OpenId},
};

use crate::tools::program;

/// A running program, and the tokens that its tool has had.
struct ToolServer {
    running: Running,
    client: OxpClient,
    tokens: Scratch,
}

impl ToolServer {
    async fn start(openid: &OpenId, name: &str) -> Self {
        let tokens = Scratch::new(name);
        let mut command = program();
        command
            .envs(openid.variables())
            .env("TOKENS", &tokens.0)
            .env("RUST_LOG", "trace")
            .stderr(Stdio::null());
        let (running, url) = Running::serving(&mut command);
        openid.allow_redirects_to(&url).await;
        let client = OxpClient::new(&url, ClientOptions::default().attempts(1)).unwrap();
        Self {
            running,
            client,
            tokens,
        }
    }

    async fn call(&self) -> CallOutcome {
        let call = CallRequest::new("Gmail.GetEmails").user_id("user-1");
        self.client.call(&call).await.unwrap().outcome
    }

    async fn challenge(&self) -> AuthorizationChallenge {
        match self.call().await {
            CallOutcome::MissingRequirements(mut missing) => missing.challenges.remove(0),
            other => panic!("{other:?}"),
        }
    }
}

fn parameter(url: &reqwest::Url, name: &str) -> String {
    let mut pairs = url.query_pairs();
    pairs.find(|it| it.0 == name).unwrap().1.into_owned()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn tokens_that_rotate_are_refreshed_until_they_are_revoked_and_nothing_is_printed() {
    // A token that expires within a minute is refreshed by each call.
    let openid = OpenId::with(&[("ACCESS_TOKEN_TTL", "1"), ("ROTATE", "1")]);
    let server = ToolServer::start(&openid, "rotating").await;
    let browser = Browser::of("alice");
    let challenge = server.challenge().await;
    let callback = browser.follow_to_callback(&challenge.url, Act::Allow).await;
    let page = browser.get(callback.as_str()).await;
    assert!(page.body.contains("<title>Done</title>"), "{page:?}");
    for count in 1..=3 {
        assert!(server.call().await.value().is_some(), "{count}");
        assert_eq!(openid.token_requests("refresh_token").await, (count, 0));
    }
    openid.revoke("alice").await;
    assert_ne!(server.challenge().await.id, challenge.id);

    let mut marks: Vec<_> = server.tokens.text().lines().map(str::to_owned).collect();
    assert_eq!(marks.len(), 3, "the tool's tokens");
    let [_, _, (_, key), _] = openid.variables();
    marks.extend([key, "toolbox-secret"].map(str::to_owned));
    let state = parameter(&callback, "state");
    marks.extend(state.rsplit('.').next().map(str::to_owned));
    marks.push(parameter(&callback, "code"));
    let lines = server.running.end();
    let is_trace = |line: &String| line.contains("TRACE");
    assert!(lines.iter().any(is_trace), "everything is logged");
    for mark in &marks {
        let line = lines.iter().find(|line| line.contains(mark));
        assert_eq!(line, None, "{mark} is printed");
    }
}
