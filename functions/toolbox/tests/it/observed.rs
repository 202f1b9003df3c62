//! What a running function says of itself: its log, its metrics and its spans, held to the tables
//! in `docs/operations.md`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
    time::{Duration, Instant, SystemTime},
};

use lambda_tools::{Failure, Server, Tool, Toolkit, serve};
use opentelemetry_proto::tonic::trace::v1::Span;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tracing::Instrument;

use crate::{
    aws::Emulator,
    collector::{Collector, attribute},
    lambda::{Platform, event, invoke_on, request_id},
    servers::TWILIO_KEY,
    stub::Stub,
    support::{Running, function, isolated, repository, runs_as_function, toolbox},
};

const KEY: &str = "key-for-the-log-0123456789";
const X_RAY: &str = "5759e988bd862e3fe1be46a994272793";

const LONG: Option<Duration> = Some(Duration::from_secs(10));

/// Where no number, text or secret of a call may appear.
const MARK: &str = "8675309";

/// The rows of the table in `docs/operations.md` whose first column has this heading, without
/// backquotes.
pub(crate) fn table(heading: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(repository("docs/operations.md")).unwrap();
    let cells = |line: &str| -> Vec<String> {
        let line = line.strip_prefix('|').unwrap().strip_suffix('|').unwrap();
        let cells = line.split('|');
        cells.map(|cell| cell.trim().to_owned()).collect()
    };
    let rows: Vec<_> = text
        .lines()
        .skip_while(|line| !line.starts_with(&format!("| {heading} | ")))
        .take_while(|line| line.starts_with('|'))
        .skip(2)
        .map(cells)
        .collect();
    assert!(rows.len() > 1, "there is no table of {heading}");
    rows
}

