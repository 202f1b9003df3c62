//! A published client that polls tasks. The Inspector does in `../long/pages_on_aws.rs`.

use test_support::invocations::Limits;

use super::*;
use crate::clients::{json_of, python};

/// Lets FastMCP's client call the tool that counts; returns what it has seen.
fn fastmcp(url: &str, input: &Value, options: &[&str]) -> Value {
    let mut command = python("tests/long_calls/task.py");
    command.args([&format!("{url}/mcp"), "Long_Count", "--timeout", "20"]);
    command.args(["--arguments", &input.to_string()]);
    json_of(command.args(options))
}

/// In proportion, this is a tool of ten minutes behind an API that gives up after half a minute:
/// no request may take as long as the tool.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what tests/all builds, and a client of PyPI"]
async fn a_published_client_gets_the_outcome_of_a_tool_that_outlasts_every_request() {
    let tools = Tools::start().await;
    tools.function.limit(Limits {
        source: Duration::from_secs(3),
        ..Limits::default()
    });
    let url = tools.function.url.clone();
    let count = json!({"to": 10, "step_ms": 450});
    let panics = json!({"to": 5, "step_ms": 500, "end": "panic"});
    let programs = [
        (&count, &["--name"][..]),
        // The client by itself sends no Mcp-Name.
        (&count, &["--transparent"]),
        // Why clients need tasks.
        (&count, &["--plain"]),
        (&panics, &["--name"]),
        (&count, &["--name", "--cancel-after", "500"]),
    ];
    let programs = programs.map(|(input, options)| {
        let (url, input) = (url.clone(), input.clone());
        tokio::task::spawn_blocking(move || fastmcp(&url, &input, options))
    });
    let mut seen = Vec::new();
    for program in programs {
        seen.push(program.await.unwrap());
    }
    for (seen, sends_name) in [(&seen[0], true), (&seen[1], false)] {
        let counted = &seen["result"]["structuredContent"]["result"];
        assert_eq!((counted, &seen["names"]), (&json!(10), &json!(sends_name)));
        assert_eq!(
            seen["statuses"],
            json!(["working", "completed"]),
            "{seen:#}"
        );
        let message = seen["messages"][0].as_str().unwrap();
        assert!(message.starts_with("counted to "), "{message}");
    }
    for (seen, text) in [
        (&seen[2], ""),
        (&seen[3], "The tool stopped because of an internal error"),
        (&seen[4], "cancelled"),
    ] {
        let error = seen["error"].as_str();
        assert!(error.is_some_and(|it| it.contains(text)), "{seen:#}");
    }
}
