//! Retries of the OXP client.

use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use futures_util::stream;
use lambda_tools::client::{CallRequest, ClientError, ClientOptions};

use super::{FakeRequest, FakeServer, JSON, answer, oxp};

const DONE: &str = r#"{"call_id": "c", "success": true, "value": 15}"#;

/// Asserts that all requests have the same `call_id`, and returns their number.
#[track_caller]
fn attempts(server: &FakeServer) -> usize {
    let requests = server.requests.lock().unwrap();
    let id = &requests[0].body["call_id"];
    assert!(id.is_string() && requests.iter().all(|it| it.body["call_id"] == *id));
    requests.len()
}

#[tokio::test]
async fn the_server_decides_if_and_when_a_call_is_retried() {
    const SOON: &[(&str, &str)] = &[("retry-after", "0")];
    const LATER: &[(&str, &str)] = &[("retry-after", "1")];
    const YES: &[(&str, &str)] = &[("x-should-retry", "true"), ("retry-after", "0")];
    const NO: &[(&str, &str)] = &[("x-should-retry", "false")];
    let temporary = r#"{"success": false,
        "error": {"message": "m", "can_retry": true, "retry_after_ms": 300}}"#;
    let permanent = r#"{"success": false, "error": {"message": "m"}}"#;
    let challenge = r#"{"message": "m", "missing_requirements": {"user_id": true}}"#;
    // The first response, and the milliseconds until the next request.
    for (status, headers, body, wait) in [
        (408, SOON, "", Some(0)),
        (429, SOON, "", Some(0)),
        (500, SOON, "", Some(0)),
        (503, LATER, "", Some(1000)),
        // At least half of the first wait.
        (503, &[], "", Some(125)),
        (400, YES, "", Some(0)),
        (503, NO, "", None),
        (409, &[], "", None),
        (400, JSON, r#"{"message": "m"}"#, None),
        (400, JSON, challenge, None),
        (200, JSON, temporary, Some(300)),
        (200, JSON, permanent, None),
    ] {
        let respond = move |number, _: &FakeRequest| match number {
            0 => answer(status, headers, body),
            _ => answer(200, JSON, DONE),
        };
        let server = FakeServer::start(respond).await;
        let begun = Instant::now();
        let client = oxp(server.url(), ClientOptions::default());
        let reply = client.call(&CallRequest::new("tool")).await;
        let is_done = reply.is_ok_and(|it| it.outcome.value().is_some());
        assert_eq!(is_done, wait.is_some(), "{status} {body}");
        let count = if is_done { 2 } else { 1 };
        assert_eq!(attempts(&server), count, "{status} {body}");
        let wait = Duration::from_millis(wait.unwrap_or(0));
        assert!(begun.elapsed() >= wait, "{status} {body}");
    }
}

#[tokio::test]
async fn retries_end_after_the_attempts_and_before_the_deadline() {
    for (after, count) in [("0", 4), ("3600", 1)] {
        let busy = move |_, _: &FakeRequest| answer(503, &[("retry-after", after)], "");
        let server = FakeServer::start(busy).await;
        let begun = Instant::now();
        let client = oxp(server.url(), ClientOptions::default());
        let error = client.call(&CallRequest::new("tool")).await;
        assert!(matches!(error, Err(ClientError::Status { .. })));
        assert_eq!(attempts(&server), count);
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
}

#[tokio::test]
async fn both_limits_of_time_end_an_attempt() {
    let short = Duration::from_millis(300);
    let options = ClientOptions::default();
    for (options, count) in [
        (options.clone().timeout(short).attempts(2), 2),
        (options.deadline(short), 1),
    ] {
        // The body never comes.
        let endless = |_, _: &FakeRequest| {
            let body = stream::pending::<std::io::Result<Bytes>>();
            answer(200, JSON, Body::from_stream(body))
        };
        let server = FakeServer::start(endless).await;
        let begun = Instant::now();
        let client = oxp(server.url(), options);
        let error = client.call(&CallRequest::new("tool")).await.unwrap_err();
        assert!(error.to_string().contains("no response in time"), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(5));
        assert_eq!(attempts(&server), count);
    }
}
