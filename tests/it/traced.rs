//! Spans, as a collector gets them.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::{Value, json};
use test_support::{
    Running,
    documents::{quoted, table},
    lambda::{LONG, Platform, X_RAY, calling, event, request_id},
};

use crate::{
    collector::{Collector, attribute},
    night::night,
    tools::program,
};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[tokio::test]
async fn spans_have_the_callers_trace() {
    let collector = Collector::start().await;
    let url = collector.url();
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*url),
        ("AWS_REGION", "us-east-1"),
    ];
    let add = json!({"tool_id": "Calculator.Add", "call_id": "c-1", "input": {"a": 1, "b": 2}});
    let with = |name: &str, value: &str| {
        let mut body = add.clone();
        body[name] = json!(value);
        body
    };
    let (uuid, w3c) = ("4bf92f35-77b3-4da6-a3ce-929d0e0e4736", &PARENT[3..35]);
    let failing = json!({"tool_id": "SMS.Send", "input": {"to": "+15005550006", "message": "x"}});
    let mut refused = failing.clone();
    refused["context"] = json!({"secrets": [{"id": "TWILIO_API_KEY", "value": "no key"}]});
    let cases = [
        // The trace, its parent, the call and what is wrong.
        (
            calling(&with("trace_id", uuid), &[("traceparent", PARENT)]),
            w3c,
            "b7ad6b7169203331",
            "",
        ),
        (
            calling(&with("trace_id", uuid), &[]),
            "4bf92f3577b34da6a3ce929d0e0e4736",
            // Made up of the trace's id, so that all calls of it have the same.
            "e837bda879bd0a90",
            "",
        ),
        (
            calling(&with("trace_id", "order 66"), &[]),
            X_RAY,
            "53995c3f42cd8ad8",
            "",
        ),
        (calling(&add, &[]), X_RAY, "53995c3f42cd8ad8", ""),
        (
            calling(&failing, &[("traceparent", PARENT)]),
            w3c,
            "b7ad6b7169203331",
            "missing_requirements",
        ),
        (calling(&refused, &[]), X_RAY, "53995c3f42cd8ad8", "failed"),
        (
            calling(&json!({"tool_id": "No"}), &[]),
            X_RAY,
            "53995c3f42cd8ad8",
            "invalid_tool_id",
        ),
    ];
    let mut platform = Platform::start(&mut program(), &[], &environment).await;
    let mut before = 0;
    for (event, trace, parent, wrong) in &cases {
        platform.hand_over(&[(event.clone(), LONG)]);
        platform.reports(1).await;
        // They were there before the answer.
        let spans = collector.spans();
        let spans = &spans[before..];
        before += spans.len();
        assert_eq!(
            spans.len(),
            if ["", "failed"].contains(wrong) { 2 } else { 1 },
            "{spans:#?}"
        );
        assert_call(spans, trace, parent, wrong);
    }
    let spans = collector.spans();
    // X-Ray's trace is not lost where another one wins.
    assert_eq!(hex(&spans[1].links[0].trace_id), X_RAY);
    assert_eq!(
        attribute(&spans[5].attributes, "trace_id").as_deref(),
        Some("order 66")
    );
    let resource = collector.resource();
    assert_eq!(
        attribute(&resource, "service.name").as_deref(),
        Some("toolbox")
    );
    assert_eq!(
        attribute(&resource, "cloud.region").as_deref(),
        Some("us-east-1")
    );
    assert_attributes_documented(&spans);
    // Who says that the trace is not recorded is heard.
    let event = calling(&add, &[("traceparent", &PARENT.replace("-01", "-00"))]);
    platform.hand_over(&[(event, LONG)]);
    platform.reports(1).await;
    assert_eq!(collector.spans().len(), spans.len());
}

/// The spans of one call: where they are, and what they say went wrong.
fn assert_call(spans: &[Span], trace: &str, parent: &str, wrong: &str) {
    let request = spans.last().unwrap();
    assert_eq!(request.name, "POST /tools/call");
    assert_eq!(hex(&request.trace_id), trace);
    assert_eq!(hex(&request.parent_span_id), parent);
    let error = attribute(&request.attributes, "error.type").unwrap_or_default();
    assert_eq!(error, wrong);
    let status = request.status.as_ref().map_or(0, |it| it.code);
    assert_eq!(status, if wrong.is_empty() { 0 } else { 2 });
    if wrong == "failed" {
        assert_eq!(spans[0].name, "execute_tool SMS.Send");
        let error = attribute(&spans[0].attributes, "error.type");
        assert_eq!(error.as_deref(), Some("failed"));
        assert_eq!(spans[0].status.as_ref().map(|it| it.code), Some(2));
    }
    if wrong.is_empty() {
        let tool = &spans[0];
        assert_eq!(tool.name, "execute_tool Calculator.Add");
        assert_eq!(tool.parent_span_id, request.span_id);
        assert_eq!(tool.trace_id, request.trace_id);
        let called = attribute(&tool.attributes, "gen_ai.tool.call.id");
        assert_eq!(called.as_deref(), Some("c-1"));
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;

    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn assert_attributes_documented(spans: &[Span]) {
    let rows = table("span");
    let mut seen: BTreeSet<(usize, String)> = BTreeSet::new();
    for span in spans {
        let row = usize::from(span.name.starts_with("execute_tool"));
        for attribute in &span.attributes {
            seen.insert((row, attribute.key.clone()));
        }
    }
    let mut documented: BTreeSet<_> = BTreeSet::new();
    for (number, row) in rows.iter().enumerate() {
        documented.extend(quoted(&row[2]).into_iter().map(|name| (number, name)));
    }
    let beside: Vec<_> = seen.difference(&documented).collect();
    assert!(beside.is_empty(), "not in the table: {beside:?}");
    let never: Vec<_> = documented.difference(&seen).collect();
    assert!(never.is_empty(), "never there: {never:?}");
}

fn list() -> Value {
    let mut event = calling(&json!(null), &[]);
    event["rawPath"] = json!("/tools");
    event["requestContext"]["http"] = json!({"method": "GET", "path": "/tools"});
    event.as_object_mut().unwrap().remove("body");
    event
}

#[tokio::test]
async fn a_collector_that_does_not_answer_costs_a_second() {
    let collector = Collector::start().await;
    let hangs = format!("{}/hangs", collector.url());
    for (endpoint, limit, longest) in [
        (&*hangs, LONG, 1900),
        // Nor the answer, where there is less time than that.
        (&*hangs, Some(Duration::from_millis(700)), 700),
        // Nobody is there, and nobody is asked twice.
        ("http://127.0.0.1:9", LONG, 500),
    ] {
        let environment = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)];
        let mut platform = Platform::start(&mut program(), &[], &environment).await;
        platform.hand_over(&[(list(), LONG)]);
        platform.reports(1).await;
        let begun = Instant::now();
        platform.hand_over(&[(event("calculator/add.header-form"), limit)]);
        let (failed, answer, in_time) = platform.reports(1).await.remove(0);
        assert!(!failed && in_time, "{answer}");
        assert_eq!(answer["statusCode"], 200);
        assert!(begun.elapsed() < Duration::from_millis(longest));
        let lines = platform.end();
        let says = lines
            .iter()
            .any(|line| line.contains("spans are not exported"));
        assert!(says, "{lines:?}");
    }
}

