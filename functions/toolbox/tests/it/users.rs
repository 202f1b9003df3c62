//! Users' tokens that the function itself obtains over OAuth.

use serde_json::{Value, json};
use test_support::openid::{Act, Browser, OpenId};

use crate::support::{Running, toolbox};
use events::Stub;

async fn emails(url: &str) -> Value {
    let body = json!({"tool_id": "Gmail.GetEmails", "context": {"user_id": "user-1"}});
    let request = reqwest::Client::new().post(format!("{url}/tools/call"));
    let sent = request.body(body.to_string()).send();
    sent.await.unwrap().json().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider; run tests/all"]
async fn gmail_works_with_three_variables() {
    let openid = OpenId::start();
    let stub = Stub::start().await;
    let (_running, url) = Running::serving(
        toolbox()
            .envs(openid.variables())
            .env("GMAIL_URL", stub.url()),
    );
    openid.allow_redirects_to(&url).await;
    let missing = emails(&url).await;
    let challenge = &missing["missing_requirements"]["authorization"][0];
    let challenge_url = challenge["url"]
        .as_str()
        .unwrap_or_else(|| panic!("{missing}"));
    assert!(challenge_url.starts_with(&url), "{challenge_url}");
    let page = Browser::of("alice").follow(challenge_url, Act::Allow).await;
    assert!(page.body.contains("Done"), "{page:?}");
    let answer = emails(&url).await;
    assert_eq!(
        answer["value"]["emails"][0]["subject"], "Welcome to Gmail",
        "{answer}"
    );
}
