//! Runs a program as a Lambda function, under a runtime API on a loopback address.

use std::{
    collections::HashMap,
    future::poll_fn,
    io::{Error, Result},
    pin::Pin,
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant, SystemTime},
};

use axum::{
    Router,
    body::{Bytes, HttpBody},
    extract::{Path, Request, State},
    http::{HeaderValue, StatusCode},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use hyper::body::Frame;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::{Running, Served, repository};

/// Environment variables that Lambda sets.
pub const LAMBDA: [(&str, &str); 3] = [
    ("AWS_LAMBDA_FUNCTION_NAME", "toolbox"),
    ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
    ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128"),
];

/// Environment variables that the template sets for the standard library and the allocator.
pub const RUNTIME: [(&str, &str); 3] = [
    ("RUST_BACKTRACE", "0"),
    ("MALLOC_ARENA_MAX", "1"),
    ("MALLOC_TRIM_THRESHOLD_", "131072"),
];

/// A function's report for one event: if it is an error, the body, and if it arrived before the
/// deadline.
pub type Report = (bool, Value, bool);

/// What a streamed response has between its prelude and its body.
const SEPARATOR: [u8; 8] = [0; 8];

/// A response that a function sends in parts.
pub struct Streamed {
    /// What precedes the body: `statusCode`, `headers` and `cookies`.
    pub prelude: Value,
    parts: Parts,
}

/// The parts of a body, and `None` after the last one.
type Parts = mpsc::UnboundedReceiver<Option<Bytes>>;

/// The answer to an event.
pub enum Answer {
    /// It was reported as a whole.
    Whole(Report),
    /// It comes in parts.
    Streamed(Streamed),
}

/// The X-Ray header of every invocation.
const TRACE_HEADER: &str =
    "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=0";

/// Returns the request id of the invocation with this number, counted from 0.
pub fn request_id(number: usize) -> String {
    format!("8476a536-e9f4-11e8-9739-{number:012}")
}

/// An event, its time limit and its client context.
type SentEvent = (String, Option<Duration>, Option<HeaderValue>);

struct RuntimeApi {
    events: tokio::sync::Mutex<mpsc::UnboundedReceiver<SentEvent>>,
    sent: AtomicUsize,
    reports: mpsc::UnboundedSender<Report>,
    streams: mpsc::UnboundedSender<Parts>,
    deadlines: Mutex<HashMap<String, Option<SystemTime>>>,
    deliveries: mpsc::UnboundedSender<Instant>,
}

async fn next(State(api): State<Arc<RuntimeApi>>) -> Response {
    let next = api.events.lock().await.recv().await;
    let Some((event, limit, client_context)) = next else {
        return std::future::pending().await;
    };
    let deadline = limit.map(|limit| SystemTime::now() + limit);
    let _ = api.deliveries.send(Instant::now());
    let id = request_id(api.sent.fetch_add(1, Ordering::Relaxed));
    api.deadlines.lock().unwrap().insert(id.clone(), deadline);
    let since_epoch = match deadline {
        Some(deadline) => deadline.duration_since(SystemTime::UNIX_EPOCH).unwrap(),
        // cargo-lambda's emulator also sends a time in 1970.
        None => Duration::from_mins(10),
    };
    let since_epoch = since_epoch.as_millis().to_string();
    let arn = "arn:aws:lambda:us-east-1:1:function:t".to_owned();
    let headers = [
        ("lambda-runtime-aws-request-id", id),
        ("lambda-runtime-deadline-ms", since_epoch),
        ("lambda-runtime-invoked-function-arn", arn),
        ("lambda-runtime-trace-id", TRACE_HEADER.to_owned()),
        ("content-type", "application/json".to_owned()),
    ];
    let mut response = (headers, event).into_response();
    if let Some(client_context) = client_context {
        let name = "lambda-runtime-client-context";
        response.headers_mut().insert(name, client_context);
    }
    response
}

async fn report(
    State(api): State<Arc<RuntimeApi>>,
    Path((id, kind)): Path<(String, String)>,
    request: Request,
) -> StatusCode {
    let headers = request.headers();
    let mode = headers.get("lambda-runtime-function-response-mode");
    if mode.is_some_and(|it| it == "streaming") {
        return receive(&api, request).await;
    }
    let body = axum::body::to_bytes(request.into_body(), usize::MAX).await;
    let body = serde_json::from_slice(&body.unwrap()).unwrap();
    let deadline = api.deadlines.lock().unwrap()[&id];
    let in_time = deadline.is_none_or(|deadline| SystemTime::now() < deadline);
    api.reports.send((kind == "error", body, in_time)).unwrap();
    StatusCode::ACCEPTED
}

/// Passes on the parts of a streamed response as they come.
async fn receive(api: &RuntimeApi, request: Request) -> StatusCode {
    let (sender, parts) = mpsc::unbounded_channel();
    let _ = api.streams.send(parts);
    let mut body = request.into_body();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        match frame.map(Frame::into_data) {
            Ok(Ok(part)) => drop(sender.send(Some(part))),
            // Trailers.
            Ok(Err(_)) => {}
            // The process has ended, and with it the connection.
            Err(_) => return StatusCode::BAD_REQUEST,
        }
    }
    let _ = sender.send(None);
    StatusCode::ACCEPTED
}

