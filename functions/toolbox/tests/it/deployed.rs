//! The function as it is deployed, with the features of production, under a runtime API.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use test_support::lambda::{LONG, Platform, calling};

use crate::support::faults;

/// Enough time for a limited call, even next to other tests on two cores. Without the limits, calls
/// took five to ten seconds or never ended.
const SOON: Duration = Duration::from_secs(2);

fn fault(kind: &str) -> Value {
    let call = json!({"tool_id": "Fault.Do", "input": {"kind": kind}});
    calling(&call, &[])
}

/// Starts the function of faults.
async fn start() -> Platform {
    Platform::start(&mut faults(), &[], &[("KEY", "stored-0123456789")]).await
}

/// Makes a call; returns the body of the response.
async fn call(platform: &mut Platform, event: Value, limit: Option<Duration>) -> Value {
    platform.send_events(&[(event, limit)]);
    let (failed, answer, in_time) = platform.reports(1).await.remove(0);
    assert!(!failed && in_time, "{answer}");
    serde_json::from_str(answer["body"].as_str().unwrap()).unwrap()
}

async fn assert_healthy(platform: &mut Platform) {
    let answer = call(platform, fault("nothing"), LONG).await;
    assert_eq!(answer["success"], true, "{answer}");
}

/// No time left at all is also a limit.
#[tokio::test]
#[ignore = "needs what tests/all builds"]
async fn a_tool_that_outlasts_the_platforms_deadline_fails_in_time_and_the_process_goes_on() {
    let mut platform = start().await;
    let begun = Instant::now();
    let short = Some(Duration::from_millis(600));
    let answer = call(&mut platform, fault("hang"), short).await;
    let error = &answer["error"];
    assert_eq!(error["message"], "The tool did not finish in time");
    assert_eq!(error["can_retry"], true, "{answer}");
    assert_healthy(&mut platform).await;
    assert!(begun.elapsed() < SOON);
    platform.send_events(&[(fault("nothing"), Some(Duration::ZERO))]);
    let (failed, answer, _) = platform.reports(1).await.remove(0);
    let no_time = "There was no time left to run the tool";
    assert!(!failed && answer.to_string().contains(no_time), "{answer}");
}

#[tokio::test]
#[ignore = "needs what tests/all builds"]
async fn sigterm_ends_the_process_at_once() {
    let mut platform = start().await;
    assert_healthy(&mut platform).await;
    platform.function.signal("TERM");
    assert!(platform.function.has_ended_within(2));
}
