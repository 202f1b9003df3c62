//! The function as it is deployed, with the features of production, under a runtime API.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use test_support::{
    aws::CREDENTIALS,
    dynamodb::DynamoDb,
    lambda::{LONG, Platform, calling},
};

use crate::support::{faults, toolbox};
use events::{Stub, TWILIO_KEY};

/// Enough time for a limited call, even next to other tests on two cores. Without the limits, calls
/// took five to ten seconds or never ended.
const SOON: Duration = Duration::from_secs(2);

fn fault(tool: &str, kind: &str) -> Value {
    calling(&json!({"tool_id": tool, "input": {"kind": kind}}), &[])
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
    let answer = call(platform, fault("Fault.Do", "nothing"), LONG).await;
    assert_eq!(answer["success"], true, "{answer}");
}

#[tokio::test]
#[ignore = "needs what tests/all builds"]
async fn a_tool_that_panics_or_never_ends_fails_in_time_and_the_process_goes_on() {
    let mut platform = start().await;
    let stopped = "The tool stopped because of an internal error";
    let out_of_time = "The tool did not finish in time";
    // The platform's deadline applies as well. No time left at all is also a limit.
    let short = Some(Duration::from_millis(600));
    for (tool, kind, limit, message) in [
        ("Fault.Do", "panic", LONG, stopped),
        ("Fault.Do", "hang", LONG, out_of_time),
        ("Fault.Block", "block", LONG, out_of_time),
        ("Fault.Block", "hang", LONG, out_of_time),
        ("Fault.Do", "hang", short, out_of_time),
    ] {
        let begun = Instant::now();
        let answer = call(&mut platform, fault(tool, kind), limit).await;
        assert!(begun.elapsed() < SOON, "{tool} {kind}");
        let error = &answer["error"];
        assert_eq!(error["message"], message);
        assert_eq!(error["can_retry"], message == out_of_time, "{answer}");
        // Even while its thread is still blocked.
        assert_healthy(&mut platform).await;
        assert!(begun.elapsed() < SOON, "{tool} {kind}");
    }
    platform.send_events(&[(fault("Fault.Do", "nothing"), Some(Duration::ZERO))]);
    let (failed, answer, _) = platform.reports(1).await.remove(0);
    let no_time = "There was no time left to run the tool";
    assert!(!failed && answer.to_string().contains(no_time), "{answer}");
    let printed = platform.end();
    assert!(
        printed.iter().any(|it| it.contains("a tool panicked")),
        "{printed:#?}"
    );
}

/// `docs/calls.md`, for a tool that runs at most once: its effect is a message.
#[tokio::test]
#[ignore = "needs what tests/all builds"]
async fn a_call_whose_process_is_killed_after_its_effect_has_no_second_one() {
    for is_recorded in [false, true] {
        // The second write of a call records its outcome.
        let dynamodb = DynamoDb::stalling("calls", 2, is_recorded).await;
        let stub = Stub::start().await;
        let (table, twilio) = (dynamodb.url(), stub.url());
        let environment = [
            &CREDENTIALS[..],
            &[
                ("TOOLS_IDEMPOTENCY", "dynamodb"),
                ("TOOLS_IDEMPOTENCY_TABLE", "calls"),
                ("AWS_ENDPOINT_URL_DYNAMODB", &table),
                ("TWILIO_URL", &twilio),
                ("TWILIO_API_KEY", TWILIO_KEY),
            ],
        ]
        .concat();
        let input = json!({"to": "+15005550006", "message": "Hi"});
        let body = json!({"tool_id": "SMS.Send", "call_id": "killed", "input": input});
        let event = calling(&body, &[]);
        let limit = Duration::from_secs(3);
        let mut platform = Platform::start(&mut toolbox(), &[], &environment).await;
        let delivered = platform.deliver(&event, limit, None).await;
        dynamodb.stalled().await;
        platform.function.signal("KILL");
        assert!(platform.function.has_ended_within(5));
        drop(platform);
        assert_eq!(stub.requests().len(), 1);
        // Lambda starts another process. The claim is free after the deadline, and the two seconds
        // by which clocks may differ.
        let mut next = Platform::start(&mut toolbox(), &[], &environment).await;
        if !is_recorded {
            let free = delivered + limit + Duration::from_secs(3);
            tokio::time::sleep_until(free.into()).await;
        }
        let answer = call(&mut next, event, LONG).await;
        if is_recorded {
            assert_eq!(answer["success"], true, "{answer}");
        } else {
            let message = "This call was cut off, and may have had its effect";
            assert_eq!(answer["error"]["message"], message, "{answer}");
        }
        assert_eq!(stub.requests().len(), 1);
    }
}

#[tokio::test]
#[ignore = "needs what tests/all builds"]
async fn sigterm_ends_the_process_at_once() {
    let mut platform = start().await;
    assert_healthy(&mut platform).await;
    platform.function.signal("TERM");
    assert!(platform.function.has_ended_within(2));
}
