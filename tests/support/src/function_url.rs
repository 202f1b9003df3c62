//! A function behind a function URL, on a loopback address; also one with several instances, which
//! invokes itself.
//!
//! Clients that only speak HTTP reach a program under the runtime API through it. Whether the URL
//! streams is for the function to say; Lambda has a setting for it, which has to agree. As on Lambda,
//! an instance handles one event at a time, an event that finds no idle instance starts another one,
//! and an instance that does not answer before its deadline is stopped.

use std::{
    collections::VecDeque,
    process::Command,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Path, Request, State},
    http::{HeaderMap, request::Parts},
    response::Response,
    routing::post,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{
    Served, answer,
    lambda::{Answer, LAMBDA, LONG, Platform, event},
};

/// Lambda's limit for an event.
const LARGEST_BODY: usize = 6 << 20;

/// A function, the runtime API that it runs under, and the URL in front of both.
pub struct FunctionUrl {
    /// Where clients call the function.
    pub url: String,
    platform: Arc<tokio::sync::Mutex<Platform>>,
    _served: Served,
}

impl FunctionUrl {
    /// Starts a function with these environment variables. It knows its URL: the events name the host of
    /// a real function URL.
    pub async fn start(command: &mut Command, environment: &[(&str, &str)]) -> Self {
        let mut started = None;
        let served = Served::start_with(async |url| {
            let environment = [environment, &[("TOOLS_PUBLIC_URL", url)]].concat();
            let platform = Platform::start(command, &[], &environment).await;
            let platform = started.insert(Arc::new(tokio::sync::Mutex::new(platform)));
            Router::new()
                .fallback(forward)
                .with_state(Arc::clone(platform))
        });
        let served = served.await;
        Self {
            url: served.url.clone(),
            platform: started.unwrap(),
            _served: served,
        }
    }

    /// Waits for a line of the function's log that contains `text`; panics after `seconds`.
    pub async fn line_with(&self, text: &str, seconds: u64) -> String {
        self.platform.lock().await.function.line_with(text, seconds)
    }
}

/// Invokes the function with a request. The function handles one event at a time, so the next report
/// is the event's.
async fn forward(
    State(platform): State<Arc<tokio::sync::Mutex<Platform>>>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, LARGEST_BODY).await.unwrap();
    let event = event_of(&parts, &body);
    // A task of its own: if the client disconnects, the report is still taken, as Lambda does.
    let invocation = tokio::spawn(async move { platform.lock().await.answer(&event, LONG).await });
    match invocation.await.unwrap() {
        Answer::Whole((true, ..)) => answer(502, &[], "Internal Server Error"),
        Answer::Whole((false, reported, _)) => response_of(&reported),
        Answer::Streamed(streamed) => {
            let (head, _) = response_of(&streamed.prelude).into_parts();
            Response::from_parts(head, Body::new(streamed))
        }
    }
}

/// Returns the event of a request, in payload format 2.0.
///
/// # Panics
///
/// If a header is not text.
pub fn event_of(parts: &Parts, body: &Bytes) -> Value {
    let mut event = event("sources/function-url");
    event["rawPath"] = parts.uri.path().into();
    event["rawQueryString"] = parts.uri.query().unwrap_or_default().into();
    // Lambda adds these headers, or replaces them.
    let mut headers = event["headers"].take();
    headers.as_object_mut().unwrap().retain(|name, _| {
        ["host", "x-amzn-tls-version", "x-amzn-trace-id"].contains(&&**name)
            || name.starts_with("x-forwarded-")
    });
    for name in parts.headers.keys().filter(|name| *name != "host") {
        headers[name.as_str()] = joined(&parts.headers, name.as_str()).into();
    }
    if let Some(Value::String(cookies)) = headers.as_object_mut().unwrap().remove("cookie") {
        event["cookies"] = json!(cookies.split("; ").collect::<Vec<_>>());
    }
    event["headers"] = headers;
    let http = &mut event["requestContext"]["http"];
    http["method"] = parts.method.as_str().into();
    http["path"] = parts.uri.path().into();
    let (text, is_base64) = match std::str::from_utf8(body) {
        Ok(text) => (text.to_owned(), false),
        Err(_) => (STANDARD.encode(body), true),
    };
    event["isBase64Encoded"] = is_base64.into();
    if text.is_empty() {
        event.as_object_mut().unwrap().remove("body");
    } else {
        event["body"] = text.into();
    }
    event
}

fn joined(headers: &HeaderMap, name: &str) -> String {
    let values = headers.get_all(name).iter();
    let values: Vec<_> = values.map(|value| value.to_str().unwrap()).collect();
    values.join(",")
}

