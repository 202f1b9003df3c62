//! Concurrent invocations in one process, as on Lambda Managed Instances.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use lambda_tools::{Failure, Tool, Toolkit, serve};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use test_support::{
    assert_program,
    lambda::{Platform, event},
    program,
};

const CONCURRENCY: usize = 64;

/// Waits for half a second.
#[derive(Deserialize, JsonSchema)]
struct Wait {
    /// The value to return.
    number: usize,
}

async fn wait(input: Wait) -> Result<usize, Failure> {
    tokio::time::sleep(Duration::from_millis(500)).await;
    tracing::info!(number = input.number, "waited");
    Ok(input.number)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a program that tests start"]
async fn waiting_program_of_tests() {
    assert_program();
    let tools = [Tool::new("Clock.Wait@1.0.0", wait)];
    serve(Toolkit::new(tools).unwrap()).await.unwrap();
}

fn calls(numbers: impl Iterator<Item = usize>) -> Vec<(Value, Option<Duration>)> {
    let call = |number| {
        let mut event = event("calculator/add.header-form");
        let body = json!({
            "tool_id": "Clock.Wait",
            "call_id": format!("call-{number}"),
            "input": {"number": number},
        });
        event["body"] = body.to_string().into();
        (event, Some(Duration::from_secs(20)))
    };
    numbers.map(call).collect()
}

/// Makes the calls of these numbers; returns the time it took, and the sorted values.
async fn make_calls(
    platform: &mut Platform,
    numbers: std::ops::Range<usize>,
) -> (Duration, Vec<u64>) {
    let begun = Instant::now();
    platform.send_events(&calls(numbers.clone()));
    let reports = platform.reports(numbers.len()).await;
    let elapsed = begun.elapsed();
    let value = |(failed, response, in_time): (bool, Value, bool)| {
        assert!(!failed && in_time, "{response}");
        let body: Value = serde_json::from_str(response["body"].as_str().unwrap()).unwrap();
        let value = body["value"].as_u64().unwrap();
        assert_eq!(body["call_id"], format!("call-{value}"));
        value
    };
    let mut values: Vec<_> = reports.into_iter().map(value).collect();
    values.sort_unstable();
    (elapsed, values)
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_calls_run_concurrently() {
    let mut command = program("managed::waiting_program_of_tests");
    let concurrency = CONCURRENCY.to_string();
    let environment = [("AWS_LAMBDA_MAX_CONCURRENCY", &*concurrency)];
    let mut platform = Platform::start(&mut command, &[], &environment).await;
    make_calls(&mut platform, 0..1).await;
    let (one, _) = make_calls(&mut platform, 1..2).await;
    let (all, values) = make_calls(&mut platform, 100..100 + CONCURRENCY).await;
    assert!(all < one * 3, "{all:?} for all, {one:?} for one");
    assert_eq!(values, (100..164).collect::<Vec<u64>>());
    // The line of a call and the line of its tool have the request id of their own invocation.
    let lines = platform.end();
    let lines = lines
        .iter()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut invocations = BTreeMap::<String, Vec<Value>>::new();
    for line in lines.filter(|line| line["message"] == "call" || line["message"] == "waited") {
        let call_id = line["call_id"].as_str().unwrap().to_owned();
        if line["message"] == "waited" {
            assert_eq!(call_id, format!("call-{}", line["number"]));
        }
        invocations
            .entry(call_id)
            .or_default()
            .push(line["requestId"].clone());
    }
    assert_eq!(invocations.len(), CONCURRENCY + 2);
    for (call_id, requests) in &invocations {
        assert!(
            requests.len() == 2 && requests[0] == requests[1],
            "{call_id}"
        );
    }
    let distinct: BTreeSet<_> = invocations.values().map(|it| it[0].to_string()).collect();
    assert_eq!(distinct.len(), CONCURRENCY + 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_variable_calls_run_one_at_a_time() {
    let mut command = program("managed::waiting_program_of_tests");
    let mut platform = Platform::start(&mut command, &[], &[]).await;
    make_calls(&mut platform, 0..1).await;
    let (elapsed, values) = make_calls(&mut platform, 1..4).await;
    assert_eq!(values, [1, 2, 3]);
    assert!(elapsed >= Duration::from_millis(1500), "{elapsed:?}");
}