/// The words between backquotes.
pub(crate) fn quoted(cell: &str) -> Vec<String> {
    cell.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

fn calling(body: &Value, headers: &[(&str, &str)]) -> Value {
    let mut event = event("calculator/add.header-form");
    let oxp_version = event["headers"].as_object_mut().unwrap();
    oxp_version.remove("oxp-version");
    for (name, value) in headers {
        event["headers"][name] = json!(value);
    }
    event["body"] = body.to_string().into();
    event
}

fn keyed(body: &Value) -> Value {
    calling(body, &[("authorization", &format!("Bearer {KEY}"))])
}

fn opentool(body: &Value) -> Value {
    let mut event = keyed(body);
    event["rawPath"] = json!("/opentool/call");
    event["requestContext"]["http"]["path"] = json!("/opentool/call");
    event
}

fn list() -> Value {
    let mut event = keyed(&json!(null));
    event["rawPath"] = json!("/tools");
    event["requestContext"]["http"] = json!({"method": "GET", "path": "/tools"});
    event.as_object_mut().unwrap().remove("body");
    event
}

/// A request of each kind, with what has to be in its line.
fn requests() -> Vec<(Value, Value)> {
    let marked: i64 = MARK.parse().unwrap();
    let add = |call_id: &str| {
        json!({
            "tool_id": "Calculator.Add@1.0.0", "call_id": call_id, "trace_id": "order 66",
            "input": {"a": marked, "b": 0},
        })
    };
    let sms = json!({
        "tool_id": "SMS.Send",
        "input": {"to": "+15005550006", "message": format!("It is {MARK}")},
    });
    let wrong = json!({"tool_id": "Calculator.Add@1.0.0", "input": {"a": MARK}});
    let success = |tool: &str, version: &str, dialect: &str| {
        json!({
            "outcome": "success", "level": "INFO", "tool": tool, "version": version,
            "dialect": dialect, "caller": "key TOOLS_API_KEY",
        })
    };
    let envelope = json!({"$schema": "urn:oxp:1.0", "request": add("c-2")});
    let otc = json!({"$schema": "otc://1.0", "request": add("c-3")});
    let rpc = json!({
        "jsonrpc": "2.0", "id": "c-4", "method": "Calculator_Add",
        "params": {"a": marked, "b": 0},
    });
    let unknown = json!({"tool_id": format!("Nothing.Like{MARK}")});
    let mut once = sms.clone();
    once["call_id"] = json!("c-7");
    vec![
        (
            keyed(&add("c-1")),
            json!({"outcome": "success", "cold_start": true, "call_id": "c-1", "trace_id": "order 66"}),
        ),
        (
            keyed(&once),
            json!({"outcome": "success", "replayed": null, "cold_start": null}),
        ),
        (
            keyed(&once),
            json!({"outcome": "success", "replayed": true, "call_id": "c-7", "tool_ms": null}),
        ),
        (
            keyed(&envelope),
            success("Calculator.Add", "1.0.0", "oxp-schema"),
        ),
        (keyed(&otc), success("Calculator.Add", "1.0.0", "otc")),
        (keyed(&sms), success("SMS.Send", "0.1.2", "oxp-header")),
        (
            keyed(&sms),
            json!({"outcome": "success", "trace_id": X_RAY}),
        ),
        (
            keyed(&json!({
                "tool_id": "SMS.Send", "call_id": "c-5",
                "input": {"to": "+15005550001", "message": MARK},
            })),
            json!({"outcome": "failure", "level": "WARN", "can_retry": false, "call_id": "c-5"}),
        ),
        (
            keyed(&wrong),
            json!({
                "outcome": "rejection", "reason": "invalid_input", "tool": "Calculator.Add",
                "version": "1.0.0", "level": "WARN",
            }),
        ),
        (
            keyed(&unknown),
            json!({"outcome": "rejection", "reason": "unknown_tool", "version": null}),
        ),
        (
            calling(&add("c-6"), &[("authorization", "Bearer wrong")]),
            json!({"outcome": "rejection", "reason": "unauthenticated", "dialect": null}),
        ),
        (
            opentool(&rpc),
            json!({"dialect": "opentool", "call_id": "c-4"}),
        ),
        (
            list(),
            json!({"message": "list", "outcome": "success", "caller": "key TOOLS_API_KEY"}),
        ),
    ]
}

fn is_of_type(value: &Value, kind: &str) -> bool {
    match kind {
        "time" => {
            let text = value.as_str().unwrap_or_default();
            text.ends_with('Z') && humantime::parse_rfc3339(text).is_ok()
        }
        "text" => value.is_string(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        other => panic!("the table has the type '{other}'"),
    }
}

/// Holds lines to the table: no field that is not in it, each of its type, none that is never
/// there, and the reasons that it lists.
fn assert_documented(lines: &[Value]) {
    let rows = table("field");
    let fields: BTreeMap<String, (String, bool)> = rows
        .iter()
        .map(|row| {
            (
                quoted(&row[0]).remove(0),
                (row[1].clone(), row[2] == "always"),
            )
        })
        .collect();
    let mut seen = BTreeSet::new();
    for line in lines {
        for (name, value) in line.as_object().unwrap() {
            let (kind, _) = fields
                .get(name)
                .unwrap_or_else(|| panic!("'{name}' is not in the table: {line}"));
            assert!(is_of_type(value, kind), "{name} is no {kind}: {line}");
            seen.insert(name.clone());
        }
        for (name, (_, always)) in &fields {
            assert!(!always || line.get(name).is_some(), "no {name} in {line}");
        }
    }
    let never: Vec<_> = fields.keys().filter(|name| !seen.contains(*name)).collect();
    assert!(never.is_empty(), "never there: {never:?}");
    let reasons = rows.iter().find(|row| row[0] == "`reason`").unwrap();
    let listed: BTreeSet<_> = quoted(&reasons[3]).into_iter().collect();
    let source = fs::read_to_string(repository("src/rejection.rs")).unwrap();
    let (_, named) = source.split_once("pub(crate) fn reason(").unwrap();
    let (named, _) = named.split_once("pub(crate) fn").unwrap();
    let named = named.split('"').skip(1).step_by(2).map(str::to_owned);
    assert_eq!(listed, named.collect());
}

/// Holds metric lines to their format, and to the table.
fn assert_metrics(lines: &[Value]) {
    let rows = table("metric");
    let documented: BTreeMap<String, String> = rows
        .iter()
        .map(|row| (quoted(&row[0]).remove(0), row[1].clone()))
        .collect();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = u64::try_from(now.unwrap().as_millis()).unwrap();
    let mut seen = BTreeSet::new();
    for line in lines {
        let time = line["_aws"]["Timestamp"].as_u64().unwrap();
        assert!(time <= now && now - time < 60_000, "{line}");
        let mut used: BTreeSet<&str> = ["_aws"].into();
        for directive in line["_aws"]["CloudWatchMetrics"].as_array().unwrap() {
            assert_eq!(directive["Namespace"], "Agents");
            for dimension in directive["Dimensions"][0].as_array().unwrap() {
                let name = dimension.as_str().unwrap();
                assert!(!line[name].as_str().unwrap().is_empty(), "{line}");
                used.insert(name);
            }
            for metric in directive["Metrics"].as_array().unwrap() {
                let name = metric["Name"].as_str().unwrap();
                assert_eq!(metric["Unit"], documented[name], "{name}");
                assert!(line[name].is_number(), "{name} has no value: {line}");
                used.insert(name);
                seen.insert(name.to_owned());
            }
        }
        let all: BTreeSet<_> = line.as_object().unwrap().keys().map(|it| &**it).collect();
        assert_eq!(all, used, "{line}");
    }
    assert_eq!(seen, documented.keys().cloned().collect());
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn the_log_and_the_metrics_are_what_the_tables_say() {
    let emulator = Emulator::start().await;
    let gate = emulator.gate().await;
    for (name, value) in [("TWILIO_API_KEY", TWILIO_KEY), ("TOOLS_API_KEY", KEY)] {
        let created = gate.secrets_manager().create_secret().name(name);
        created.secret_string(value).send().await.unwrap();
    }
    let stub = Stub::start().await;
    let (url, aws) = (stub.url(), gate.url());
    let environment = [
        ("TOOLS_AUTH", "api-key"),
        ("TOOLS_SECRETS", "secrets-manager"),
        ("TOOLS_METRICS", "cloudwatch"),
        ("TOOLS_METRICS_NAMESPACE", "Agents"),
        ("TWILIO_URL", &url),
        ("AWS_ENDPOINT_URL", &aws),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "AKIA0123456789"),
        ("AWS_SECRET_ACCESS_KEY", "aws-0123456789"),
        // Works with the local server only.
        ("LOG_CALLS", "yes"),
    ];
    let requests = requests();
    let events: Vec<_> = requests.iter().map(|(it, _)| (it.clone(), LONG)).collect();
    let (answers, printed) = invoke_on(&mut toolbox(), &events, &environment).await;
    for line in &printed {
        assert!(
            !line.contains(MARK) || line.contains("unknown_tool"),
            "{line}"
        );
        for secret in [KEY, TWILIO_KEY, "It is"] {
            assert!(!line.contains(secret), "{line}");
        }
    }
    let printed: Vec<Value> = printed
        .iter()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
        .collect();
    let (metrics, lines): (Vec<_>, Vec<_>) = printed
        .into_iter()
        .partition(|line| line.get("_aws").is_some());
    let lines: Vec<_> = lines
        .into_iter()
        .filter(|line| ["call", "list"].contains(&line["message"].as_str().unwrap()))
        .collect();
    assert_eq!(lines.len(), requests.len(), "{lines:#?}");
    for (number, (line, (_, expected))) in lines.iter().zip(&requests).enumerate() {
        assert_eq!(line["requestId"], request_id(number));
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(
                &line[name], value,
                "{name} in {line}\n{:?}",
                answers[number]
            );
        }
        assert_eq!(line["cold_start"] == true, number == 0);
    }
    assert_documented(&lines);
    // One line for each call, none for a list.
    assert_eq!(metrics.len(), requests.len() - 1);
    // And one of a function that keeps no secrets.
    let keeps_none = [&environment[..], &[("TOOLS_SECRETS_CACHE_SECONDS", "0")]].concat();
    let (_, printed) = invoke_on(&mut toolbox(), &events[5..6], &keeps_none).await;
    let reads = printed.iter().find(|line| line.contains("_aws")).unwrap();
    let reads: Value = serde_json::from_str(reads).unwrap();
    assert_eq!(reads["SecretCacheMisses"], 1);
    assert_metrics(&[&metrics[..], &[reads]].concat());
    let sum = |name: &str| -> u64 { metrics.iter().filter_map(|it| it[name].as_u64()).sum() };
    assert_eq!(sum("Calls"), 12);
    assert_eq!((sum("Failures"), sum("Replays")), (1, 1));
    assert_eq!(sum("ValidationErrors"), 2);
    assert_eq!(sum("Rejections"), 3);
    assert_eq!(sum("SecretCacheHits"), 5);
    // What callers make up is no dimension.
    let unknown = metrics.iter().find(|it| it["reason"] == "unknown_tool");
    assert_eq!(unknown.unwrap()["tool"], "none");
}

#[tokio::test]
async fn lines_of_text_can_be_asked_for() {
    let events = [(event("calculator/add.header-form"), LONG)];
    let environment = [("AWS_LAMBDA_LOG_FORMAT", "Text")];
    let (_, printed) = invoke_on(&mut toolbox(), &events, &environment).await;
    let line = printed
        .iter()
        .find(|line| line.contains("success"))
        .unwrap();
    assert!(line.contains("tool=\"Calculator.Add\""), "{line}");
    // Nobody has waited for this process.
    let environment = [("AWS_LAMBDA_INITIALIZATION_TYPE", "provisioned-concurrency")];
    let (_, printed) = invoke_on(&mut toolbox(), &events, &environment).await;
    assert!(!printed[0].contains("cold_start"), "{printed:?}");
    // And a level: this one is not logged.
    let environment = [("AWS_LAMBDA_LOG_LEVEL", "ERROR")];
    let (_, printed) = invoke_on(&mut toolbox(), &events, &environment).await;
    assert_eq!(printed, Vec::<String>::new());
    let environment = [("AWS_LAMBDA_LOG_LEVEL", "FATAL"), ("RUST_LOG", "trace")];
    let (_, printed) = invoke_on(&mut toolbox(), &events, &environment).await;
    assert_eq!(printed, Vec::<String>::new());
}

#[tokio::test]
async fn inputs_and_outputs_can_be_seen_locally() {
    for (choice, is_shown) in [("yes", true), ("no", false)] {
        let (running, url) = Running::serving(toolbox().env("LOG_CALLS", choice));
        let body = json!({"tool_id": "Calculator.Add", "input": {"a": 8_675_000, "b": 309}});
        let sent = reqwest::Client::new()
            .post(format!("{url}/tools/call"))
            .body(body.to_string());
        assert_eq!(sent.send().await.unwrap().status(), 200);
        let lines = running.end();
        let shows = |text: &str| lines.iter().any(|line| line.contains(text));
        assert_eq!(shows("8675000"), is_shown, "{lines:?}");
        assert_eq!(shows(MARK), is_shown, "{lines:?}");
    }
}

/// Not a test by itself: the toolbox with the features that this program is built with, which the
/// program `toolbox` need not be.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "is started by other tests"]
async fn exporting_toolbox() {
    if runs_as_function() {
        let tools = toolbox::tools(toolbox::Endpoints::from_env());
        if let Err(error) = serve(toolbox::server(tools).unwrap()).await {
            eprintln!("{error}");
            std::process::exit(1);
        }
    }
}

pub(crate) fn exporting() -> Command {
    isolated(function("observed::exporting_toolbox"))
}

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
            "",
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
        (calling(&refused, &[]), X_RAY, "53995c3f42cd8ad8", "failure"),
        (
            calling(&json!({"tool_id": "No"}), &[]),
            X_RAY,
            "53995c3f42cd8ad8",
            "invalid_tool_id",
        ),
    ];
    let mut platform = Platform::start(&mut exporting(), &[], &environment).await;
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
            if ["", "failure"].contains(wrong) {
                2
            } else {
                1
            },
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
    if !parent.is_empty() {
        assert_eq!(hex(&request.parent_span_id), parent);
    }
    let error = attribute(&request.attributes, "error.type").unwrap_or_default();
    assert_eq!(error, wrong);
    let status = request.status.as_ref().map_or(0, |it| it.code);
    assert_eq!(status, if wrong.is_empty() { 0 } else { 2 });
    if wrong == "failure" {
        assert_eq!(spans[0].name, "execute_tool SMS.Send");
        let error = attribute(&spans[0].attributes, "error.type");
        assert_eq!(error.as_deref(), Some("failure"));
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
        let mut platform = Platform::start(&mut exporting(), &[], &environment).await;
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
    let mut platform = Platform::start(&mut exporting(), &[], &environment).await;
    for spans in [0, 4] {
        platform.hand_over(&[(event("calculator/add.header-form"), LONG)]);
        platform.reports(1).await;
        assert_eq!(collector.spans().len(), spans);
    }
}