/// Returns the response that a function has reported.
///
/// # Panics
///
/// If it is not one.
pub fn response_of(reported: &Value) -> Response {
    let status = u16::try_from(reported["statusCode"].as_u64().unwrap()).unwrap();
    let mut response = Response::builder().status(status);
    for (name, value) in reported["headers"].as_object().into_iter().flatten() {
        // Function URLs rename this header.
        let name = match &**name {
            "www-authenticate" => "x-amzn-remapped-www-authenticate",
            name => name,
        };
        response = response.header(name, value.as_str().unwrap());
    }
    for cookie in reported["cookies"].as_array().into_iter().flatten() {
        response = response.header("set-cookie", cookie.as_str().unwrap());
    }
    let text = reported["body"].as_str().unwrap_or_default();
    let body = if reported["isBase64Encoded"] == json!(true) {
        Body::from(STANDARD.decode(text).unwrap())
    } else {
        Body::from(text.to_owned())
    };
    response.body(body).unwrap()
}

/// The treatment of an event with which the function invokes itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It is delivered once.
    Deliver,
    /// It is delivered, but the request for it gets no answer.
    DeliverUnanswered,
    /// It is accepted, and left for the test to deliver, later or never.
    Hold,
    /// The request for it gets no answer.
    Ignore,
    /// The request for it gets this status and this code.
    Refuse(u16, &'static str),
}

/// The end of an invocation.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// The function has responded.
    Response(Value),
    /// The function has reported an error.
    Error(Value),
    /// The process has ended, or was stopped at its deadline.
    Died,
}

/// The time limits of invocations.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For requests.
    pub request: Duration,
    /// For other events.
    pub event: Duration,
    /// The time after which the function URL gives up; the invocation goes on.
    pub source: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let limit = Duration::from_secs(20);
        Self {
            request: limit,
            event: limit,
            source: limit,
        }
    }
}

/// A function, Lambda in front of it, and the URL where clients call it.
pub struct Function {
    /// Where clients call the function.
    pub url: String,
    lambda: Arc<Lambda>,
    _url: Served,
    api: Served,
}

struct Lambda {
    command: fn() -> Command,
    /// The domain that events name in place of that of a function URL.
    domain: Option<&'static str>,
    environment: Mutex<Vec<(String, String)>>,
    idle: Mutex<VecDeque<Platform>>,
    limits: Mutex<Limits>,
    treatment: Mutex<Treatment>,
    /// The events with which the function has invoked itself.
    invocations: Mutex<Vec<Value>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

impl Function {
    /// Starts a function with two instances, which get these variables.
    pub async fn start(command: fn() -> Command, environment: &[(&str, &str)]) -> Self {
        let function = Self::behind(command, None).await;
        function.deploy(environment).await;
        function
    }

    /// Starts the entry point of a function that is not deployed yet, with this domain in its events.
    pub async fn behind(command: fn() -> Command, domain: Option<&'static str>) -> Self {
        let lambda = Arc::new(Lambda {
            command,
            domain,
            environment: Mutex::default(),
            idle: Mutex::default(),
            limits: Mutex::default(),
            treatment: Mutex::new(Treatment::Deliver),
            invocations: Mutex::default(),
        });
        let path = "/2015-03-31/functions/{name}/invocations";
        let api = Router::new().route(path, post(accept_invocation));
        let api = Served::start(api.with_state(Arc::clone(&lambda))).await;
        let url = Router::new().fallback(forward_to_instance);
        let url = Served::start(url.with_state(Arc::clone(&lambda))).await;
        Self {
            url: url.url.clone(),
            lambda,
            _url: url,
            api,
        }
    }

    /// Replaces the idle instances with two new ones, which get these variables.
    pub async fn deploy(&self, environment: &[(&str, &str)]) {
        let own = ("AWS_ENDPOINT_URL_LAMBDA", &*self.api.url);
        let all = environment.iter().copied().chain([own]);
        let all = all.map(|(name, value)| (name.to_owned(), value.to_owned()));
        *locked(&self.lambda.environment) = all.collect();
        locked(&self.lambda.idle).clear();
        for _ in 0..2 {
            let platform = self.lambda.start().await;
            locked(&self.lambda.idle).push_back(platform);
        }
    }

    /// Decides what becomes of the events with which the function invokes itself from now on.
    pub fn treat(&self, treatment: Treatment) {
        *locked(&self.lambda.treatment) = treatment;
    }

