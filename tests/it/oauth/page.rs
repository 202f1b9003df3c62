//! The users' pages, in a real browser.

use lambda_tools::client::oxp::AuthorizationChallenge;
use serde_json::Value;
use test_support::{
    Running, chromium,
    openid::{OpenId, SCOPE},
    repository,
};

use super::{call, challenge_in, client_of, status};
use crate::tools::program;

/// Opens a challenge in Chromium and returns the script's report. Panics if a page loads anything
/// from another address.
async fn browse(challenge: &AuthorizationChallenge) -> Value {
    let screenshot = repository("target/artifacts/authorization.allow.png");
    std::fs::create_dir_all(screenshot.parent().unwrap()).unwrap();
    let file = screenshot.display().to_string();
    let arguments = [challenge.url.clone(), file, "allow".to_owned()];
    let report = chromium("authorization_flow.mjs", &arguments).await;
    let outside = report["outside"].as_array().unwrap();
    assert!(outside.is_empty(), "requests to other addresses: {report}");
    assert!(std::fs::metadata(screenshot).unwrap().len() > 1000);
    report
}

/// Runs with the local server, which rejects requests from other sites: the browser must recognize
/// the form as same-origin.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider and Chromium; run tests/all"]
async fn a_user_can_allow_access_in_chromium() {
    let openid = OpenId::start();
    let (_running, url) = Running::serving(program().envs(openid.variables()));
    openid.allow_redirects_to(&url).await;
    let client = client_of(&url);
    let challenge = challenge_in(call(&client, "Gmail.GetEmails", "user-1").await);
    let report = browse(&challenge).await;
    let question = report["question"].as_str().unwrap();
    for part in ["user-1", SCOPE, "Continue to Google"] {
        assert!(question.contains(part), "{question}");
    }
    assert!(
        !report["log"].to_string().contains("Security Policy"),
        "{report}"
    );
    assert_eq!(report["title"], "Done");
    assert!(
        report["text"]
            .as_str()
            .unwrap()
            .contains("You can close this window")
    );
    assert_eq!(status(&challenge).await, "completed");
    let outcome = call(&client, "Gmail.GetEmails", "user-1").await;
    assert!(outcome.value().is_some());
}