impl Streamed {
    async fn of(mut parts: Parts) -> Self {
        let mut head = Vec::new();
        while !head.ends_with(&SEPARATOR) {
            let part = parts.recv().await.flatten();
            head.extend(part.expect("a streamed response has a prelude"));
        }
        Self {
            prelude: serde_json::from_slice(&head[..head.len() - SEPARATOR.len()]).unwrap(),
            parts,
        }
    }

    /// Returns a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.prelude["headers"][name].as_str()
    }

    /// Waits for the next part of the body. `None` at its end.
    pub async fn next(&mut self) -> Option<String> {
        let part = poll_fn(|context| Pin::new(&mut *self).poll_frame(context));
        let part = tokio::time::timeout(Duration::from_secs(30), part).await;
        let part = part.expect("the function goes on")?.unwrap().into_data();
        Some(String::from_utf8(part.unwrap().to_vec()).unwrap())
    }
}

impl HttpBody for Streamed {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>>>> {
        self.parts.poll_recv(context).map(|part| match part {
            Some(part) => part.map(|part| Ok(Frame::data(part))),
            None => Some(Err(Error::other("the function has ended"))),
        })
    }
}

/// Registers an internal extension, which gets no events.
async fn register() -> Response {
    let id = [("lambda-extension-identifier", "6c1b4c2e")];
    let body = json!({"functionName": "toolbox", "functionVersion": "1", "handler": "bootstrap"});
    (id, body.to_string()).into_response()
}

/// A function and the runtime API that it runs under.
pub struct Platform {
    /// The function's process.
    pub function: Running,
    events: mpsc::UnboundedSender<SentEvent>,
    reports: mpsc::UnboundedReceiver<Report>,
    streams: mpsc::UnboundedReceiver<Parts>,
    deliveries: mpsc::UnboundedReceiver<Instant>,
    served: Served,
}

impl Platform {
    /// Starts a function and sends it these events, each with its time limit.
    pub async fn start(
        command: &mut Command,
        events: &[(Value, Option<Duration>)],
        environment: &[(&str, &str)],
    ) -> Self {
        let (report_sender, reports) = mpsc::unbounded_channel();
        let (stream_sender, streams) = mpsc::unbounded_channel();
        let (event_sender, event_receiver) = mpsc::unbounded_channel();
        let (delivery_sender, deliveries) = mpsc::unbounded_channel();
        let api = Arc::new(RuntimeApi {
            events: tokio::sync::Mutex::new(event_receiver),
            sent: AtomicUsize::new(0),
            reports: report_sender,
            streams: stream_sender,
            deadlines: Mutex::default(),
            deliveries: delivery_sender,
        });
        let base = "/2018-06-01/runtime/invocation";
        let extension = "/2020-01-01/extension";
        let never = get(std::future::pending::<StatusCode>);
        let router = Router::new()
            .route(&format!("{base}/next"), get(next))
            .route(&format!("{base}/{{id}}/{{kind}}"), post(report))
            .route(&format!("{extension}/register"), post(register))
            .route(&format!("{extension}/event/next"), never)
            .with_state(api);
        let served = Served::start(router).await;
        command
            .env("AWS_LAMBDA_RUNTIME_API", &served.url["http://".len()..])
            .envs(LAMBDA)
            .envs(RUNTIME)
            .env("TOOLS_AUTH", "none")
            .envs(environment.iter().copied());
        let function = Running::start(command);
        let platform = Self {
            function,
            events: event_sender,
            reports,
            streams,
            deliveries,
            served,
        };
        platform.send_events(events);
        platform
    }

