//! The log, metrics and spans of a function that misbehaves.

use std::{process::Command, time::Duration};

use lambda_tools::{Failure, Server, Tool, Toolkit, serve};
use serde_json::{Value, json};
use tracing::Instrument;

use test_support::{
    assert_program,
    lambda::{LONG, Platform, calling},
    program,
};

#[cfg(feature = "otlp")]
use crate::collector::{Collector, attribute};
use crate::support::Nothing;

/// Returns more than can be sent.
async fn fill(_: Nothing) -> Result<String, Failure> {
    Ok("x".repeat(7_000_000))
}

/// Blocks its thread.
async fn block(_: Nothing) -> Result<(), Failure> {
    let (_sender, receiver) = std::sync::mpsc::channel::<()>();
    let _ = receiver.recv_timeout(Duration::from_secs(2));
    Ok(())
}

/// Fails with a long message.
async fn quote(_: Nothing) -> Result<(), Failure> {
    Err(Failure::new("It does not work").developer_message("x".repeat(1_000_000)))
}

/// Spawns a task that outlives the call.
async fn leave(_: Nothing) -> Result<(), Failure> {
    tracing::info!("a line of the tool");
    let late = tokio::time::sleep(Duration::from_millis(300));
    tokio::spawn(late.instrument(tracing::info_span!("left behind")));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a program that tests start"]
async fn misbehaving_program_of_tests() {
    assert_program();
    if std::env::var_os("HAS_SUBSCRIBER").is_some() {
        tracing_subscriber::fmt().init();
    }
    let block = Tool::new("Night.Block@1.0.0", block);
    let tools = [
        Tool::new("Night.Leave@1.0.0", leave),
        Tool::new("Night.Fill@1.0.0", fill),
        Tool::new("Night.Quote@1.0.0", quote),
        block.timeout(Duration::from_millis(100)),
    ];
    let server = Server::new(Toolkit::new(tools).unwrap());
    serve(server).await.unwrap();
}

pub(crate) fn command() -> Command {
    program("misbehaving_function::misbehaving_program_of_tests")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_line_of_a_call_matches_its_response() {
    let mut command = command();
    #[cfg(feature = "otlp")]
    let collector = Collector::start().await;
    #[cfg(feature = "otlp")]
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url());
    let mut platform = Platform::start(&mut command, &[], &[]).await;
    let huge = "x".repeat(900_000);
    let longest_id = "x".repeat(256);
    let calls = [
        json!({"tool_id": "Night.Fill"}),
        json!({"tool_id": "Night.Leave"}),
        json!({"tool_id": "Night.Leave", "call_id": longest_id, "trace_id": huge}),
        json!({"tool_id": format!("Night.{huge}")}),
        json!({"tool_id": "Night.Quote"}),
        json!({"tool_id": "Night.Block"}),
    ];
    let events = calls.map(|call| (calling(&call, &[]), LONG));
    platform.send_events(&events);
    let reports = platform.reports(6).await;
    #[cfg(feature = "otlp")]
    assert_spans(&collector).await;
    let bodies = reports
        .iter()
        .map(|(_, response, _)| response["body"].as_str().unwrap());
    let bodies: Vec<Value> = bodies.map(|it| serde_json::from_str(it).unwrap()).collect();
    let printed = platform.end();
    // Text from callers and tools is cut in log lines, but not in responses.
    assert!(printed.iter().all(|line| line.len() < 5000), "too long");
    assert_eq!(bodies[2]["call_id"], longest_id);
    let lines = printed
        .iter()
        .filter_map(|line| serde_json::from_str(line).ok());
    let lines: Vec<Value> = lines.collect();
    let calls: Vec<_> = lines.iter().filter(|it| it["message"] == "call").collect();
    // A result that is too large to send is also a failure in the log.
    assert_eq!(bodies[0]["success"], false);
    assert_eq!(calls[0]["outcome"], "failure");
    let detail = calls[0]["developer_message"].as_str().unwrap();
    assert!(detail.contains("can be sent"), "{detail}");
    for (nth, reason) in [(0, "too_large"), (3, "unknown_tool"), (5, "timed_out")] {
        assert_eq!(calls[nth]["reason"], reason);
    }
    // A generated call id is in the response and in the call's line.
    let generated = &bodies[1]["call_id"];
    assert!(generated.is_string());
    assert_eq!(&calls[1]["call_id"], generated);
    let mut of_tool = lines.iter();
    let line = of_tool.find(|it| it["message"] == "a line of the tool");
    assert_eq!(&line.unwrap()["call_id"], generated);
    assert_eq!(calls[2]["call_id"], longest_id);
    assert_eq!(calls[2]["trace_id"], format!("{}…", &huge[..256]));
    let detail = &bodies[4]["error"]["developer_message"];
    assert_eq!(*detail, "x".repeat(1_000_000));
    assert_eq!(calls[4]["developer_message"], format!("{}…", &huge[..4096]));
}

/// Checks that all spans are exported, even those of a tool that cannot be stopped, and that text
/// from callers is cut in them.
#[cfg(feature = "otlp")]
async fn assert_spans(collector: &Collector) {
    let spans = collector.spans();
    let of_calls = spans.iter().filter(|span| span.name != "left behind");
    assert_eq!(of_calls.count(), 11);
    let longest = collector.bodies().iter().map(axum::body::Bytes::len).max();
    assert!(longest.unwrap() < 5000, "{longest:?}");
    let blocked = collector.span("execute_tool Night.Block").await;
    let error = attribute(&blocked.attributes, "error.type");
    assert_eq!(error.as_deref(), Some("timed_out"));
}
