//! What users see, in a real browser.

use std::process::Command;

use super::{assert_value, openid::OpenId, serve, status};
use crate::support::repository;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider and Chromium; run tests/all"]
async fn chromium_logs_in_and_allows() {
    let openid = OpenId::start();
    let served = serve(&openid).await;
    let challenge = served.challenge("user-1").await;
    let picture = repository("target/artifacts/authorization.png");
    std::fs::create_dir_all(picture.parent().unwrap()).unwrap();
    let mut browser = Command::new("node");
    browser
        .arg(repository("target/openid/chromium_flow.mjs"))
        .args([&challenge.url, picture.to_str().unwrap()]);
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
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["title"], "Done");
    assert!(
        said["text"]
            .as_str()
            .unwrap()
            .contains("You can close this window")
    );
    assert_eq!(
        said["outside"],
        serde_json::json!([]),
        "nothing else was asked for"
    );
    assert!(std::fs::metadata(picture).unwrap().len() > 1000);
    assert_eq!(status(&challenge).await, "completed");
    assert_value(served.call("user-1").await, "alice");
}