    /// Sets the time limits of further invocations.
    pub fn limit(&self, limits: Limits) {
        *locked(&self.lambda.limits) = limits;
    }

    /// Returns the events with which the function has invoked itself.
    pub fn invocations(&self) -> Vec<Value> {
        locked(&self.lambda.invocations).clone()
    }

    /// Delivers an event, perhaps with a client context.
    pub async fn invoke(&self, event: &Value, client_context: Option<&Value>) -> End {
        let limit = locked(&self.lambda.limits).event;
        let client_context = client_context.map(Value::to_string);
        let client_context = client_context.as_deref().map(str::as_bytes);
        self.lambda.invoke(event, limit, client_context).await
    }

    /// Takes the lines that idle instances have printed.
    pub fn lines(&self) -> Vec<String> {
        let idle = locked(&self.lambda.idle);
        idle.iter().flat_map(|it| it.function.lines()).collect()
    }
}

impl Drop for Function {
    /// Stops the instances before their runtime APIs.
    fn drop(&mut self) {
        locked(&self.lambda.idle).clear();
    }
}

impl Lambda {
    async fn start(&self) -> Platform {
        let environment = locked(&self.environment).clone();
        let environment = environment.iter().map(|(name, it)| (&**name, &**it));
        let environment: Vec<_> = environment.collect();
        Platform::start(&mut (self.command)(), &[], &environment).await
    }

    async fn invoke(&self, event: &Value, limit: Duration, client_context: Option<&[u8]>) -> End {
        // The one that has been idle for the longest time: the next request gets another instance.
        let idle = locked(&self.idle).pop_front();
        let mut platform = match idle {
            Some(platform) => platform,
            None => self.start().await,
        };
        // The time that an instance takes to start is not the invocation's.
        let delivered = platform.deliver(event, limit, client_context).await;
        let deadline = delivered + limit;
        let report = loop {
            let soon = Instant::now() + Duration::from_millis(20);
            let report = platform.report_until(soon.min(deadline)).await;
            let is_over = Instant::now() >= deadline || platform.function.has_ended_within(0);
            if report.is_some() || is_over {
                break report;
            }
        };
        // An instance without a report is dropped, which stops it.
        let Some((failed, body, _)) = report else {
            return End::Died;
        };
        locked(&self.idle).push_back(platform);
        if failed {
            End::Error(body)
        } else {
            End::Response(body)
        }
    }

    fn deliver(self: &Arc<Self>, event: &Value) {
        let (lambda, event) = (Arc::clone(self), event.clone());
        let limit = locked(&self.limits).event;
        tokio::spawn(async move { lambda.invoke(&event, limit, None).await });
    }
}

/// Accepts an event with which the function invokes itself.
async fn accept_invocation(
    State(lambda): State<Arc<Lambda>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    assert_eq!(name, LAMBDA[0].1);
    assert_eq!(headers["x-amz-invocation-type"], "Event");
    let credential = headers["authorization"].to_str().unwrap();
    assert!(credential.contains("/lambda/aws4_request"), "{credential}");
    let event: Value = serde_json::from_slice(&body).unwrap();
    let treatment = *locked(&lambda.treatment);
    if let Treatment::Refuse(status, code) = treatment {
        let headers = [("x-amzn-errortype", code)];
        return answer(status, &headers, r#"{"Message": "The test refuses it."}"#);
    }
    match treatment {
        Treatment::Deliver | Treatment::DeliverUnanswered => lambda.deliver(&event),
        Treatment::Hold | Treatment::Ignore | Treatment::Refuse(..) => {}
    }
    locked(&lambda.invocations).push(event);
    if [Treatment::Ignore, Treatment::DeliverUnanswered].contains(&treatment) {
        return std::future::pending().await;
    }
    answer(202, &[], "")
}

/// Invokes the function with a request.
async fn forward_to_instance(State(lambda): State<Arc<Lambda>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, LARGEST_BODY).await.unwrap();
    let mut event = event_of(&parts, &body);
    if let Some(domain) = lambda.domain {
        event["headers"]["host"] = domain.into();
        event["requestContext"]["domainName"] = domain.into();
    }
    let Limits {
        request, source, ..
    } = *locked(&lambda.limits);
    // A task of its own: it goes on if the client disconnects or the URL gives up.
    let invocation = tokio::spawn(async move { lambda.invoke(&event, request, None).await });
    match tokio::time::timeout(source, invocation).await {
        Ok(Ok(End::Response(reported))) => response_of(&reported),
        Ok(_) => answer(502, &[], "Internal Server Error"),
        Err(_) => answer(504, &[], "Gateway Timeout"),
    }
}
