//! Calls functions, and routers, without a socket.

use lambda_tools::{
    Auth, EventKind, Failure, Secret, Server, StoreError, Tool, Toolkit,
    idempotency::Idempotency,
    secrets::{ReadFuture, SecretStore, Secrets},
    store::{PutOutcome, Record, Store, StoreFuture, Write},
    testing::{ExpectedResponse, LambdaFunction, TestOutcome},
};
use std::{
    collections::HashMap,
    process::{Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::{Body, to_bytes},
};
use http::{HeaderMap, Request};
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use test_support::mcp::modern;
use tower::ServiceExt;

/// Creates a server that takes no setting from the environment of the tests, except for metrics.
pub(crate) fn server(toolkit: Toolkit) -> Server {
    Server::new(toolkit)
        .auth(Auth::none())
        .base_path("")
        .allowed_origins([""; 0])
        .events(EventKind::DEFAULT.iter().copied())
        .secrets(Secrets::none())
        .idempotency(Idempotency::none())
}

/// Creates a function that handles events.
pub(crate) fn function(server: impl Into<Server>) -> LambdaFunction {
    LambdaFunction::new(server)
}

/// Returns all output of a program that must not start; one that starts is killed.
pub(crate) fn failed_start(program: &mut Command) -> String {
    let program = program.env("PORT", "0").stdin(Stdio::null());
    let program = program.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = program.spawn().unwrap();
    for _ in 0..1_000 {
        if child.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().ok();
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(!output.status.success(), "{text}");
    text
}

/// Returns an HTTP API event, payload format 2.0.
pub(crate) fn event(method: &str, path: &str, body: &str) -> String {
    json!({
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"content-type": "application/json", "oxp-version": "1.0"},
        "requestContext": {
            "accountId": "1", "apiId": "1", "stage": "$default", "timeEpoch": 0,
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1",
                     "sourceIp": "192.0.2.1", "userAgent": "test"},
        },
        "body": body,
        "isBase64Encoded": false,
    })
    .to_string()
}

/// Sends a request to a function, with more headers.
pub(crate) async fn post(
    function: &LambdaFunction,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> ExpectedResponse {
    let event = event("POST", path, &body.to_string());
    let mut event: Value = serde_json::from_str(&event).unwrap();
    for (name, value) in headers {
        event["headers"][*name] = (*value).into();
    }
    function.respond(&event.to_string()).await.unwrap()
}

pub(crate) async fn get(function: &LambdaFunction, path: &str) -> ExpectedResponse {
    function.respond(&event("GET", path, "")).await.unwrap()
}

/// The response of a router.
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Page {
    /// Returns a header, which is empty if it is absent.
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// Sends a request to a router.
pub(crate) async fn send(
    router: &Router,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Body>,
) -> Page {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(body.into()).unwrap();
    let (parts, body) = router.clone().oneshot(request).await.unwrap().into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    Page {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
    }
}

/// Calls a tool over MCP, revision 2026-07-28, with these params besides its name.
pub(crate) async fn mcp_call(function: &LambdaFunction, tool: &str, mut params: Value) -> Value {
    params["name"] = tool.into();
    let arguments = &mut params["arguments"];
    if arguments.is_null() {
        *arguments = json!({});
    }
    let (headers, body) = modern("tools/call", params, json!({}));
    let headers = headers.iter().map(|(name, value)| (*name, &**value));
    let headers: Vec<_> = headers.collect();
    let response = post(function, "/mcp", &headers, &body).await;
    assert_eq!(response.status, 200, "{response:?}");
    response.body
}

/// Calls a tool in OXP's header dialect.
pub(crate) async fn call(function: &LambdaFunction, tool: &str, input: Value) -> ExpectedResponse {
    let body = json!({"tool_id": tool, "input": input});
    post(function, "/tools/call", &[], &body).await
}

/// Returns the `error` of a call whose tool failed.
pub(crate) async fn failure(function: &LambdaFunction, tool: &str, input: Value) -> Value {
    let response = call(function, tool, input).await;
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.body["success"], false, "{response:?}");
    assert!(response.body.get("value").is_none(), "{response:?}");
    response.body["error"].clone()
}

/// Returns the `value` of a call that succeeded.
pub(crate) async fn value(function: &LambdaFunction, tool: &str, input: Value) -> Value {
    let response = call(function, tool, input).await;
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.body["success"], true, "{response:?}");
    response.body["value"].clone()
}

