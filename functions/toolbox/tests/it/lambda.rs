//! The compiled program as a Lambda function, under a runtime API on a loopback address.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use test_support::lambda::{Report, event, invoke_on};

use crate::{stub::Stub, support::toolbox};

/// Runs the toolbox on these events, each with its time limit; returns a report for each.
pub(crate) async fn invoke(
    events: &[(Value, Option<Duration>)],
    environment: &[(&str, &str)],
) -> Vec<Report> {
    invoke_on(&mut toolbox(), events, environment).await.0
}

#[tokio::test]
async fn the_binary_is_a_lambda_function() {
    let long = Some(Duration::from_secs(30));
    let events = [
        (event("sources/http-api"), long),
        (json!({"Records": [{"eventSource": "aws:sqs"}]}), long),
        (event("malformed/invalid-base64"), long),
        (json!("nonsense"), long),
        (event("sources/alb"), long),
    ];
    let reports = invoke(&events, &[]).await;
    let failed: Vec<_> = reports.iter().map(|(failed, _, _)| *failed).collect();
    assert_eq!(failed, [false, true, false, true, false]);
    let (_, answer, _) = &reports[0];
    assert_eq!(answer["statusCode"], 200);
    let body: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
    assert_eq!(body["value"], 15);
    let (_, error, _) = &reports[1];
    assert_eq!(error["errorType"], "UnsupportedEvent");
    let message = error["errorMessage"].as_str().unwrap();
    assert!(
        message.contains("the event has the fields Records"),
        "{message}"
    );
    assert_eq!(reports[2].1["statusCode"], 400);
    assert_eq!(reports[4].1["statusDescription"], "200 OK");
}

#[tokio::test]
async fn a_response_is_sent_before_the_deadline() {
    let stub = Stub::start().await;
    let mut slow = event("gmail/emails.header-form");
    slow["body"] = slow["body"]
        .as_str()
        .unwrap()
        .replace("is:unread", "slow")
        .into();
    let begun = SystemTime::now();
    let events = [
        (slow.clone(), Some(Duration::from_millis(900))),
        // No time left at all is also a limit.
        (slow, Some(Duration::ZERO)),
        (event("gmail/emails.header-form"), None),
    ];
    let reports = invoke(&events, &[("GMAIL_URL", &stub.url())]).await;
    assert!(begun.elapsed().unwrap() < Duration::from_secs(5));
    assert!(reports[0].2, "the response was late");
    let messages = [
        "The tool did not finish in time",
        "There was no time left to run the tool",
    ];
    for ((failed, answer, _), message) in reports.iter().zip(messages) {
        assert!(!failed);
        let body: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
        assert_eq!(body["success"], false);
        assert_eq!(body["error"]["can_retry"], true, "{body}");
        assert_eq!(body["error"]["message"], message);
    }
    let (_, answer, _) = &reports[2];
    let body: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
    assert_eq!(body["success"], true, "{body}");
}
