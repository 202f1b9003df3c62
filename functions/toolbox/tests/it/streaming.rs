//! Streamed responses of the deployed binary.

use std::{
    collections::BTreeMap,
    process::Command,
    time::{Duration, Instant},
};

use axum::{body::Bytes, http::Request};
use serde_json::{Value, json};
use test_support::{
    Running,
    aws::CREDENTIALS,
    dynamodb::DynamoDb,
    function_url::{FunctionUrl, event_of},
    lambda::{Answer, LONG, Platform, Streamed, event},
    mcp::LEGACY,
};

use crate::{
    clients::{json_of, node_script, python},
    support::faults,
};

const STREAMING: (&str, &str) = ("TOOLS_STREAMING", "function-url,rest-api");

/// Returns the function with the long tools.
fn long() -> Command {
    let mut command = faults();
    let variables = [
        ("LONG_TOOLS", "1"),
        ("TOOLS_TASKS", "yes"),
        ("KEY", "key-0123456789"),
    ];
    command.envs(variables);
    command
}

/// The headers of an MCP client.
const HEADERS: [(&str, &str); 3] = [
    ("accept", "application/json, text/event-stream"),
    ("content-type", "application/json"),
    ("mcp-protocol-version", LEGACY),
];

/// Returns the message that calls a tool and asks for progress.
fn call(tool: &str, input: &Value, call_id: &str) -> String {
    let meta = json!({"progressToken": "token", "lambda-tools/call-id": call_id});
    let params = json!({"name": tool, "arguments": input, "_meta": meta});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
}

/// Returns the event of a request to a function URL.
fn at_function_url(method: &str, path: &str, body: &str) -> Value {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in HEADERS {
        request = request.header(name, value);
    }
    let request = request.body(Bytes::from(body.to_owned())).unwrap();
    let (parts, body) = request.into_parts();
    event_of(&parts, &body)
}

/// Returns the event of a request to a REST API.
fn at_rest_api(method: &str, path: &str, body: &str) -> Value {
    let mut event = event("sources/rest-api");
    event["httpMethod"] = method.into();
    event["path"] = path.into();
    event["pathParameters"]["proxy"] = path.trim_start_matches('/').into();
    event["requestContext"]["path"] = format!("/prod{path}").into();
    let host = event["headers"]["Host"].as_str().unwrap().to_owned();
    let headers: BTreeMap<_, _> = HEADERS.into_iter().chain([("Host", &*host)]).collect();
    event["multiValueHeaders"] = headers
        .iter()
        .map(|(name, it)| (*name, json!([it])))
        .collect();
    event["headers"] = json!(headers);
    event["body"] = body.into();
    event
}

async fn stream(platform: &mut Platform, event: &Value, limit: Option<Duration>) -> Streamed {
    match platform.answer(event, limit).await {
        Answer::Streamed(streamed) => streamed,
        Answer::Whole(report) => panic!("{report:?} is not streamed"),
    }
}

async fn text_of(mut streamed: Streamed) -> String {
    let mut text = String::new();
    while let Some(part) = streamed.next().await {
        text += &part;
    }
    text
}

/// Returns the message in an event of a stream.
fn message(part: &str) -> Value {
    let json = part.strip_prefix("event: message\ndata: ");
    let json = json.and_then(|it| it.strip_suffix("\n\n"));
    serde_json::from_str(json.unwrap_or_else(|| panic!("{part:?} is no event"))).unwrap()
}

#[tokio::test]
#[ignore = "needs what tests/all builds"]
async fn each_event_of_a_stream_leaves_when_it_is_reported() {
    const STEP: Duration = Duration::from_millis(400);
    let mut platform = Platform::start(&mut long(), &[], &[STREAMING]).await;
    let input = json!({"to": 3, "step_ms": 400});
    // The process has to start first.
    let health = at_function_url("GET", "/health", "");
    text_of(stream(&mut platform, &health, LONG).await).await;
    let at_url: fn(&str, &str, &str) -> Value = at_function_url;
    let sources = [(at_url, "url"), (at_rest_api, "rest")];
    for (source, call_id) in sources {
        let sent = Instant::now();
        let event = source("POST", "/mcp", &call("Long_Report", &input, call_id));
        let mut streamed = stream(&mut platform, &event, LONG).await;
        assert_eq!(streamed.prelude["statusCode"], 200);
        assert_eq!(streamed.header("content-type"), Some("text/event-stream"));
        assert_eq!(streamed.header("x-accel-buffering"), Some("no"));
        assert_eq!(streamed.prelude["cookies"], json!([]));
        for step in 1..=3_u32 {
            let shown = message(&streamed.next().await.unwrap());
            assert_eq!(shown["params"]["progress"], f64::from(step), "{shown}");
            assert_eq!(shown["params"]["message"], format!("counted to {step}"));
            let late = sent.elapsed().checked_sub(STEP * step);
            // Before the next one is reported.
            assert!(late.is_some_and(|it| it < STEP), "{step}: {late:?}");
        }
        let response = message(&streamed.next().await.unwrap());
        assert_eq!(response["result"]["structuredContent"]["result"], 3);
        assert_eq!(streamed.next().await, None);
    }
}

