//! The compiled program as a Lambda function, under a runtime API on a loopback address.

use std::{
    collections::VecDeque,
    process::Command,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use axum::{
    Router,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::{
    stub::Stub,
    support::{Running, repository, toolbox},
};

/// What Lambda tells a function of itself.
pub(crate) const LAMBDA: [(&str, &str); 3] = [
    ("AWS_LAMBDA_FUNCTION_NAME", "toolbox"),
    ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
    ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128"),
];

/// What the function reported for one event: whether it failed, the body, and whether the report
/// was there before the deadline.
pub(crate) type Report = (bool, Value, bool);

struct RuntimeApi {
    events: Mutex<VecDeque<(String, Option<Duration>)>>,
    reports: mpsc::UnboundedSender<Report>,
    deadline: Mutex<Option<SystemTime>>,
}

async fn next(State(api): State<Arc<RuntimeApi>>) -> Response {
    let next = api.events.lock().unwrap().pop_front();
    let Some((event, limit)) = next else {
        return std::future::pending().await;
    };
    // Without a limit, what cargo-lambda's emulator sends: a time in 1970.
    let ends = limit.map(|limit| SystemTime::now() + limit);
    *api.deadline.lock().unwrap() = ends;
    let deadline = match ends {
        Some(ends) => ends.duration_since(SystemTime::UNIX_EPOCH).unwrap(),
        None => Duration::from_mins(10),
    };
    let headers = [
        (
            "lambda-runtime-aws-request-id",
            "8476a536-e9f4-11e8-9739-2dfe598c3fcd".to_owned(),
        ),
        (
            "lambda-runtime-deadline-ms",
            deadline.as_millis().to_string(),
        ),
        (
            "lambda-runtime-invoked-function-arn",
            "arn:aws:lambda:us-east-1:1:function:t".to_owned(),
        ),
        ("content-type", "application/json".to_owned()),
    ];
    (headers, event).into_response()
}

async fn report(
    State(api): State<Arc<RuntimeApi>>,
    Path((_, kind)): Path<(String, String)>,
    body: String,
) -> StatusCode {
    let body = serde_json::from_str(&body).unwrap();
    let deadline = *api.deadline.lock().unwrap();
    let in_time = deadline.is_none_or(|deadline| SystemTime::now() < deadline);
    api.reports.send((kind == "error", body, in_time)).unwrap();
    StatusCode::ACCEPTED
}

/// Runs the toolbox on these events, each with its time limit; returns a report for each.
pub(crate) async fn invoke(
    events: &[(Value, Option<Duration>)],
    environment: &[(&str, &str)],
) -> Vec<Report> {
    invoke_on(&mut toolbox(), events, environment).await.0
}

/// Runs any function; returns what it printed as well.
pub(crate) async fn invoke_on(
    command: &mut Command,
    events: &[(Value, Option<Duration>)],
    environment: &[(&str, &str)],
) -> (Vec<Report>, Vec<String>) {
    let (reports, mut reported) = mpsc::unbounded_channel();
    let events: VecDeque<_> = events
        .iter()
        .map(|(e, limit)| (e.to_string(), *limit))
        .collect();
    let count = events.len();
    let api = Arc::new(RuntimeApi {
        events: Mutex::new(events),
        reports,
        deadline: Mutex::default(),
    });
    let base = "/2018-06-01/runtime/invocation";
    let router = Router::new()
        .route(&format!("{base}/next"), get(next))
        .route(&format!("{base}/{{id}}/{{kind}}"), post(report))
        .with_state(api);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    command
        .env("AWS_LAMBDA_RUNTIME_API", address)
        .envs(LAMBDA)
        .env("RUST_BACKTRACE", "0")
        .env("TOOLS_AUTH", "none")
        .envs(environment.iter().copied());
    let running = Running::start(command);
    let mut all = Vec::new();
    while all.len() < count {
        let report = tokio::time::timeout(Duration::from_secs(20), reported.recv()).await;
        all.push(
            report
                .expect("the function has to report every event")
                .unwrap(),
        );
    }
    server.abort();
    (all, running.end())
}

pub(crate) fn event(name: &str) -> Value {
    let text = std::fs::read_to_string(repository(&format!("events/{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn the_binary_is_a_lambda_function() {
    let long = Some(Duration::from_secs(30));
    let events = [
        (event("sources/http-api"), long),
        (json!({"Records": [{"eventSource": "aws:sqs"}]}), long),
        (event("malformed/invalid-base64"), long),
        (json!("nonsense"), long),
        (event("sources/alb"), long),
    ];
    let reports = invoke(&events, &[]).await;
    let failed: Vec<_> = reports.iter().map(|(failed, _, _)| *failed).collect();
    assert_eq!(failed, [false, true, false, true, false]);
    let (_, answer, _) = &reports[0];
    assert_eq!(answer["statusCode"], 200);
    let body: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
    assert_eq!(body["value"], 15);
    let (_, error, _) = &reports[1];
    assert_eq!(error["errorType"], "UnsupportedEvent");
    let message = error["errorMessage"].as_str().unwrap();
    assert!(
        message.contains("the event has the fields Records"),
        "{message}"
    );
    assert_eq!(reports[2].1["statusCode"], 400);
    assert_eq!(reports[4].1["statusDescription"], "200 OK");
}

#[tokio::test]
async fn an_answer_leaves_before_the_deadline() {
    let stub = Stub::start().await;
    let mut slow = event("gmail/emails.header-form");
    slow["body"] = slow["body"]
        .as_str()
        .unwrap()
        .replace("is:unread", "slow")
        .into();
    let begun = SystemTime::now();
    let events = [
        (slow.clone(), Some(Duration::from_millis(900))),
        // Nothing left at all is a limit too.
        (slow, Some(Duration::ZERO)),
        (event("gmail/emails.header-form"), None),
    ];
    let reports = invoke(&events, &[("GMAIL_URL", &stub.url())]).await;
    assert!(begun.elapsed().unwrap() < Duration::from_secs(5));
    assert!(reports[0].2, "the answer was late");
    for (failed, answer, _) in &reports[..2] {
        assert!(!failed);
        let body: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
        assert_eq!(body["success"], false);
        assert_eq!(body["error"]["can_retry"], true, "{body}");
        assert_eq!(body["error"]["message"], "The tool did not finish in time");
    }
    let (_, answer, _) = &reports[2];
    let body: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
    assert_eq!(body["success"], true, "{body}");
}
