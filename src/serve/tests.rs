//! Tools that block their thread, in a process of their own.

use std::{process::Command, thread, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use test_support::{
    Running, assert_program,
    lambda::{LONG, Platform, calling},
    program,
};

use super::*;
use crate::{Failure, Tool, Toolkit};

/// The time limit of the tools that exceed it.
const SHORT: Duration = Duration::from_millis(100);

/// Says what to do.
#[derive(Deserialize, JsonSchema)]
struct Work {
    /// The kind of work.
    kind: String,
}

#[expect(clippy::needless_pass_by_value, reason = "a tool owns its parameters")]
fn work(input: Work) -> Result<String, Failure> {
    match &*input.kind {
        "read" => Ok(std::fs::read_to_string("/nowhere")?),
        _ => loop {
            thread::park();
        },
    }
}

/// Blocks the thread that it shares with other calls.
async fn block(_: Work) -> Result<(), Failure> {
    thread::sleep(Duration::from_secs(1));
    Ok(())
}

fn toolkit() -> Toolkit {
    let repeat = |input: Work| Ok::<_, Failure>(input.kind);
    Toolkit::new([
        Tool::new("Plain.Work@1.0.0", work).timeout(SHORT),
        Tool::new("Plain.Repeat@1.0.0", repeat),
        Tool::new("Async.Block@1.0.0", block).timeout(SHORT),
    ])
    .unwrap()
}

/// Not a test: the function that other tests run in a separate process.
#[test]
#[ignore = "started by other tests"]
fn blocked_program_of_tests() {
    assert_program();
    // Without the arguments of this process, which are those of a test.
    run_here(Server::new(toolkit())).unwrap();
}

fn command() -> Command {
    program("serve::tests::blocked_program_of_tests")
}

fn call(tool: &str, kind: &str) -> (Value, Option<Duration>) {
    let body = json!({"tool_id": tool, "input": json!({"kind": kind})});
    (calling(&body, &[]), LONG)
}

#[tokio::test]
async fn on_the_only_thread_of_lambda_the_log_names_the_tool_that_blocks_it() {
    let calls = [
        call("Plain.Work", "forever"),
        call("Async.Block", "x"),
        call("Plain.Repeat", "x"),
    ];
    let mut platform = Platform::start(&mut command(), &calls, &[]).await;
    let reports = platform.reports(calls.len()).await;
    let bodies = reports.iter().map(|(_, response, _)| {
        serde_json::from_str::<Value>(response["body"].as_str().unwrap()).unwrap()
    });
    let bodies: Vec<_> = bodies.collect();
    let message = "The tool did not finish in time";
    assert_eq!(bodies[0]["error"]["message"], message);
    assert_eq!(bodies[2]["value"], "x");
    let printed = platform.end();
    let lines = printed
        .iter()
        .filter_map(|it| serde_json::from_str(it).ok());
    let errors: Vec<Value> = lines
        .filter(|line: &Value| line["level"] == "ERROR")
        .collect();
    assert_eq!(errors.len(), 1, "{printed:#?}");
    for (field, start) in [
        ("tool", "Async.Block"),
        ("message", "the tool blocks its thread past its time limit"),
    ] {
        let value = errors[0][field].as_str().unwrap();
        assert!(value.starts_with(start), "{}", errors[0]);
    }
}

/// A function that never returns keeps its thread, but not all of those that DNS lookups need, too.
#[tokio::test(flavor = "multi_thread")]
async fn at_most_64_of_them_run_at_once_and_the_others_wait_within_their_limit() {
    let (_running, url) = Running::serving(&mut command());
    let client = reqwest::Client::new();
    let call = move |tool: &str, kind: &str| {
        let body = json!({"tool_id": tool, "input": json!({"kind": kind})}).to_string();
        let request = client.post(format!("{url}/tools/call")).body(body);
        async move { request.send().await.unwrap().json::<Value>().await.unwrap() }
    };
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..64 {
        calls.spawn(call("Plain.Work", "forever"));
    }
    for response in calls.join_all().await {
        let message = &response["error"]["message"];
        assert_eq!(message, "The tool did not finish in time");
    }
    let error = &call("Plain.Work", "read").await["error"];
    let detail = "All 64 threads for functions that are not async were busy. Nothing was run.";
    assert_eq!(error["message"], "There was no time left to run the tool");
    assert_eq!(error["developer_message"], detail);
    assert_eq!(error["can_retry"], true);
    // This one runs.
    let error = &call("Async.Block", "x").await["error"];
    assert_eq!(error["message"], "The tool did not finish in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_local_server_warns_of_tools_that_block_their_thread() {
    let (mut running, url) = Running::serving(command().env("NO_COLOR", "1"));
    let client = reqwest::Client::new();
    for tool in ["Plain.Work", "Async.Block"] {
        let body = json!({"tool_id": tool, "input": json!({"kind": "forever"})});
        let sent = client
            .post(format!("{url}/tools/call"))
            .body(body.to_string());
        assert_eq!(sent.send().await.unwrap().status(), 200);
    }
    let line = running.line_with("the tool blocked its thread", 5);
    for text in ["WARN", "tool=Async.Block@1.0.0", "ms=10"] {
        assert!(line.contains(text), "{line}");
    }
    // The function that never returns does not keep the process from ending.
    running.signal("TERM");
    assert!(running.has_ended_within(5));
}
