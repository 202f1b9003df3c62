//! Published clients that poll tasks.

use std::process::Command;

use serde_json::{Value, json};
use test_support::{invocations::Limits, node};

use super::*;
use crate::{
    clients::stdout_of,
    mcp_clients::limited,
    support::{installed, repository},
};

/// Runs FastMCP's client; returns what it has seen.
fn fastmcp(url: &str, tool: &str, input: &Value, options: &[&str]) -> Value {
    let mut command = limited(installed("python"));
    command.arg(repository("tests/long_calls/task.py"));
    command.args([&format!("{url}/mcp"), tool, "--timeout", "20"]);
    command
        .args(["--arguments", &input.to_string()])
        .args(options);
    seen_by(&mut command)
}

/// Runs the Inspector's command line; returns the result of the call.
fn inspector(url: &str, tool: &str, input: &[&str]) -> Value {
    let mut command = limited(node());
    command
        .arg(repository("target/conformance/node_modules/.bin/inspector"))
        .args(["--cli", &format!("{url}/mcp"), "--transport", "http"])
        .args(["--protocol-era", "modern", "--format", "json"])
        .arg("--stored-auth-only")
        .args(["--method", "tools/call", "--tool-name", tool])
        .env("HOME", repository("target/conformance"));
    for argument in input {
        command.args(["--tool-arg", argument]);
    }
    seen_by(&mut command)["result"].take()
}

fn seen_by(command: &mut Command) -> Value {
    let stdout = stdout_of(&command.output().unwrap());
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"))
}

/// In proportion, this is a tool of ten minutes behind an API that gives up after half a minute:
/// no request may take as long as the tool.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes, and clients of npm and PyPI; run tests/all"]
async fn published_clients_get_the_outcome_of_a_tool_that_outlasts_every_request() {
    let tools = Tools::start().await;
    tools.function.limit(Limits {
        source: Duration::from_secs(3),
        ..Limits::default()
    });
    let url = tools.function.url.clone();
    let input = json!({"to": 10, "step_ms": 450});
    let programs = [
        ("fastmcp", vec!["--name"]),
        // Its client sends no Mcp-Name by itself.
        ("without Mcp-Name", vec!["--transparent"]),
        ("without tasks", vec!["--plain"]),
    ];
    let programs = programs.map(|(name, options)| {
        let (url, input) = (url.clone(), input.clone());
        let run = move || fastmcp(&url, "Long_Count", &input, &options);
        (name, tokio::task::spawn_blocking(run))
    });
    let inspected = tokio::task::spawn_blocking(move || {
        inspector(&url, "Long_Count", &["to=10", "step_ms=450"])
    });
    let mut seen = Vec::new();
    for (name, program) in programs {
        seen.push((name, program.await.unwrap()));
    }
    for (name, seen) in &seen[..2] {
        let counted = &seen["result"]["structuredContent"]["result"];
        assert_eq!(*counted, 10, "{name}: {seen:#}");
        let messages = seen["messages"].as_array().unwrap();
        assert!(!messages.is_empty(), "{name}: {seen:#}");
        for message in messages {
            assert!(message.as_str().unwrap().starts_with("counted to "));
        }
        assert_eq!(seen["statuses"], json!(["working", "completed"]), "{name}");
    }
    let (_, first) = &seen[0];
    assert_eq!(first["task"]["status"], "working", "{first:#}");
    assert_eq!(first["names"], true, "{first:#}");
    assert_eq!(seen[1].1["names"], false, "{:#}", seen[1].1);
    // Why clients need tasks.
    let (_, last) = &seen[2];
    assert!(last["error"].is_string(), "{last:#}");
    let inspected = inspected.await.unwrap();
    assert_eq!(inspected["structuredContent"]["result"], 10, "{inspected}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes, and a client of PyPI; run tests/all"]
async fn a_published_client_sees_failures_and_cancels() {
    let tools = Tools::start().await;
    let url = tools.function.url.clone();
    let run = |end: &str, step_ms: u64, options: &'static [&'static str]| {
        let input = match end {
            "" => json!({"to": 30, "step_ms": step_ms}),
            end => json!({"to": 5, "step_ms": step_ms, "end": end}),
        };
        let url = url.clone();
        tokio::task::spawn_blocking(move || fastmcp(&url, "Long_Count", &input, options))
    };
    let failing = run("fail", 500, &[]);
    let panicking = run("panic", 500, &[]);
    let cancelled = run("", 200, &["--cancel-after", "500"]);
    let failed = failing.await.unwrap();
    assert_eq!(failed["result"]["isError"], true, "{failed:#}");
    assert_eq!(text_of(&failed["result"]), "It cannot count further");
    let panicked = panicking.await.unwrap();
    let error = panicked["error"].as_str().unwrap();
    let stopped = "The tool stopped because of an internal error";
    assert!(
        error.contains("failed") && error.contains(stopped),
        "{error}"
    );
    let cancelled = cancelled.await.unwrap();
    let error = cancelled["error"].as_str().unwrap();
    assert!(error.contains("cancelled"), "{cancelled:#}");
}
