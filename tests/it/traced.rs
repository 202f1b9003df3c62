//! Spans as a collector receives them.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::{Value, json};
use test_support::{
    Running,
    documents::{quoted, table},
    lambda::{LONG, Platform, XRAY_TRACE_ID, calling, event},
};

use crate::{
    collector::{Collector, attribute},
    misbehaving_function,
    support::failed_start,
    tools::program,
};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Starts the tools, which export their spans to this URL.
async fn exporting_to(endpoint: &str) -> Platform {
    let region = ("AWS_REGION", "us-east-1");
    let environment = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint), region];
    Platform::start(&mut program(), &[], &environment).await
}

#[tokio::test]
async fn spans_belong_to_the_callers_trace() {
    let collector = Collector::start().await;
    let add = json!({"tool_id": "Calculator.Add", "call_id": "c-1", "input": {"a": 1, "b": 2}});
    let with = |name: &str, value: &str| {
        let mut body = add.clone();
        body[name] = json!(value);
        body
    };
    let failing = json!({"tool_id": "SMS.Send", "input": {"to": "+15005550006", "message": "x"}});
    let mut with_bad_key = failing.clone();
    with_bad_key["context"] = json!({"secrets": [{"id": "TWILIO_API_KEY", "value": "no key"}]});
    let header = [("traceparent", PARENT)];
    let of_header = (&PARENT[3..35], "b7ad6b7169203331");
    let of_xray = (XRAY_TRACE_ID, "53995c3f42cd8ad8");
    // Derived from the trace id, so that all calls of a trace have the same parent.
    let of_uuid = ("4bf92f3577b34da6a3ce929d0e0e4736", "e837bda879bd0a90");
    let uuid = with("trace_id", "4bf92f35-77b3-4da6-a3ce-929d0e0e4736");
    let order = with("trace_id", "order 66");
    let unknown = json!({"tool_id": "No"});
    let missing = "missing_requirements";
    // The event, the trace id and the parent span, and the error type. One call is direct.
    let cases = [
        (calling(&uuid, &header), of_header, ""),
        (calling(&uuid, &[]), of_uuid, ""),
        (calling(&order, &[]), of_xray, ""),
        (calling(&add, &[]), of_xray, ""),
        (add.clone(), of_xray, ""),
        (calling(&failing, &header), of_header, missing),
        (calling(&with_bad_key, &[]), of_xray, "failed"),
        (calling(&unknown, &[]), of_xray, "invalid_tool_id"),
    ];
    let mut platform = exporting_to(&collector.url()).await;
    let mut before = 0;
    for (event, parent, error_type) in &cases {
        platform.send_events(&[(event.clone(), LONG)]);
        platform.reports(1).await;
        // The spans arrived before the response.
        let spans = collector.spans();
        let spans = &spans[before..];
        before += spans.len();
        let has_run = ["", "failed"].contains(error_type);
        assert_eq!(spans.len(), 1 + usize::from(has_run), "{spans:#?}");
        assert_call(spans, "POST /tools/call", *parent, error_type);
    }
    let spans = collector.spans();
    // The X-Ray trace becomes a link if another trace takes precedence.
    assert_eq!(hex(&spans[1].links[0].trace_id), XRAY_TRACE_ID);
    let resource = collector.resource();
    for (attributes, name, expected) in [
        (&spans[5].attributes, "trace_id", "order 66"),
        (&resource, "service.name", "toolbox"),
        (&resource, "cloud.region", "us-east-1"),
    ] {
        let actual = attribute(attributes, name);
        assert_eq!(actual.as_deref(), Some(expected), "{name}");
    }
    assert_attributes_documented(&spans);
    // The meta of an MCP call comes before a gateway's own span.
    let params = json!({
        "name": "Calculator_Add",
        "arguments": {"a": 1, "b": 2},
        "_meta": {"traceparent": PARENT, "tracestate": "vendor=1", "lambda-tools/call-id": "c-1"},
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let other = PARENT.replace("b7ad6b7169203331", "00f067aa0ba902b7");
    platform.send_events(&[(mcp(&body, ("traceparent", &other)), LONG)]);
    platform.reports(1).await;
    let spans = collector.spans();
    assert_call(&spans[before..], "tools/call Calculator_Add", of_header, "");
    assert_eq!(spans.last().unwrap().trace_state, "vendor=1");
    // A trace that is not sampled is not exported.
    let event = calling(&add, &[("traceparent", &PARENT.replace("-01", "-00"))]);
    platform.send_events(&[(event, LONG)]);
    platform.reports(1).await;
    assert_eq!(collector.spans().len(), spans.len());
}

/// Returns an event with a request of MCP.
fn mcp(body: &Value, header: (&str, &str)) -> Value {
    let mut event = calling(body, &[header]);
    event["rawPath"] = json!("/mcp");
    event["requestContext"]["http"]["path"] = json!("/mcp");
    event
}

/// Checks the name, the trace, the parents and the error type of the spans of a call.
fn assert_call(spans: &[Span], name: &str, (trace, parent): (&str, &str), error_type: &str) {
    let request = spans.last().unwrap();
    assert_eq!(request.name, name);
    assert_eq!(hex(&request.trace_id), trace);
    assert_eq!(hex(&request.parent_span_id), parent);
    let error = attribute(&request.attributes, "error.type").unwrap_or_default();
    assert_eq!(error, error_type);
    let status = request.status.as_ref().map_or(0, |it| it.code);
    assert_eq!(status, if error_type.is_empty() { 0 } else { 2 });
    if error_type == "failed" {
        assert_eq!(spans[0].name, "execute_tool SMS.Send");
        let error = attribute(&spans[0].attributes, "error.type");
        assert_eq!(error.as_deref(), Some("failed"));
        assert_eq!(spans[0].status.as_ref().map(|it| it.code), Some(2));
    }
    if error_type.is_empty() {
        let tool = &spans[0];
        assert_eq!(tool.name, "execute_tool Calculator.Add");
        assert_eq!(tool.parent_span_id, request.span_id);
        assert_eq!(tool.trace_id, request.trace_id);
        let call_id = attribute(&tool.attributes, "gen_ai.tool.call.id");
        assert_eq!(call_id.as_deref(), Some("c-1"));
    }
}

/// The method and the params of a request, the name of its span, and the name and the value of an
/// attribute. Those whose value has `fail` fail.
const REQUESTS: &str = r#"
tools/call | {"name": "Who_AmI"} | tools/call Who_AmI | gen_ai.tool.name | Who_AmI
tools/call | {"name": "Who_Fails"} | tools/call Who_Fails | gen_ai.tool.name | Who_Fails
prompts/get | {"name": "reply", "arguments": {"text": "x"}} | prompts/get reply | gen_ai.prompt.name | reply
resources/read | {"uri": "shop://terms"} | resources/read | mcp.resource.uri | shop://terms
resources/read | {"uri": "shop://orders/fail"} | resources/read | mcp.resource.uri | shop://orders/fail
"#;

/// As OpenTelemetry's conventions for MCP name them.
#[tokio::test]
async fn spans_of_mcp_have_its_names() {
    let collector = Collector::start().await;
    let url = collector.url();
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", &*url);
    let environment = [endpoint, ("TOOLS_AUTH", "none")];
    let mut program = test_support::program("reading::shop_program_of_tests");
    let mut platform = Platform::start(&mut program, &[], &environment).await;
    for row in REQUESTS.trim().lines() {
        let [method, params, name, field, target] = row.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let is_failed = target.to_lowercase().contains("fail");
        let error_type = if is_failed { "tool_error" } else { "" };
        let params: Value = serde_json::from_str(params).unwrap();
        let body = json!({"jsonrpc": "2.0", "id": "a-1", "method": method, "params": params});
        platform.send_events(&[(mcp(&body, ("mcp-protocol-version", "2025-11-25")), LONG)]);
        platform.reports(1).await;
        let spans = collector.spans();
        let span = spans.last().unwrap();
        assert_eq!(span.name, name);
        for (key, expected) in [
            ("mcp.method.name", method),
            ("mcp.protocol.version", "2025-11-25"),
            ("jsonrpc.request.id", "a-1"),
            (field, target),
            ("error.type", error_type),
        ] {
            let value = attribute(&span.attributes, key).unwrap_or_default();
            assert_eq!(value, expected, "{name} {key}");
        }
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
    let mut seen = BTreeSet::new();
    for span in spans {
        let row = usize::from(span.name.starts_with("execute_tool"));
        seen.extend(span.attributes.iter().map(|it| (row, it.key.clone())));
    }
    let mut documented = BTreeSet::new();
    for (number, row) in rows.iter().enumerate() {
        documented.extend(quoted(&row[2]).into_iter().map(|name| (number, name)));
    }
    assert_eq!(seen, documented);
}

#[tokio::test]
async fn an_unresponsive_collector_delays_a_response_by_a_second_at_most() {
    let collector = Collector::start().await;
    let hangs = format!("{}/hangs", collector.url());
    for (endpoint, limit, longest) in [
        (&*hangs, LONG, 1900),
        // The wait also ends before the invocation's deadline.
        (&*hangs, Some(Duration::from_millis(700)), 700),
        // A refused connection fails at once and is not retried.
        ("http://127.0.0.1:9", LONG, 500),
    ] {
        let mut platform = exporting_to(endpoint).await;
        platform.send_events(&[(event("tools/list"), LONG)]);
        platform.reports(1).await;
        let begun = Instant::now();
        platform.send_events(&[(event("calculator/add.header-form"), limit)]);
        let (failed, response, in_time) = platform.reports(1).await.remove(0);
        assert!(!failed && in_time, "{response}");
        assert_eq!(response["statusCode"], 200);
        assert!(begun.elapsed() < Duration::from_millis(longest));
        let lines = platform.end();
        let is_logged = |it: &String| it.contains("spans could not be exported");
        assert!(lines.iter().any(is_logged), "{lines:?}");
    }
}

#[tokio::test]
async fn rejected_spans_are_not_sent_again() {
    let collector = Collector::start().await;
    let mut platform = exporting_to(&format!("{}/rejects", collector.url())).await;
    for sent in [2, 4] {
        platform.send_events(&[(event("calculator/add.header-form"), LONG)]);
        platform.reports(1).await;
        assert_eq!(collector.spans().len(), sent);
    }
}

#[test]
fn an_unsupported_protocol_fails_at_start_up() {
    let mut program = program();
    program.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");
    let text = failed_start(program.env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"));
    assert!(text.contains("http/protobuf"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_remaining_spans_are_sent_when_lambda_stops_the_process() {
    let collector = Collector::start().await;
    let url = collector.url();
    let attributes = "service.name=shop,cloud.region=here";
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*url),
        // The environment takes precedence.
        ("OTEL_RESOURCE_ATTRIBUTES", attributes),
        ("OTEL_SERVICE_NAME", ""),
        ("AWS_REGION", "us-east-1"),
    ];
    let mut command = misbehaving_function::command();
    let mut platform = Platform::start(&mut command, &[], &environment).await;
    let call = calling(&json!({"tool_id": "Night.Leave", "call_id": "c-1"}), &[]);
    platform.send_events(&[(call, LONG)]);
    platform.reports(1).await;
    let names: Vec<_> = collector.spans().into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["execute_tool Night.Leave", "POST /tools/call"]);
    for (name, value) in [("service.name", "shop"), ("cloud.region", "here")] {
        let resource_value = attribute(&collector.resource(), name);
        assert_eq!(resource_value.as_deref(), Some(value));
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let is_late = |span: &Span| span.name == "left behind";
    assert!(!collector.spans().iter().any(is_late));
    platform.function.signal("TERM");
    assert_eq!(platform.function.ends_within(5), Some(0));
    let late = collector.span("left behind").await;
    let tool = collector.span("execute_tool Night.Leave").await;
    assert_eq!(late.trace_id, tool.trace_id);
    assert_eq!(late.parent_span_id, tool.span_id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_with_its_own_subscriber_is_warned_that_no_spans_are_exported() {
    let mut command = misbehaving_function::command();
    command
        .env("HAS_SUBSCRIBER", "yes")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
        .env("PORT", "0");
    let running = Running::start(&mut command);
    running.line_with("lambda_tools exports no spans", 10);
}
