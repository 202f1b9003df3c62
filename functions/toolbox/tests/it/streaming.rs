//! Streamed responses of the deployed binary.

use std::{
    collections::BTreeSet,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{body::Bytes, http::Request};
use serde_json::{Map, Value, json};
use test_support::{
    Running, built,
    dynamodb::{Applied, DynamoDb, Interception, Interceptor, OnRequest, OnResponse, Operation},
    function_url::event_of,
    isolated,
    lambda::event,
    node, repository,
    streams::{Coming, Sent, Streamed, StreamingUrl, Streams, WITH_PRELUDE},
};
use tokio::sync::Notify;

use crate::{clients::stdout_of, mcp_clients::limited, support::installed};

const BOTH: (&str, &str) = ("TOOLS_STREAMING", "function-url,rest-api");

/// A time limit that no call reaches.
const LONG: Duration = Duration::from_secs(20);

/// Returns the function of long calls, built as for deployment.
fn long() -> Command {
    let mut command = isolated(Command::new(built("sam-faults/Faults/bootstrap")));
    command
        .env("LONG_TOOLS", "1")
        .env("KEY", "stored-0123456789");
    command
}

/// Returns it on one thread, as `run` starts it, and on a runtime of its own, with `serve`.
fn both_ways() -> [Command; 2] {
    let mut own_runtime = long();
    own_runtime.env("OWN_RUNTIME", "1");
    [long(), own_runtime]
}

/// The source of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Source {
    FunctionUrl,
    RestApi,
    /// Never streams.
    HttpApi,
}

const SOURCES: [Source; 3] = [Source::FunctionUrl, Source::RestApi, Source::HttpApi];

/// A request to the function.
#[derive(Clone)]
struct Ask {
    method: &'static str,
    path: &'static str,
    headers: Vec<(&'static str, String)>,
    body: String,
}

impl Ask {
    fn new(method: &'static str, path: &'static str) -> Self {
        Self {
            method,
            path,
            headers: Vec::new(),
            body: String::new(),
        }
    }

    fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.retain(|(it, _)| *it != name);
        self.headers.push((name, value.to_owned()));
        self
    }

    fn json(mut self, body: &Value) -> Self {
        self.body = body.to_string();
        self.header("content-type", "application/json")
    }

    /// Returns the event of the request.
    fn at(&self, source: Source) -> Value {
        match source {
            Source::FunctionUrl => self.at_function_url(),
            Source::HttpApi => {
                let mut event = self.at_function_url();
                let domain = "r3pmxmplak.execute-api.us-east-2.amazonaws.com";
                event["requestContext"]["domainName"] = domain.into();
                event["headers"]["host"] = domain.into();
                event
            }
            Source::RestApi => self.at_rest_api(),
        }
    }

    fn at_function_url(&self) -> Value {
        let mut request = Request::builder().method(self.method).uri(self.path);
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        event_of(&parts, &Bytes::from(self.body.clone()))
    }

    fn at_rest_api(&self) -> Value {
        let mut event = event("sources/rest-api");
        let mut headers = json!({"Host": event["headers"]["Host"]});
        for (name, value) in &self.headers {
            headers[name] = value.clone().into();
        }
        let multi = headers.as_object().unwrap().iter();
        event["multiValueHeaders"] = multi
            .map(|(name, value)| (name.clone(), json!([value])))
            .collect();
        event["headers"] = headers;
        event["httpMethod"] = self.method.into();
        event["path"] = self.path.into();
        event["pathParameters"]["proxy"] = self.path.trim_start_matches('/').into();
        event["requestContext"]["path"] = format!("/prod{}", self.path).into();
        event["body"] = match &*self.body {
            "" => Value::Null,
            body => body.into(),
        };
        event
    }
}

/// A request of an MCP client.
fn message(message: &Value) -> Ask {
    Ask::new("POST", "/mcp")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-11-25")
        .json(message)
}

/// A call of a tool by a client of an earlier revision of MCP, which asks for progress.
fn call(tool: &str, input: &Value) -> Ask {
    call_with(tool, input, &json!({"progressToken": "token"}))
}

