//! The authorization flow, from a challenge to a successful call, and the life of a grant.

use lambda_tools::{
    ApiKeys, Jwt, OAuth,
    client::{
        ClientOptions, JwtSigner,
        opentool::{
            FunctionCall, {self},
        },
        oxp::{CallOutcome, CallRequest},
    },
};
use serde_json::{Map, Value};
use test_support::openid::{Act, Browser, OpenId};

use super::{
    JWT_SECRET, ToolServer, allow, assert_value, call, challenge_in, client_with, missing_in,
    serve, serve_as, status,
};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn calls_succeed_after_the_user_allows_access_once() {
    let openid = OpenId::start();
    let server = serve(&openid).await;
    let challenge = server.challenge("user-1").await;
    assert_eq!(
        challenge,
        server.challenge("user-1").await,
        "a pending challenge is reused"
    );
    assert_ne!(challenge, server.challenge("user-2").await);
    assert_eq!(status(&challenge).await, "pending");
    let page = Browser::of("alice")
        .follow(&challenge.url, Act::Allow)
        .await;
    assert_eq!(page.status, 200);
    assert!(page.body.contains("You can close this window"), "{page:?}");
    assert_eq!(status(&challenge).await, "completed");
    assert_value(server.call("user-1").await, "alice");
    assert_value(server.call("user-1").await, "alice");
    assert_eq!(
        openid.token_requests("refresh_token").await,
        (0, 0),
        "the token is still valid"
    );
    // The grant is this user's only.
    let other = server.challenge("user-2").await;
    assert_eq!(status(&other).await, "pending");
    // More scopes need another challenge; then one token has both scopes.
    let more = challenge_in(call(&server.client, "Account.WhoamiWithMail", "user-1").await);
    assert_ne!(more.id, challenge.id);
    allow(&more).await;
    assert_value(
        call(&server.client, "Account.WhoamiWithMail", "user-1").await,
        "alice",
    );
    assert_value(server.call("user-1").await, "alice");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn a_token_from_the_caller_takes_precedence_and_a_grant_needs_a_user_id() {
    let openid = OpenId::start();
    let server = serve(&openid).await;
    let missing = missing_in(
        server
            .client
            .call(&CallRequest::new("Account.Whoami"))
            .await
            .unwrap()
            .outcome,
    );
    assert!(
        missing.user_id && missing.challenges.is_empty(),
        "{missing:?}"
    );
    let challenge = server.challenge("user-1").await;
    allow(&challenge).await;
    assert_value(server.call("user-1").await, "alice");
    let call = CallRequest::new("Account.Whoami").user_id("user-1");
    let call = call.token("google", "a-token-of-the-clients");
    let outcome = server.client.call(&call).await.unwrap().outcome;
    // The caller must replace its own rejected token.
    assert!(
        matches!(&outcome, CallOutcome::ToolError(it) if !it.can_retry),
        "{outcome:?}"
    );
    assert_value(server.call("user-1").await, "alice");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn an_opentool_error_contains_the_link() {
    let openid = OpenId::start();
    let server = serve(&openid).await;
    let client =
        opentool::OpenToolClient::new(&server.served.url, ClientOptions::default()).unwrap();
    let call = FunctionCall::new("call-1", "Account_Whoami", Map::new());
    let error = client.call(&call).await.unwrap_err();
    // OpenTool calls do not name a user.
    assert!(error.to_string().contains("a user id"), "{error}");
    // With a user from the JWT, the error contains a link.
    let jwt = Jwt::with_secret_ids(["JWT_SECRET"]).subject_is_user();
    let server = serve_as(&openid, |it| it, |server| server.auth(jwt)).await;
    let token = JwtSigner::signed_with(JWT_SECRET).subject("user-1");
    let options = ClientOptions::default().jwt(token);
    let client = opentool::OpenToolClient::new(&server.served.url, options).unwrap();
    let error = client.call(&call).await.unwrap_err().to_string();
    let url = error
        .split(' ')
        .find(|word| word.starts_with("http"))
        .unwrap();
    Browser::of("alice").follow(url, Act::Allow).await;
    assert_eq!(client.call(&call).await.unwrap().result["value"], "alice");
}

async fn allow_access(server: &ToolServer) {
    let challenge = server.challenge("user-1").await;
    allow(&challenge).await;
    assert_eq!(status(&challenge).await, "completed");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn an_expiring_token_is_refreshed() {
    let openid = OpenId::with(&[("ACCESS_TOKEN_TTL", "1"), ("ROTATE", "1")]);
    let server = serve(&openid).await;
    allow_access(&server).await;
    // A token that expires within a minute is refreshed.
    for count in 1..=3 {
        assert_value(server.call("user-1").await, "alice");
        assert_eq!(openid.token_requests("refresh_token").await, (count, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn a_revoked_grant_leads_to_a_new_challenge() {
    // With a long life, the server considers the token valid but the API rejects it. With a short
    // one, the token must be refreshed and the provider rejects that.
    for life in ["3600", "1"] {
        let openid = OpenId::with(&[("ACCESS_TOKEN_TTL", life)]);
        let server = serve(&openid).await;
        allow_access(&server).await;
        assert_value(server.call("user-1").await, "alice");
        openid.revoke("alice").await;
        let call = CallRequest::new("Account.Whoami")
            .user_id("user-1")
            .call_id("call-1");
        let reply = server.client.call(&call).await.unwrap();
        let challenge = challenge_in(reply.outcome);
        assert_eq!(status(&challenge).await, "pending", "{life}");
        allow(&challenge).await;
        // The same call, with the same id.
        let reply = server.client.call(&call).await.unwrap();
        assert!(!reply.is_replay);
        assert_value(reply.outcome, "alice");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn denied_consent_fails_the_challenge_and_can_be_requested_again() {
    let openid = OpenId::start();
    let server = serve(&openid).await;
    let challenge = server.challenge("user-1").await;
    let page = Browser::of("alice").follow(&challenge.url, Act::Deny).await;
    assert!(page.body.contains("Not allowed"), "{page:?}");
    assert_eq!(status(&challenge).await, "failed");
    let again = server.challenge("user-1").await;
    assert_ne!(again.id, challenge.id);
    assert_eq!(
        status(&challenge).await,
        "failed",
        "the old challenge does not change"
    );
    allow(&again).await;
    assert_value(server.call("user-1").await, "alice");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn a_grant_with_fewer_scopes_than_requested_fails_the_challenge() {
    let openid = OpenId::with(&[("SCOPES", "openid mail")]);
    let server = serve(&openid).await;
    let challenge = challenge_in(call(&server.client, "Account.WhoamiWithMail", "user-1").await);
    let page = Browser::of("alice")
        .follow(&challenge.url, Act::Allow)
        .await;
    assert!(page.body.contains("Not everything was allowed"), "{page:?}");
    assert_eq!(status(&challenge).await, "failed");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn concurrent_callbacks_in_two_tabs_exchange_one_code() {
    let openid = OpenId::start();
    let server = serve(&openid).await;
    let challenge = server.challenge("user-1").await;
    let browser = Browser::of("alice");
    let one = browser.follow_to_callback(&challenge.url, Act::Allow).await;
    let other = browser.follow_to_callback(&challenge.url, Act::Allow).await;
    let (one, other) = tokio::join!(browser.get(one.as_str()), browser.get(other.as_str()));
    let done = [&one, &other]
        .iter()
        .filter(|page| page.body.contains("Done"))
        .count();
    assert!(done >= 1, "{one:?} {other:?}");
    assert_eq!(openid.token_requests("authorization_code").await, (1, 0));
    assert_value(server.call("user-1").await, "alice");
    let late = browser.get(&challenge.url).await;
    assert!(late.body.contains("Done"), "{late:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn status_checks_can_require_credentials() {
    let openid = OpenId::start();
    let change = OAuth::authenticate_checks;
    let server = serve_as(&openid, change, |it| it.auth(ApiKeys::with_ids(["KEY"]))).await;
    let options = ClientOptions::default().api_key("key-of-the-caller");
    let client = client_with(&server.served.url, options);
    let challenge = challenge_in(call(&client, "Account.Whoami", "user-1").await);
    let response = reqwest::get(&challenge.check_url).await.unwrap();
    assert_eq!(response.status(), 401);
    // The user's browser needs none.
    allow(&challenge).await;
    let check = reqwest::Client::new().get(&challenge.check_url);
    let check = check.header("oxp-api-key", "key-of-the-caller").send();
    let body: Value = check.await.unwrap().json().await.unwrap();
    assert_eq!(body["status"], "completed");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn two_challenges_can_be_completed_concurrently() {
    let openid = OpenId::start();
    let server = serve(&openid).await;
    let tools = ["Account.Whoami", "Account.WhoamiByMail"];
    let one = challenge_in(call(&server.client, tools[0], "user-1").await);
    let other = challenge_in(call(&server.client, tools[1], "user-1").await);
    let browser = Browser::of("alice");
    // Both flows start before the first callback.
    let first = browser.follow_to_callback(&one.url, Act::Allow).await;
    let second = browser.follow_to_callback(&other.url, Act::Allow).await;
    for callback in [first, second] {
        let page = browser.get(callback.as_str()).await;
        assert!(page.body.contains("Done"), "{page:?}");
    }
    for tool in tools {
        assert_value(call(&server.client, tool, "user-1").await, "alice");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn an_unavailable_provider_does_not_fail_the_challenge() {
    let openid = OpenId::start();
    let server = serve(&openid).await;
    let challenge = server.challenge("user-1").await;
    drop(openid);
    let page = Browser::of("alice").start(&challenge.url).await;
    assert_eq!(page.status, 503, "{page:?}");
    assert_eq!(status(&challenge).await, "pending");
}