/// A store that instances share. It cannot count in one request.
#[derive(Clone, Default)]
pub(crate) struct Shared(pub(crate) Arc<State>);

#[derive(Default)]
pub(crate) struct State {
    pub(crate) records: Mutex<HashMap<String, Record>>,
    /// What each operation fails with.
    pub(crate) error: Mutex<Option<StoreError>>,
    /// No operation ends.
    pub(crate) is_silent: AtomicBool,
}

impl Shared {
    async fn check(&self) -> Result<(), StoreError> {
        if self.0.is_silent.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        self.0.error.lock().unwrap().clone().map_or(Ok(()), Err)
    }
}

impl Store for Shared {
    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Record>> {
        let found = self.0.records.lock().unwrap().get(id).cloned();
        Box::pin(async move {
            // Other calls come between a read and the write that follows.
            tokio::task::yield_now().await;
            self.check().await.map(|()| found)
        })
    }

    fn put<'a>(&'a self, write: Write<'a>) -> StoreFuture<'a, PutOutcome> {
        Box::pin(async move {
            self.check().await?;
            let mut records = self.0.records.lock().unwrap();
            let current = records.get(write.id).cloned();
            if !write.may_replace(current.as_ref()) {
                return Ok(PutOutcome::Conflict(current));
            }
            records.insert(write.id.to_owned(), write.record.clone());
            Ok(PutOutcome::Written)
        })
    }

    fn delete<'a>(&'a self, id: &'a str, version: u64) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            self.check().await?;
            let mut records = self.0.records.lock().unwrap();
            if records.get(id).is_some_and(|it| it.version == version) {
                records.remove(id);
            }
            Ok(())
        })
    }
}

/// A store of secrets that reads each one with a function.
pub(crate) struct Reads<F>(pub(crate) F);

impl<F> SecretStore for Reads<F>
where
    F: Fn(&str) -> Result<Option<Secret>, StoreError> + Send + Sync + 'static,
{
    fn read<'a>(&'a self, ids: &'a [String]) -> ReadFuture<'a> {
        let results = ids.iter().map(|id| self.0(id)).collect();
        Box::pin(std::future::ready(results))
    }

    fn location(&self, _: &str) -> String {
        "the store".to_owned()
    }
}

/// Returns a tool that takes any object and does nothing.
pub(crate) fn idle(id: impl Into<String>, description: impl Into<String>) -> Tool {
    let nothing = async |_: Value| Ok::<_, Failure>(Value::Null);
    let input = json!({"type": "object"});
    Tool::dynamic(id.into(), description.into(), input, Value::Null, nothing)
}

/// Takes nothing.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Nothing {}

/// Returns a tool with inputs of this type.
#[track_caller]
pub(crate) fn tool<I: JsonSchema + DeserializeOwned + Send + 'static>(id: &'static str) -> Tool {
    Tool::new(id, |_: I| async { Ok::<_, Failure>(()) })
}

/// Returns the parameter errors of a tool with inputs of this type; `null` if it accepts the input.
pub(crate) async fn errors_of<I: JsonSchema + DeserializeOwned + Send + 'static>(
    input: Value,
) -> Value {
    let function = function(Toolkit::new([tool::<I>("T.T@1.0.0")]).unwrap());
    match function.call("T.T", input).await {
        TestOutcome::Value(_) => Value::Null,
        other => json!(other.rejection().parameter_errors),
    }
}