fn call_with(tool: &str, input: &Value, meta: &Value) -> Ask {
    let params = json!({"name": tool, "arguments": input, "_meta": meta});
    message(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
}

/// The same of the current revision.
fn modern_call(tool: &str, input: &Value) -> Ask {
    let meta = json!({
        "progressToken": "token",
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    call_with(tool, input, &meta)
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", tool)
}

/// Returns the messages in a stream of MCP, each of which is a chunk of its own.
fn messages(streamed: &Streamed) -> Vec<Value> {
    assert_eq!(streamed.status(), 200, "{streamed:?}");
    assert_eq!(streamed.header("content-type"), Some("text/event-stream"));
    assert_eq!(streamed.header("x-accel-buffering"), Some("no"));
    let chunks = streamed.chunks.iter().map(|(_, chunk)| {
        let json = chunk
            .strip_prefix("event: message\ndata: ")
            .and_then(|it| it.strip_suffix("\n\n"));
        let json = json.unwrap_or_else(|| panic!("{chunk:?} is no event"));
        assert!(!json.contains('\n'), "{chunk:?} is one event");
        serde_json::from_str(json).unwrap()
    });
    chunks.collect()
}

/// Returns the progress in a stream of MCP, and the response at its end.
fn progress_and_response(streamed: &Streamed) -> (Vec<f64>, Value) {
    let mut messages = messages(streamed);
    let response = messages.pop().unwrap();
    assert_eq!(response["id"], 1, "{response}");
    assert_eq!(response["jsonrpc"], "2.0", "{response}");
    let progress = messages.iter().map(|message| {
        assert_eq!(message["method"], "notifications/progress");
        assert_eq!(message["params"]["progressToken"], "token");
        message["params"]["progress"].as_f64().unwrap()
    });
    let progress: Vec<_> = progress.collect();
    assert!(
        progress.is_sorted_by(|one, next| one < next),
        "{progress:?}"
    );
    (progress, response)
}

/// Checks what every streamed response has, and returns it.
fn streamed(sent: &Sent) -> Streamed {
    assert_eq!(sent.kind, "response", "{}", sent.text());
    assert!(sent.is_complete && sent.is_streamed(), "{sent:?}");
    assert_eq!(sent.headers["content-type"], WITH_PRELUDE);
    assert_eq!(sent.headers["transfer-encoding"], "chunked");
    let streamed = sent.streamed();
    let streamed = streamed.unwrap_or_else(|| panic!("{} has no prelude", sent.text()));
    let prelude = streamed.prelude.as_object().unwrap();
    let names: BTreeSet<_> = prelude.keys().map(|it| &**it).collect();
    assert_eq!(names, BTreeSet::from(["cookies", "headers", "statusCode"]));
    assert!(prelude["cookies"].is_array());
    let headers = prelude["headers"].as_object().unwrap();
    assert!(headers.values().all(Value::is_string), "{headers:?}");
    streamed
}

/// Checks that a response is not streamed, and returns it.
fn whole(sent: &Sent) -> Value {
    assert_eq!(sent.kind, "response", "{}", sent.text());
    assert!(sent.is_complete && !sent.is_streamed(), "{sent:?}");
    serde_json::from_str(&sent.text()).unwrap()
}

#[tokio::test]
#[ignore = "needs what sam build makes; run tests/all"]
async fn a_stream_begins_with_its_prelude_and_each_event_is_a_chunk() {
    for mut function in both_ways() {
        let streams = Streams::start(&mut function, &[BOTH]).await;
        let input = json!({"to": 3, "step_ms": 30});
        for (source, ask) in [
            (Source::FunctionUrl, call("Long_Report", &input)),
            (Source::FunctionUrl, modern_call("Long_Report", &input)),
            (Source::RestApi, call("Long_Report", &input)),
            (Source::RestApi, modern_call("Long_Report", &input)),
        ] {
            let sent = streams.answer(&ask.at(source)).await;
            let streamed = streamed(&sent);
            let (progress, response) = progress_and_response(&streamed);
            assert_eq!(progress, [1.0, 2.0, 3.0]);
            let result = &response["result"];
            assert_eq!(result["structuredContent"]["result"], 3, "{response}");
            let first = &messages(&streamed)[0]["params"];
            assert_eq!(first["total"], 3.0);
            assert_eq!(first["message"], "counted to 1");
        }
        let printed = streams.end();
        let is_logged = |line: &&String| line.contains("\"outcome\":\"success\"");
        assert_eq!(printed.iter().filter(is_logged).count(), 4, "{printed:#?}");
    }
}

#[tokio::test]
#[ignore = "needs what sam build makes; run tests/all"]
async fn each_event_leaves_when_it_is_reported() {
    const STEP: Duration = Duration::from_millis(100);
    // The client of `lambda_runtime` waits for the acknowledgement of one packet before it sends the
    // next one, and a kernel acknowledges after 40 ms.
    let limits = [50, 100].map(Duration::from_millis);
    for (mut function, soon) in both_ways().into_iter().zip(limits) {
        let streams = Streams::start(&mut function, &[BOTH]).await;
        let ask = call("Long_Report", &json!({"to": 4, "step_ms": 100}));
        let mut slowest = Vec::new();
        // The machine may be busy with other tests: the fastest call counts.
        for _ in 0..5 {
            let sent = streams.answer(&ask.at(Source::FunctionUrl)).await;
            let delivered = sent.delivered.unwrap();
            let chunks = streamed(&sent).chunks;
            let delays = (1..).zip(&chunks).map(|(step, (at, _))| {
                // The response follows the last report.
                let reported = STEP * step.min(4);
                let since = at.duration_since(delivered);
                assert!(since >= reported, "{step} after {since:?}");
                // A timer of the runtime is late by up to 2 ms at each step.
                since.saturating_sub(reported)
            });
            slowest.push(delays.max().unwrap());
            if slowest.last() < Some(&soon) {
                break;
            }
        }
        assert!(slowest.last() < Some(&soon), "{slowest:?}");
    }
}

/// Returns requests of every kind, with the statuses of their responses.
fn every_kind() -> Vec<(u64, Ask)> {
    let listing = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let too_large = json!({"jsonrpc": "2.0", "id": 1, "method": "x".repeat(1 << 20)});
    let input = json!({"to": 1, "step_ms": 1});
    let call_id = json!({"lambda-tools/call-id": "call-1"});
    let wrong = json!({"lambda-tools/call-id": "call-1", "progressToken": 1});
    let oxp = |shapes: Value| {
        let input = json!({"shapes": shapes});
        let body = json!({"tool_id": "Shapes.Draw", "call_id": "call-3", "input": input});
        Ask::new("POST", "/tools/call").json(&body)
    };
    vec![
        (202, message(&initialized)),
        (200, Ask::new("GET", "/health")),
        (200, Ask::new("HEAD", "/health")),
        (200, Ask::new("GET", "/")),
        (200, Ask::new("GET", "/tools")),
        (200, message(&listing)),
        (200, Ask::new("GET", "/opentool/load")),
        (400, message(&json!([]))),
        (404, Ask::new("GET", "/nothing")),
        (404, Ask::new("POST", "/opentool/stop")),
        (405, Ask::new("GET", "/mcp")),
        (405, Ask::new("DELETE", "/mcp")),
        (405, Ask::new("GET", "/opentool/call")),
        (406, message(&listing).header("accept", "text/event-stream")),
        (413, message(&too_large)),
        (200, call_with("Long_Report", &input, &call_id)),
        (200, call_with("Long_Report", &json!({"to": "x"}), &wrong)),
        (
            200,
            call_with("Long_Walk", &input, &json!({"progressToken": 1})),
        ),
        (200, oxp(json!([]))),
        (422, oxp(json!(1))),
    ]
}

/// Returns a response without what differs from call to call.
fn comparable(mut response: Value) -> Value {
    let text = response["body"].as_str().unwrap_or_default();
    if let Ok(mut body) = serde_json::from_str::<Value>(text)
        && body["duration"].take().is_number()
    {
        response["body"] = body.to_string().into();
        response["headers"]["content-length"].take();
    }
    response
}

#[tokio::test]
#[ignore = "needs what sam build makes; run tests/all"]
async fn through_a_source_that_streams_every_response_has_a_prelude_and_says_the_same() {
    let pairs = both_ways().into_iter().zip(both_ways());
    for ((mut ordinary, mut function), is_lambda_runtime) in pairs.zip([false, true]) {
        let settings = [("TOOLS_EXPLORER", "yes"), BOTH];
        let ordinary = Streams::start(&mut ordinary, &settings[..1]).await;
        let streams = Streams::start(&mut function, &settings).await;
        for (status, ask) in every_kind() {
            let context = format!("{} {} {}", ask.method, ask.path, status);
            for source in [Source::FunctionUrl, Source::RestApi] {
                let event = ask.at(source);
                let buffered = whole(&ordinary.answer(&event).await);
                let sent = streams.answer(&event).await;
                let streamed = streamed(&sent);
                assert_eq!(streamed.status(), status, "{context}: {}", streamed.text());
                assert_eq!(buffered["statusCode"], status, "{context}");
                let expected = comparable(json!({"body": buffered["body"]}));
                let body = comparable(json!({"body": streamed.text()}));
                assert_eq!(body, expected, "{context}");
                let headers = match source {
                    Source::RestApi => &buffered["multiValueHeaders"],
                    _ => &buffered["headers"],
                };
                let values = headers.as_object().unwrap().iter();
                let values = values.map(|(name, value)| {
                    let value = value.as_array().map_or(value, |values| &values[0]);
                    (name.clone(), value.clone())
                });
                let mut expected: Map<_, _> = values.collect();
                let mut headers = streamed.prelude["headers"].as_object().unwrap().clone();
                // A call's time differs, and so does its length.
                headers.remove("content-length");
                expected.remove("content-length");
                if streamed.chunks.is_empty() && is_lambda_runtime {
                    // It adds one, which no client reads without a body.
                    let added = || json!("application/octet-stream");
                    expected.entry("content-type").or_insert_with(added);
                }
                assert_eq!(headers, expected, "{context}");
            }
        }
    }
}

#[tokio::test]
#[ignore = "needs what sam build makes; run tests/all"]
async fn wrong_credentials_get_a_401_with_a_prelude() {
    let credentials = [
        ("TOOLS_AUTH", "api-key"),
        ("TOOLS_API_KEY", "right-0123456789"),
        BOTH,
    ];
    for mut function in both_ways() {
        let streams = Streams::start(&mut function, &credentials).await;
        let asks = [call("Long_Report", &json!({})), Ask::new("GET", "/tools")];
        for ask in asks {
            for source in [Source::FunctionUrl, Source::RestApi] {
                for ask in [ask.clone(), ask.clone().header("authorization", "Bearer x")] {
                    let answer = streamed(&streams.answer(&ask.at(source)).await);
                    assert_eq!(answer.status(), 401, "{answer:?}");
                    assert_eq!(answer.header("content-type"), Some("application/json"));
                }
                let ask = ask
                    .clone()
                    .header("authorization", "Bearer right-0123456789");
                let answer = streamed(&streams.answer(&ask.at(source)).await);
                assert_eq!(answer.status(), 200, "{answer:?}");
            }
        }
    }
}

#[tokio::test]
#[ignore = "needs what sam build makes; run tests/all"]
async fn a_response_without_a_body_ends_after_its_prelude() {
    let settings = [
        ("TOOLS_AUTH", "oidc"),
        ("TOOLS_OIDC_ISSUERS", "http://127.0.0.1:9"),
        BOTH,
    ];
    let ask = Ask::new("OPTIONS", "/.well-known/oauth-protected-resource");
    for mut function in both_ways() {
        let streams = Streams::start(&mut function, &settings).await;
        for source in [Source::FunctionUrl, Source::RestApi] {
            let sent = streams.answer(&ask.at(source)).await;
            let answer = streamed(&sent);
            assert_eq!(answer.status(), 204);
            assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
            assert!(answer.chunks.is_empty());
        }
    }
}

/// Its events are those of a REST API, but for their version.
#[tokio::test]
#[ignore = "needs what sam build makes; run tests/all"]
async fn an_http_api_with_the_first_payload_format_gets_no_stream() {
    for mut function in both_ways() {
        let streams = Streams::start(&mut function, &[BOTH]).await;
        for name in ["http-api.payload-1.0", "http-api.payload-1.0.stage"] {
            let sent = streams.answer(&event(&format!("sources/{name}"))).await;
            whole(&sent);
        }
        streamed(&streams.answer(&event("sources/rest-api")).await);
    }
}

/// Only `TOOLS_STREAMING` changes anything, and only for the sources that it names.
#[tokio::test]
#[ignore = "needs what sam build makes; run tests/all"]
async fn other_sources_and_functions_answer_as_before() {
    for (mut ordinary, mut function) in both_ways().into_iter().zip(both_ways()) {
        let explorer = ("TOOLS_EXPLORER", "yes");
        let ordinary = Streams::start(&mut ordinary, &[explorer]).await;
        let streams = Streams::start(&mut function, &[explorer, BOTH]).await;
        let meta = json!({"progressToken": "token", "lambda-tools/call-id": "call-2"});
        let input = json!({"to": 2, "step_ms": 5});
        let asks = every_kind().into_iter().map(|(_, ask)| ask);
        for ask in asks.chain([call_with("Long_Report", &input, &meta)]) {
            let event = ask.at(Source::HttpApi);
            let (before, now) = (ordinary.answer(&event).await, streams.answer(&event).await);
            assert_eq!(comparable(whole(&now)), comparable(whole(&before)));
            // The same bytes, but for the time that a call took.
            let is_timed = before.text().contains("duration");
            assert!(is_timed || now.text() == before.text());
            assert_eq!(
                now.headers.keys().collect::<Vec<_>>(),
                before.headers.keys().collect::<Vec<_>>()
            );
            assert_eq!(now.kind, before.kind);
            // Without the setting, no source streams.
            for source in [Source::FunctionUrl, Source::RestApi] {
                let answer = whole(&ordinary.answer(&ask.at(source)).await);
                assert!(!answer["body"].as_str().unwrap().contains("event: message"));
            }
        }
    }
}

#[tokio::test]
#[ignore = "needs what sam build makes; run tests/all"]
async fn a_client_that_does_not_ask_for_events_gets_json() {
    let input = json!({"to": 2, "step_ms": 5});
    let silent = call_with("Long_Report", &input, &json!({}));
    let json_only = call("Long_Report", &input).header("accept", "application/json");
    let oxp = json!({"tool_id": "Long.Report", "input": input});
    let oxp = Ask::new("POST", "/tools/call").json(&oxp);
    for mut function in both_ways() {
        let streams = Streams::start(&mut function, &[BOTH]).await;
        for ask in [&silent, &json_only, &oxp] {
            let answer = streamed(&streams.answer(&ask.at(Source::FunctionUrl)).await);
            assert_eq!(answer.status(), 200);
            assert_eq!(answer.header("content-type"), Some("application/json"));
            assert_eq!(answer.chunks.len(), 1);
            serde_json::from_str::<Value>(&answer.text()).unwrap();
        }
    }
}

/// The name of an outcome, the tool, the input and the time limit of a call that has it.
type OutcomeOf = (&'static str, &'static str, Value, Duration);

/// Returns calls with every outcome but one.
fn every_outcome() -> Vec<OutcomeOf> {
    let count = |to: u32, end: &str| json!({"to": to, "step_ms": 25, "end": end});
    vec![
        (
            "success",
            "Long_Report",
            json!({"to": 2, "step_ms": 25}),
            LONG,
        ),
        ("failure", "Long_Report", count(2, "fail"), LONG),
        ("panic", "Long_Report", count(2, "panic"), LONG),
        ("panic at once", "Fault_Do", json!({"kind": "panic"}), LONG),
        (
            "time limit of the tool",
            "Fault_Do",
            json!({"kind": "hang"}),
            LONG,
        ),
        (
            "time limit of the platform",
            "Long_Report",
            json!({"to": 1000, "step_ms": 25}),
            Duration::from_millis(1200),
        ),
        ("unknown tool", "Long_Walk", json!({}), LONG),
        ("invalid input", "Long_Report", json!({"to": "x"}), LONG),
    ]
}

/// Checks the response to a call with this outcome.
fn check_outcome(outcome: &str, response: &Value) {
    let text = response["result"]["content"][0]["text"].as_str();
    let text = text.unwrap_or_default();
    let is_error = &response["result"]["isError"];
    let (expected, is_expected) = match outcome {
        "success" => ("2", *is_error == false),
        "failure" => ("It cannot count further", *is_error == true),
        "panic" | "panic at once" => ("stopped because of an internal error", *is_error == true),
        "time limit of the tool" | "time limit of the platform" => {
            ("did not finish in time", *is_error == true)
        }
        "unknown tool" => ("", response["error"]["code"] == -32602),
        "invalid input" => ("- to: ", *is_error == true),
        "too large" => ("too large to send", *is_error == true),
        other => panic!("{other}"),
    };
    let shown: String = response.to_string().chars().take(500).collect();
    assert!(is_expected && text.contains(expected), "{outcome}: {shown}");
}

/// Checks the responses through every source with a setting.
async fn check_outcomes(mut function: Command, setting: &str, outcomes: Vec<OutcomeOf>) {
    let streams = Streams::start(&mut function, &[("TOOLS_STREAMING", setting)]).await;
    for (outcome, tool, input, limit) in outcomes {
        for source in SOURCES {
            let ask = call(tool, &input);
            let streams_here = match source {
                Source::FunctionUrl => setting.contains("function-url"),
                Source::RestApi => setting.contains("rest-api"),
                Source::HttpApi => false,
            };
            let sent = streams.send(&ask.at(source), limit).whole().await;
            let in_time = sent.chunks.last().unwrap().0 - sent.delivered.unwrap();
            assert!(in_time < limit, "{outcome}: {in_time:?}");
            let response = if streams_here {
                let streamed = streamed(&sent);
                assert!(streamed.status() == 200, "{outcome}");
                if streamed.header("content-type") == Some("application/json") {
                    assert_eq!(streamed.chunks.len(), 1, "{outcome}");
                    serde_json::from_str(&streamed.text()).unwrap()
                } else {
                    let (progress, response) = progress_and_response(&streamed);
                    assert!(progress.len() > 1, "{outcome}: {progress:?}");
                    response
                }
            } else {
                let answer = whole(&sent);
                assert_eq!(answer["statusCode"], 200, "{outcome}");
                serde_json::from_str(answer["body"].as_str().unwrap()).unwrap()
            };
            check_outcome(outcome, &response);
            if tool == "Long_Report" && outcome != "invalid input" {
                let is_stream = sent.text().contains("text/event-stream");
                assert_eq!(is_stream, streams_here, "{outcome}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes; run tests/all"]
async fn every_outcome_is_well_formed_through_every_source_with_every_setting() {
    let mut checks = tokio::task::JoinSet::new();
    for setting in ["", "function-url", "rest-api", BOTH.1] {
        for function in both_ways() {
            checks.spawn(check_outcomes(function, setting, every_outcome()));
        }
    }
    while let Some(check) = checks.join_next().await {
        check.unwrap();
    }
}

/// Apart from the other outcomes, whose time limits would pass while this one takes the processor.
#[tokio::test]
#[ignore = "needs what sam build makes; run tests/all"]
async fn a_result_that_is_too_large_is_a_failure_through_every_source() {
    // Each byte of the text becomes six: its quotes are escaped in the result, in the text of the
    // result, and for the platform.
    let quotes = "\"".repeat(((1 << 20) - 200) / 2);
    let input = json!({"text": quotes});
    for function in both_ways() {
        let outcome = ("too large", "Long_Echo", input.clone(), LONG);
        check_outcomes(function, BOTH.1, vec![outcome]).await;
    }
}

/// The setting has to agree with how the source invokes the function: the function cannot see it.
#[tokio::test]
#[ignore = "needs what sam build makes; run tests/all"]
async fn a_source_that_does_not_agree_with_the_setting_is_of_no_use() {
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let ask = message(&initialized).at(Source::FunctionUrl);
    let listing = Ask::new("GET", "/health").at(Source::FunctionUrl);
    for (mut ordinary, mut function) in both_ways().into_iter().zip(both_ways()) {
        let ordinary = Streams::start(&mut ordinary, &[]).await;
        let streams = Streams::start(&mut function, &[BOTH]).await;
        // They agree.
        assert_eq!(streams.answer(&ask).await.through_streaming_source().0, 202);
        assert_eq!(ordinary.answer(&ask).await.through_buffered_source().0, 202);
        // The function streams, and the source waits for JSON: its client never gets an answer.
        assert_eq!(streams.answer(&ask).await.through_buffered_source().0, 502);
        assert_eq!(
            streams.answer(&listing).await.through_buffered_source().0,
            502
        );
        // The source streams, and the function does not: its client gets the answer's envelope, and
        // the status 200 in any case.
        let (status, body) = ordinary.answer(&ask).await.through_streaming_source();
        assert_eq!(status, 200);
        let envelope: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(envelope["statusCode"], 202);
    }
}

/// Runs a published client; returns what it prints.
fn seen_by(command: &mut Command) -> Value {
    let output = tokio::task::block_in_place(|| command.output()).unwrap();
    serde_json::from_str(&stdout_of(&output)).unwrap()
}

fn python(url: &str, mode: &str, arguments: &Value) -> Command {
    let mut command = limited(installed("python"));
    command
        .arg(repository("tests/long_calls/progress.py"))
        .args([url, "Long_Report", "--mode", mode])
        .args(["--arguments", &arguments.to_string()]);
    command
}

fn typescript(url: &str, era: &str, arguments: &Value) -> Command {
    let mut command = limited(node());
    command
        .arg(repository("target/conformance/progress.mjs"))
        .args([url, "Long_Report", "--era", era])
        .args(["--arguments", &arguments.to_string()]);
    command
}

/// Checks that a client saw each step when it was reported, and the result.
fn check_seen(client: &str, seen: &Value, steps: u32, step_ms: u64) {
    let progress = seen["progress"].as_array().unwrap().iter();
    let progress = progress.map(|it| (it[0].as_f64(), it[1].as_f64(), it[2].as_str().unwrap()));
    let messages: Vec<_> = (1..=steps).map(|it| format!("counted to {it}")).collect();
    let expected = (1..=steps).zip(&messages).map(|(done, message)| {
        let (done, total) = (f64::from(done), f64::from(steps));
        (Some(done), Some(total), &**message)
    });
    assert!(progress.eq(expected), "{client}: {seen}");
    let result = &seen["result"]["structuredContent"]["result"];
    assert_eq!(*result, steps, "{client}: {seen}");
    let times = seen["times"].as_array().unwrap().iter();
    let times: Vec<_> = times.map(|it| it.as_u64().unwrap()).collect();
    // Not all at once; a busy machine delays some of them.
    let between = times.last().unwrap() - times[0];
    let expected = u64::from(steps - 1) * step_ms;
    assert!(between >= expected / 2, "{client}: {times:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs MCP's published clients; run tests/all"]
async fn the_published_clients_show_progress() {
    let input = json!({"to": 4, "step_ms": 100});
    for mut function in both_ways() {
        let source = StreamingUrl::start(&mut function, &[BOTH]).await;
        let url = format!("{}/mcp", source.url);
        for mode in ["legacy", "2026-07-28"] {
            let seen = seen_by(&mut python(&url, mode, &input));
            check_seen(&format!("Python, {mode}"), &seen, 4, 100);
        }
        for era in ["legacy", "modern"] {
            let seen = seen_by(&mut typescript(&url, era, &input));
            check_seen(&format!("TypeScript, {era}"), &seen, 4, 100);
        }
    }
}

/// And without progress it does not: the tool takes 3 seconds, and the client waits for one.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's MCP client; run tests/all"]
async fn progress_extends_a_clients_limit() {
    let source = StreamingUrl::start(&mut long(), &[BOTH]).await;
    let url = format!("{}/mcp", source.url);
    let input = json!({"to": 6, "step_ms": 500});
    for era in ["legacy", "modern"] {
        let mut client = typescript(&url, era, &input);
        let seen = seen_by(client.args(["--reset-after", "1000"]));
        check_seen(era, &seen, 6, 500);
    }
    let mut client = typescript(&url, "modern", &input);
    let seen = seen_by(client.args(["--timeout", "1000"]));
    assert!(seen["result"].is_null(), "{seen}");
    assert!(
        seen["error"].as_str().unwrap().contains("timed out"),
        "{seen}"
    );
}

/// Returns a call that can be recognized when it is repeated.
fn with_call_id(call_id: &str, input: &Value) -> Ask {
    let meta = json!({"progressToken": "token", "lambda-tools/call-id": call_id});
    call_with("Long_Report", input, &meta)
}

fn remembering(url: &str) -> [(&str, &str); 7] {
    [
        ("TOOLS_IDEMPOTENCY", "dynamodb"),
        ("TOOLS_IDEMPOTENCY_TABLE", "calls"),
        ("AWS_ENDPOINT_URL_DYNAMODB", url),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        BOTH,
    ]
}

#[tokio::test]
#[ignore = "needs what sam build makes; run tests/all"]
async fn a_repeated_call_after_its_client_went_away_gets_the_outcome() {
    let mut function = long();
    function.envs([("TOOLS_AUTH", "none"), ("TOOLS_IDEMPOTENCY", "memory")]);
    let (_running, url) = Running::serving(&mut function);
    let client = reqwest::Client::new();
    let call = with_call_id("cut", &json!({"to": 5, "step_ms": 200}));
    let send = async || {
        let mut request = client.post(format!("{url}/mcp")).body(call.body.clone());
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        request.send().await.unwrap()
    };
    let begun = Instant::now();
    let mut cut = send().await;
    assert_eq!(cut.headers()["content-type"], "text/event-stream");
    let first = cut.chunk().await.unwrap().unwrap();
    assert!(first.starts_with(b"event: message\ndata: "));
    drop(cut);
    // While it still runs, and after it has ended.
    for _ in 0..2 {
        let answer = send().await;
        assert_eq!(answer.headers()["idempotent-replay"], "true");
        let answer: Value = answer.json().await.unwrap();
        assert_eq!(
            answer["result"]["structuredContent"]["result"], 5,
            "{answer}"
        );
    }
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

/// Loses the response to the second write, which records the outcome.
#[derive(Default)]
struct AtOutcome {
    writes: AtomicUsize,
    recorded: Notify,
}

impl Interceptor for AtOutcome {
    fn on_request<'a>(
        &'a self,
        _: &'a test_support::dynamodb::Request,
    ) -> Interception<'a, OnRequest> {
        Box::pin(std::future::ready(OnRequest::Apply))
    }

    fn on_response<'a>(
        &'a self,
        request: &'a test_support::dynamodb::Request,
        applied: &'a Applied,
    ) -> Interception<'a, OnResponse> {
        let is_write = request.operation == Operation::PutItem && applied.has_written;
        let is_outcome = is_write && self.writes.fetch_add(1, Ordering::SeqCst) == 1;
        Box::pin(std::future::ready(if is_outcome {
            self.recorded.notify_one();
            OnResponse::Ignore
        } else {
            OnResponse::Send
        }))
    }
}

#[tokio::test]
#[ignore = "needs what sam build makes; run tests/all"]
async fn a_repeated_call_after_the_process_died_before_its_last_event_gets_the_outcome() {
    for (mut dying, mut next) in both_ways().into_iter().zip(both_ways()) {
        let interceptor = Arc::new(AtOutcome::default());
        let table = DynamoDb::intercepted("calls", Arc::clone(&interceptor) as _).await;
        let url = table.url();
        let call = with_call_id("killed", &json!({"to": 2, "step_ms": 50}));
        let event = call.at(Source::FunctionUrl);
        let mut streams = Streams::start(&mut dying, &remembering(&url)).await;
        let mut coming: Coming = streams.send(&event, LONG);
        coming.until("counted to 2").await;
        interceptor.recorded.notified().await;
        streams.function.signal("KILL");
        assert!(streams.function.has_ended_within(5));
        let cut = coming.whole().await;
        assert!(!cut.is_complete);
        assert!(!cut.text().contains("\"result\""), "{}", cut.text());
        // Lambda starts another process.
        let streams = Streams::start(&mut next, &remembering(&url)).await;
        let answer = streamed(&streams.answer(&event).await);
        assert_eq!(answer.header("idempotent-replay"), Some("true"));
        let answer: Value = serde_json::from_str(&answer.text()).unwrap();
        assert_eq!(
            answer["result"]["structuredContent"]["result"], 2,
            "{answer}"
        );
    }
}

/// For longer than the usual 5 seconds, because its client sees that it goes on.
#[tokio::test]
#[ignore = "needs what sam build makes; run tests/all"]
async fn a_repeated_call_waits_for_the_first_one_with_heartbeats() {
    let table = DynamoDb::start("calls").await;
    let url = table.url();
    let [mut one, mut other] = both_ways();
    let first = Streams::start(&mut one, &remembering(&url)).await;
    let second = Streams::start(&mut other, &remembering(&url)).await;
    let third = Streams::start(&mut long(), &remembering(&url)).await;
    let call = with_call_id("waits", &json!({"to": 1, "step_ms": 11_500}));
    let event = call.at(Source::FunctionUrl);
    let running = first.send(&event, LONG);
    // The first call has to claim its id before the second one.
    while table.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let sent = second.send(&event, LONG);
    // A client that does not see that the call goes on waits for the usual time.
    let buffered = third.answer(&call.at(Source::HttpApi)).await;
    let waited = buffered.chunks[0].0 - buffered.delivered.unwrap();
    assert!((5..7).contains(&waited.as_secs()), "{waited:?}");
    assert!(buffered.text().contains("This call is still running"));
    let (progress, response) = progress_and_response(&streamed(&sent.whole().await));
    assert_eq!(progress, [0.0]);
    let result = &response["result"]["structuredContent"]["result"];
    assert_eq!(*result, 1, "{response}");
    // The first one is silent, too, and then counts to 1.
    let (progress, response) = progress_and_response(&streamed(&running.whole().await));
    assert_eq!(progress, [0.0, 1.0]);
    assert_eq!(response["result"]["structuredContent"]["result"], 1);
    assert_eq!(table.len(), 1);
}

/// The runtime API gets the error of an event that is no request, as without streams.
#[tokio::test]
#[ignore = "needs what sam build makes; run tests/all"]
async fn an_event_that_is_no_request_is_an_error_and_not_a_stream() {
    for mut function in both_ways() {
        let streams = Streams::start(&mut function, &[BOTH]).await;
        let sent = streams.answer(&json!({"some": "event"})).await;
        assert_eq!(sent.kind, "error");
        assert!(!sent.is_streamed());
        assert!(sent.text().contains("UnsupportedEvent"), "{}", sent.text());
        // But a request whose body cannot be read has a response.
        let mut event = Ask::new("POST", "/mcp").at(Source::FunctionUrl);
        event["isBase64Encoded"] = true.into();
        event["body"] = "no base64!".into();
        let answer = streamed(&streams.answer(&event).await);
        assert_eq!(answer.status(), 400);
    }
}
