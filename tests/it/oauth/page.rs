//! What users see, in a real browser.

use std::process::Command;

use lambda_tools::client::oxp::AuthorizationChallenge;
use serde_json::Value;
use test_support::{
    Running,
    openid::{OpenId, SCOPE},
    repository,
};

use super::{KEY, call, challenge_in, client_of, serve, status};
use crate::tools::program;

/// Opens a challenge in Chromium and returns its report of the last page. Fails where the page
/// requests anything from another address.
async fn chromium(challenge: &AuthorizationChallenge, action: &str) -> Value {
    let picture = repository(&format!("target/artifacts/authorization.{action}.png"));
    std::fs::create_dir_all(picture.parent().unwrap()).unwrap();
    let mut browser = Command::new("node");
    browser
        .arg(repository("target/openid/chromium_flow.mjs"))
        .args([&challenge.url, picture.to_str().unwrap(), action]);
    let run = tokio::task::spawn_blocking(move || browser.output());
    let output = run.await.unwrap().unwrap();
    let (said, error) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success(),
        "Chromium does not finish the flow; without it, install Debian's chromium-headless-shell \
         or name one in CHROMIUM: {said}{error}"
    );
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        said["outside"],
        serde_json::json!([]),
        "nothing else was asked for"
    );
    assert!(std::fs::metadata(picture).unwrap().len() > 1000);
    said
}

/// With the local server, which takes nothing from other sites: browsers have to see that the form
/// is its own.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider and Chromium; run tests/all"]
async fn chromium_logs_in_and_allows() {
    let openid = OpenId::start();
    let (_running, url) = Running::serving(
        program()
            .env("TOOLS_GOOGLE_CLIENT_ID", "toolbox")
            .env("TOOLS_GOOGLE_CLIENT_SECRET", "toolbox-secret")
            .env("TOOLS_OAUTH_KEY", KEY)
            .env("TOOLS_GOOGLE_ISSUER", &openid.url),
    );
    openid.allow_redirects_to(&url).await;
    let client = client_of(&url);
    let challenge = challenge_in(call(&client, "Gmail.GetEmails", "user-1").await);
    let said = chromium(&challenge, "allow").await;
    let question = said["question"].as_str().unwrap();
    for part in ["user-1", SCOPE, "Continue to google"] {
        assert!(question.contains(part), "{question}");
    }
    assert!(
        !said["log"].to_string().contains("Security Policy"),
        "{said}"
    );
    assert_eq!(said["title"], "Done");
    assert!(
        said["text"]
            .as_str()
            .unwrap()
            .contains("You can close this window")
    );
    assert_eq!(status(&challenge).await, "completed");
    let outcome = call(&client, "Gmail.GetEmails", "user-1").await;
    assert!(outcome.value().is_some());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider and Chromium; run tests/all"]
async fn chromium_keeps_the_cookie_from_forms_of_other_sites() {
    let openid = OpenId::start();
    let served = serve(&openid).await;
    let challenge = served.challenge("user-1").await;
    let said = chromium(&challenge, "forge").await;
    assert_eq!(said["title"], "This page does not belong to this browser");
    assert_eq!(status(&challenge).await, "pending");
}