/// Which says the same as without streams.
#[tokio::test]
#[ignore = "needs what tests/all builds"]
async fn every_response_to_a_source_in_the_setting_has_a_prelude_and_no_other() {
    let setting = [("TOOLS_STREAMING", "function-url")];
    let mut platform = Platform::start(&mut long(), &[], &setting).await;
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    let report = call("Long_Report", &json!({"to": "x"}), "invalid");
    for (method, path, body, status) in [
        ("GET", "/health", "", 200),
        ("GET", "/tools", "", 200),
        ("GET", "/nothing", "", 404),
        ("GET", "/mcp", "", 405),
        ("POST", "/mcp", "[]", 400),
        ("POST", "/mcp", &*initialized, 202),
        ("POST", "/mcp", &*report, 200),
    ] {
        let event = at_function_url(method, path, body);
        let streamed = stream(&mut platform, &event, LONG).await;
        assert_eq!(streamed.prelude["statusCode"], status, "{method} {path}");
        let prelude = streamed.prelude.clone();
        let text = text_of(streamed).await;
        platform.send_events(&[(at_rest_api(method, path, body), LONG)]);
        let (_, whole, _) = platform.reports(1).await.remove(0);
        assert_eq!(whole["statusCode"], status, "{method} {path}");
        assert_eq!(whole["body"].as_str().unwrap_or_default(), text);
        for (name, value) in prelude["headers"].as_object().unwrap() {
            assert_eq!(whole["multiValueHeaders"][name], json!([value]), "{name}");
        }
    }
    // The runtime API gets the error of what is no request.
    let answer = platform.answer(&json!({"some": "event"}), LONG).await;
    let Answer::Whole((is_error, error, _)) = answer else {
        panic!("an error is not streamed");
    };
    assert!(
        is_error && error["errorType"] == "UnsupportedEvent",
        "{error}"
    );
}

/// Runs a published client; returns what it prints.
fn seen_by(mut client: Command, url: &str, more: &[&str]) -> Value {
    let input = json!({"to": 5, "step_ms": 400}).to_string();
    client.args([url, "Long_Report", "--arguments", &input]);
    json_of(client.args(more))
}

/// The tool takes 2 seconds: longer than the last two clients wait, but for progress.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs MCP's published clients; run tests/all"]
async fn the_published_clients_show_progress_which_extends_their_limits() {
    let function = FunctionUrl::start(&mut long(), &[STREAMING]).await;
    let url = format!("{}/mcp", function.url);
    let python = || python("tests/long_calls/progress.py");
    let typescript = || node_script("progress.mjs");
    for (client, option, value) in [
        (python(), "--mode", "legacy"),
        (python(), "--mode", "2026-07-28"),
        (typescript(), "--era", "legacy"),
        (typescript(), "--reset-after", "1000"),
    ] {
        let seen = seen_by(client, &url, &[option, value]);
        let expected = (1..=5).map(|done| json!([done, 5, format!("counted to {done}")]));
        let progress = seen["progress"].as_array().unwrap();
        let numbers = |it: &Value| json!([it[0].as_f64(), it[1].as_f64(), it[2]]);
        let expected = expected.map(|it| numbers(&it));
        let is_expected = progress.iter().map(numbers).eq(expected);
        assert!(is_expected, "{option} {value}: {seen}");
        assert_eq!(seen["result"]["structuredContent"]["result"], 5, "{seen}");
        // Not all at once; a busy machine delays some of them.
        let times: Vec<_> = seen["times"].as_array().unwrap().iter().collect();
        let between = times[4].as_u64().unwrap() - times[0].as_u64().unwrap();
        assert!(between >= 800, "{option} {value}: {seen}");
    }
    let seen = seen_by(typescript(), &url, &["--timeout", "1000"]);
    assert!(
        seen["error"].as_str().unwrap().contains("timed out"),
        "{seen}"
    );
}

/// For longer than the usual 5 seconds, because its client sees that it goes on.
#[tokio::test]
#[ignore = "needs what tests/all builds"]
async fn a_repeated_call_waits_for_the_first_one_in_another_process() {
    let table = DynamoDb::start("calls").await;
    let url = table.url();
    let mut environment = CREDENTIALS.to_vec();
    environment.extend([
        STREAMING,
        ("TOOLS_IDEMPOTENCY", "dynamodb"),
        ("TOOLS_IDEMPOTENCY_TABLE", "calls"),
        ("AWS_ENDPOINT_URL_DYNAMODB", &url),
    ]);
    let mut first = Platform::start(&mut long(), &[], &environment).await;
    let mut second = Platform::start(&mut long(), &[], &environment).await;
    let call = call("Long_Report", &json!({"to": 1, "step_ms": 7000}), "waits");
    let event = at_function_url("POST", "/mcp", &call);
    let first = {
        let event = event.clone();
        tokio::spawn(async move { text_of(stream(&mut first, &event, LONG).await).await })
    };
    // The first call has to claim its id before the second one.
    while table.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let second = text_of(stream(&mut second, &event, LONG).await).await;
    for text in [second, first.await.unwrap()] {
        assert!(
            text.contains(r#""structuredContent":{"result":1}"#),
            "{text}"
        );
    }
    assert_eq!(table.len(), 1);
}

#[tokio::test]
#[ignore = "needs what tests/all builds"]
async fn a_repeated_call_after_its_client_went_away_gets_the_outcome() {
    let mut function = long();
    function.envs([("TOOLS_AUTH", "none"), ("TOOLS_IDEMPOTENCY", "memory")]);
    let (_running, url) = Running::serving(&mut function);
    let body = call("Long_Report", &json!({"to": 5, "step_ms": 200}), "cut");
    let send = async || {
        let mut request = reqwest::Client::new().post(format!("{url}/mcp"));
        for (name, value) in HEADERS {
            request = request.header(name, value);
        }
        request.body(body.clone()).send().await.unwrap()
    };
    let mut cut = send().await;
    assert!(cut.chunk().await.unwrap().unwrap().starts_with(b"event: "));
    drop(cut);
    // While it still runs, and after it has ended.
    for _ in 0..2 {
        let answer = send().await;
        assert_eq!(answer.headers()["idempotent-replay"], "true");
        let answer: Value = answer.json().await.unwrap();
        assert_eq!(answer["result"]["structuredContent"]["result"], 5);
    }
}
