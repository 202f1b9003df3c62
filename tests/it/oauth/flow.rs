//! From a challenge to a call that succeeds, and what comes after.

use std::time::Duration;

use lambda_tools::{
    Auth, OAuth,
    client::{
        JwtSigner,
        opentool::{
            FunctionCall, {self},
        },
        oxp::{CallOutcome, CallRequest, ChallengeDecision},
    },
};
use serde_json::Map;
use test_support::openid::{Act, Browser, OpenId};

use super::{
    JWT_SECRET, Served, assert_value, call, challenge_in, missing_in, serve, serve_as, serve_with,
    status,
};
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn a_user_allows_once_and_calls_succeed() {
    let openid = OpenId::start();
    let served = serve(&openid).await;
    let challenge = served.challenge("user-1").await;
    assert_eq!(
        challenge,
        served.challenge("user-1").await,
        "the same while it is pending"
    );
    assert_ne!(challenge, served.challenge("user-2").await);
    assert_eq!(status(&challenge).await, "pending");
    let waiting = {
        let (client, challenge) = (served.client.clone(), challenge.clone());
        tokio::spawn(async move { client.wait_for(&challenge).await.unwrap() })
    };
    let page = Browser::of("alice")
        .follow(&challenge.url, Act::Allow)
        .await;
    assert_eq!(page.status, 200);
    assert!(page.body.contains("You can close this window"), "{page:?}");
    assert_eq!(waiting.await.unwrap(), ChallengeDecision::Completed);
    assert_eq!(status(&challenge).await, "completed");
    assert_value(served.call("user-1").await, "alice");
    assert_value(served.call("user-1").await, "alice");
    assert_eq!(
        openid.asked_for("refresh_token").await,
        (0, 0),
        "the token is still good"
    );
    // Nobody else's.
    let other = served.challenge("user-2").await;
    assert_eq!(status(&other).await, "pending");
    // More scopes are another challenge; then one token has both.
    let more = challenge_in(call(&served.client, "Account.WhoamiWithMail", "user-1").await);
    assert_ne!(more.id, challenge.id);
    Browser::of("alice").follow(&more.url, Act::Allow).await;
    assert_value(
        call(&served.client, "Account.WhoamiWithMail", "user-1").await,
        "alice",
    );
    assert_value(served.call("user-1").await, "alice");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn what_the_client_sends_wins_and_the_user_has_to_be_named() {
    let openid = OpenId::start();
    let served = serve(&openid).await;
    let missing = missing_in(
        served
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
    let challenge = served.challenge("user-1").await;
    Browser::of("alice")
        .follow(&challenge.url, Act::Allow)
        .await;
    assert_value(served.call("user-1").await, "alice");
    let call = CallRequest::new("Account.Whoami").user_id("user-1");
    let call = call.token("google", "a-token-of-the-clients");
    let outcome = served.client.call(&call).await.unwrap().outcome;
    // It is the client's affair that the token is refused.
    assert!(
        matches!(&outcome, CallOutcome::ToolError(it) if !it.can_retry),
        "{outcome:?}"
    );
    assert_value(served.call("user-1").await, "alice");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn opentool_names_the_link() {
    let openid = OpenId::start();
    let served = serve(&openid).await;
    let client = opentool::OpenToolClient::new(&served.url).unwrap();
    let call = FunctionCall::new("call-1", "Account_Whoami", Map::new());
    let error = client.call(&call).await.unwrap_err();
    // Its calls name no user.
    assert!(error.to_string().contains("a user id"), "{error}");
    // Where the token says who it is, there is a link.
    let jwt = Auth::jwt_secret_ids(["JWT_SECRET"]).subject_is_user();
    let served = serve_as(&openid, |it| it, |server| server.auth(jwt)).await;
    let token = JwtSigner::signed_with(JWT_SECRET).subject("user-1");
    let client = opentool::OpenToolClient::new(&served.url)
        .unwrap()
        .jwt(token);
    let error = client.call(&call).await.unwrap_err().to_string();
    let url = error
        .split(' ')
        .find(|word| word.starts_with("http"))
        .unwrap();
    Browser::of("alice").follow(url, Act::Allow).await;
    assert_eq!(client.call(&call).await.unwrap().result["value"], "alice");
}

async fn allowed(served: &Served) {
    let challenge = served.challenge("user-1").await;
    Browser::of("alice")
        .follow(&challenge.url, Act::Allow)
        .await;
    assert_eq!(status(&challenge).await, "completed");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn a_token_that_has_expired_is_refreshed() {
    let openid = OpenId::with(&[("ACCESS_TOKEN_TTL", "1"), ("ROTATE", "1")]);
    let served = serve(&openid).await;
    allowed(&served).await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    for count in 1..=3 {
        assert_value(served.call("user-1").await, "alice");
        assert_eq!(openid.asked_for("refresh_token").await, (count, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn a_grant_that_was_revoked_is_a_new_challenge() {
    // Its token is still good for this server, and refused by the API; or has to be refreshed, and
    // the provider refuses that.
    for life in ["3600", "1"] {
        let openid = OpenId::with(&[("ACCESS_TOKEN_TTL", life)]);
        let served = serve(&openid).await;
        allowed(&served).await;
        assert_value(served.call("user-1").await, "alice");
        openid.revoke("alice").await;
        let call = CallRequest::new("Account.Whoami")
            .user_id("user-1")
            .call_id("call-1");
        let reply = served.client.call(&call).await.unwrap();
        let challenge = challenge_in(reply.outcome);
        assert_eq!(status(&challenge).await, "pending", "{life}");
        Browser::of("alice")
            .follow(&challenge.url, Act::Allow)
            .await;
        // The same call, by its id.
        let reply = served.client.call(&call).await.unwrap();
        assert!(!reply.is_replay);
        assert_value(reply.outcome, "alice");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn consent_that_is_denied_fails_and_can_be_asked_for_anew() {
    let openid = OpenId::start();
    let served = serve(&openid).await;
    let challenge = served.challenge("user-1").await;
    let page = Browser::of("alice").follow(&challenge.url, Act::Deny).await;
    assert!(page.body.contains("Not allowed"), "{page:?}");
    assert_eq!(status(&challenge).await, "failed");
    assert_eq!(
        served.client.wait_for(&challenge).await.unwrap(),
        ChallengeDecision::Failed
    );
    let again = served.challenge("user-1").await;
    assert_ne!(again.id, challenge.id);
    assert_eq!(
        status(&challenge).await,
        "failed",
        "the old one stays what it is"
    );
    Browser::of("alice").follow(&again.url, Act::Allow).await;
    assert_value(served.call("user-1").await, "alice");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn less_than_was_asked_for_is_not_enough() {
    let openid = OpenId::with(&[("SCOPES", "openid mail")]);
    let served = serve(&openid).await;
    let challenge = challenge_in(call(&served.client, "Account.WhoamiWithMail", "user-1").await);
    let page = Browser::of("alice")
        .follow(&challenge.url, Act::Allow)
        .await;
    assert!(page.body.contains("Not everything was allowed"), "{page:?}");
    assert_eq!(status(&challenge).await, "failed");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn two_tabs_at_once_are_one_answer() {
    let openid = OpenId::start();
    let served = serve(&openid).await;
    let challenge = served.challenge("user-1").await;
    let browser = Browser::of("alice");
    let one = browser.follow_to_callback(&challenge.url, Act::Allow).await;
    let other = browser.follow_to_callback(&challenge.url, Act::Allow).await;
    let (one, other) = tokio::join!(browser.get(one.as_str()), browser.get(other.as_str()));
    let done = [&one, &other]
        .iter()
        .filter(|page| page.body.contains("Done"))
        .count();
    assert!(done >= 1, "{one:?} {other:?}");
    assert_eq!(openid.asked_for("authorization_code").await, (1, 0));
    assert_value(served.call("user-1").await, "alice");
    let late = browser.get(&challenge.url).await;
    assert!(late.body.contains("Done"), "{late:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn who_asks_how_a_challenge_stands_can_be_asked_for_credentials() {
    let openid = OpenId::start();
    let change = OAuth::authenticate_checks;
    let served = serve_as(&openid, change, |it| it.auth(Auth::api_key_ids(["KEY"]))).await;
    let client = served.client.clone().api_key("key-of-the-caller");
    let challenge = challenge_in(call(&client, "Account.Whoami", "user-1").await);
    let answer = reqwest::get(&challenge.check_url).await.unwrap();
    assert_eq!(answer.status(), 401);
    let waiting = tokio::spawn({
        let challenge = challenge.clone();
        async move { client.wait_for(&challenge).await.unwrap() }
    });
    // The user needs none.
    Browser::of("alice")
        .follow(&challenge.url, Act::Allow)
        .await;
    assert_eq!(waiting.await.unwrap(), ChallengeDecision::Completed);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn two_tools_can_be_allowed_side_by_side() {
    let openid = OpenId::start();
    let served = serve(&openid).await;
    let tools = ["Account.Whoami", "Account.WhoamiByMail"];
    let one = challenge_in(call(&served.client, tools[0], "user-1").await);
    let other = challenge_in(call(&served.client, tools[1], "user-1").await);
    let browser = Browser::of("alice");
    // Both are on the way before the first one is back.
    let ones = browser.follow_to_callback(&one.url, Act::Allow).await;
    let others = browser.follow_to_callback(&other.url, Act::Allow).await;
    for callback in [ones, others] {
        let page = browser.get(callback.as_str()).await;
        assert!(page.body.contains("Done"), "{page:?}");
    }
    for tool in tools {
        assert_value(call(&served.client, tool, "user-1").await, "alice");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn a_challenge_lasts_while_it_is_asked_for() {
    let openid = OpenId::start();
    let life = Duration::from_secs(2);
    let served = serve_with(&openid, |it| it.challenges_expire_after(life)).await;
    let challenge = served.challenge("user-1").await;
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_millis(1200)).await;
        assert_eq!(served.challenge("user-1").await, challenge);
    }
    assert_eq!(status(&challenge).await, "pending");
    Browser::of("alice")
        .follow(&challenge.url, Act::Allow)
        .await;
    assert_eq!(status(&challenge).await, "completed");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn a_provider_that_is_down_is_no_failed_challenge() {
    let openid = OpenId::start();
    let served = serve(&openid).await;
    let challenge = served.challenge("user-1").await;
    drop(openid);
    let page = Browser::of("alice").start(&challenge.url).await;
    assert_eq!(page.status, 503, "{page:?}");
    assert_eq!(status(&challenge).await, "pending");
}