#[tokio::test]
async fn spans_that_were_not_taken_are_sent_with_the_next() {
    let collector = Collector::start().await;
    let url = format!("{}/late", collector.url());
    let environment = [("OTEL_EXPORTER_OTLP_ENDPOINT", &*url)];
    let mut platform = Platform::start(&mut program(), &[], &environment).await;
    for spans in [0, 4] {
        platform.hand_over(&[(event("calculator/add.header-form"), LONG)]);
        platform.reports(1).await;
        assert_eq!(collector.spans().len(), spans);
    }
}

#[tokio::test]
async fn spans_that_are_refused_are_sent_once_more() {
    let collector = Collector::start().await;
    let url = format!("{}/refuses", collector.url());
    let environment = [("OTEL_EXPORTER_OTLP_ENDPOINT", &*url)];
    let mut platform = Platform::start(&mut program(), &[], &environment).await;
    let mut before = 0;
    for sent in [2, 4, 4, 4] {
        platform.hand_over(&[(event("calculator/add.header-form"), LONG)]);
        platform.reports(1).await;
        let spans = collector.spans().len();
        assert_eq!(spans - before, sent);
        before = spans;
    }
}

#[tokio::test]
async fn a_protocol_that_is_not_spoken_ends_the_start() {
    let output = program()
        .env("PORT", "0")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("http/protobuf"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_is_sent_when_lambda_ends_the_process() {
    let collector = Collector::start().await;
    let url = collector.url();
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*url),
        // What the environment says wins.
        (
            "OTEL_RESOURCE_ATTRIBUTES",
            "service.name=shop,cloud.region=here",
        ),
        ("OTEL_SERVICE_NAME", ""),
        ("AWS_REGION", "us-east-1"),
    ];
    let mut command = night();
    let mut platform = Platform::start(&mut command, &[], &environment).await;
    let call = calling(
        &json!({"tool_id": "Night.Leave", "call_id": "c-1", "trace_id": "t-1"}),
        &[],
    );
    platform.hand_over(&[(call, LONG)]);
    platform.reports(1).await;
    let names = |collector: &Collector| -> Vec<String> {
        let spans = collector.spans().into_iter();
        spans.map(|span| span.name).collect()
    };
    let of_call = |tool: &str| {
        [
            format!("execute_tool {tool}"),
            "POST /tools/call".to_owned(),
        ]
    };
    assert_eq!(names(&collector), of_call("Night.Leave"));
    for (name, value) in [("service.name", "shop"), ("cloud.region", "here")] {
        let found = attribute(&collector.resource(), name);
        assert_eq!(found.as_deref(), Some(value));
    }
    // What the tool says is said to be its own.
    let line = platform.function.line_with("a line of the tool", 5);
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["left"], 1);
    for (name, value) in [
        ("requestId", &*request_id(0)),
        ("call_id", "c-1"),
        ("trace_id", "t-1"),
        ("tool", "Night.Leave"),
    ] {
        assert_eq!(line[name], value, "{line}");
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let is_late = |span: &Span| span.name == "left behind";
    assert!(!collector.spans().iter().any(is_late));
    platform.function.signal("TERM");
    platform.function.line_with("The hook has run.", 5);
    assert_eq!(platform.function.ends_within(5), Some(0));
    let late = collector.span("left behind").await;
    let tool = collector.span("execute_tool Night.Leave").await;
    assert_eq!(late.trace_id, tool.trace_id);
    assert_eq!(late.parent_span_id, tool.span_id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_of_the_programs_own_is_told_that_nothing_is_exported() {
    let mut command = night();
    command
        .env("HAS_SUBSCRIBER", "yes")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
        .env("PORT", "0");
    let running = Running::start(&mut command);
    running.line_with("lambda_tools exports no spans", 10);
}