#[tokio::test]
async fn a_protocol_that_is_not_spoken_ends_the_start() {
    let output = exporting()
        .env("PORT", "0")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("http/protobuf"), "{said}");
}

/// Is more than can be sent.
#[derive(Deserialize, JsonSchema)]
struct Fill {}

async fn fill(_: Fill) -> Result<String, Failure> {
    Ok("x".repeat(7_000_000))
}

/// Leaves something running.
#[derive(Deserialize, JsonSchema)]
struct Leave {}

async fn leave(_: Leave) -> Result<(), Failure> {
    tracing::info!(left = 1, "a line of the tool");
    let late = tokio::time::sleep(Duration::from_millis(300));
    tokio::spawn(late.instrument(tracing::info_span!("left behind")));
    Ok(())
}

/// Not a test by itself: the function that the next test runs as a process of its own.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "is started by the test below"]
async fn ending_function() {
    if runs_as_function() {
        let tools = [
            Tool::new("Night.Leave@1.0.0", leave),
            Tool::new("Night.Fill@1.0.0", fill),
        ];
        let server = Server::new(Toolkit::new(tools).unwrap()).on_shutdown(|| async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            println!("The hook has run.");
        });
        serve(server).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_is_sent_when_lambda_ends_the_process() {
    let collector = Collector::start().await;
    let url = collector.url();
    let environment = [("OTEL_EXPORTER_OTLP_ENDPOINT", &*url)];
    let mut command = function("observed::ending_function");
    let mut platform = Platform::start(&mut command, &[], &environment).await;
    let call = calling(
        &json!({"tool_id": "Night.Leave", "call_id": "c-1", "trace_id": "t-1"}),
        &[],
    );
    platform.hand_over(&[(call, LONG)]);
    platform.reports(1).await;
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
async fn the_line_says_what_the_caller_got() {
    let mut command = function("observed::ending_function");
    let mut platform = Platform::start(&mut command, &[], &[]).await;
    let huge = "x".repeat(1_000_000);
    let calls = [
        json!({"tool_id": "Night.Fill"}),
        json!({"tool_id": "Night.Leave"}),
        json!({"tool_id": "Night.Leave", "call_id": huge, "trace_id": huge}),
        json!({"tool_id": format!("Night.{huge}")}),
    ];
    let events = calls.map(|call| (calling(&call, &[]), LONG));
    platform.hand_over(&events);
    let reports = platform.reports(4).await;
    let bodies: Vec<Value> = reports
        .iter()
        .map(|(_, answer, _)| serde_json::from_str(answer["body"].as_str().unwrap()).unwrap())
        .collect();
    let printed = platform.end();
    // What callers choose is cut in all lines, not in answers.
    assert!(printed.iter().all(|line| line.len() < 2000), "too long");
    assert_eq!(bodies[2]["call_id"], huge);
    let lines: Vec<Value> = printed
        .iter()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let calls: Vec<_> = lines.iter().filter(|it| it["message"] == "call").collect();
    // A result that is too large to send is a failure there as well.
    assert_eq!(bodies[0]["success"], false);
    assert_eq!(calls[0]["outcome"], "failure");
    assert!(
        calls[0]["developer_message"]
            .as_str()
            .unwrap()
            .contains("can be sent")
    );
    // An id that was made for a call is in the answer, its line and those of its tool.
    let of_tool = lines
        .iter()
        .find(|it| it["message"] == "a line of the tool");
    let made = &bodies[1]["call_id"];
    assert!(made.is_string());
    assert_eq!(&calls[1]["call_id"], made);
    assert_eq!(&of_tool.unwrap()["call_id"], made);
    assert_eq!(calls[3]["reason"], "unknown_tool");
}