    /// Sends more events.
    pub fn send_events(&self, events: &[(Value, Option<Duration>)]) {
        for (event, limit) in events {
            self.send_with(event, *limit, None);
        }
    }

    /// Sends an event, perhaps with a client context.
    pub fn send_with(&self, event: &Value, limit: Option<Duration>, client_context: Option<&[u8]>) {
        let client_context = client_context.map(|it| HeaderValue::from_bytes(it).unwrap());
        let event = (event.to_string(), limit, client_context);
        self.events.send(event).unwrap();
    }

    /// Invokes the function with a client context; returns the report.
    pub async fn invoke_with(&mut self, event: &Value, client_context: &[u8]) -> Report {
        self.send_with(event, LONG, Some(client_context));
        self.reports(1).await.remove(0)
    }

    /// Sends an event, perhaps with a client context, and waits until the function gets it; returns
    /// the time at which it did.
    pub async fn deliver(
        &mut self,
        event: &Value,
        limit: Duration,
        client_context: Option<&[u8]>,
    ) -> Instant {
        while self.deliveries.try_recv().is_ok() {}
        self.send_with(event, Some(limit), client_context);
        let delivered = tokio::time::timeout(Duration::from_secs(30), self.deliveries.recv()).await;
        delivered.expect("the function asks for events").unwrap()
    }

    /// Waits for a report until this time.
    pub async fn report_until(&mut self, deadline: Instant) -> Option<Report> {
        let report = tokio::time::timeout_at(deadline.into(), self.reports.recv()).await;
        report.ok().flatten()
    }

    /// Waits for this many reports.
    pub async fn reports(&mut self, count: usize) -> Vec<Report> {
        let mut all = Vec::new();
        while all.len() < count {
            let report = tokio::time::timeout(Duration::from_secs(20), self.reports.recv()).await;
            all.push(report.expect("the function reports every event").unwrap());
        }
        all
    }

    /// Sends an event, and waits until its answer has begun.
    pub async fn answer(&mut self, event: &Value, limit: Option<Duration>) -> Answer {
        self.send_with(event, limit, None);
        let answer = async {
            tokio::select! {
                report = self.reports.recv() => Answer::Whole(report.unwrap()),
                parts = self.streams.recv() => Answer::Streamed(Streamed::of(parts.unwrap()).await),
            }
        };
        let answer = tokio::time::timeout(Duration::from_secs(30), answer).await;
        answer.expect("the function answers every event")
    }

    /// Stops the function; returns the lines it printed.
    pub fn end(self) -> Vec<String> {
        drop(self.served);
        self.function.end()
    }
}

/// Runs a function on these events, each with its time limit; returns a report for each, and the
/// lines the function printed.
pub async fn invoke_on(
    command: &mut Command,
    events: &[(Value, Option<Duration>)],
    environment: &[(&str, &str)],
) -> (Vec<Report>, Vec<String>) {
    let mut platform = Platform::start(command, events, environment).await;
    let reports = platform.reports(events.len()).await;
    (reports, platform.end())
}

/// Returns a recorded event, by its path under `events/` without the extension.
pub fn event(name: &str) -> Value {
    let text = std::fs::read_to_string(repository(&format!("events/{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The X-Ray trace id of every invocation, without its dashes.
pub const XRAY_TRACE_ID: &str = "5759e988bd862e3fe1be46a994272793";

/// A time limit that no call reaches.
pub const LONG: Option<Duration> = Some(Duration::from_secs(10));

/// Returns the event of a call over an HTTP API, without the header that names a dialect.
pub fn calling(body: &Value, headers: &[(&str, &str)]) -> Value {
    let mut event = event("calculator/add.header-form");
    let recorded_headers = event["headers"].as_object_mut().unwrap();
    recorded_headers.remove("oxp-version");
    for (name, value) in headers {
        event["headers"][name] = json!(value);
    }
    event["body"] = body.to_string().into();
    event
}
