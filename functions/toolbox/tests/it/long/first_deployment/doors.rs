//! The entry points of a deployed function: its alias, an HTTP API, and Lambda's API.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::Response,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use test_support::{
    Served, answer,
    function_url::{event_of, response_of},
    invocations::{End, Function},
};

/// The domain of the HTTP API, as its events name it.
const DOMAIN: &str = "r3pmxmplak.execute-api.us-east-1.amazonaws.com";

/// A stack with a function behind an HTTP API.
pub(super) struct Stack {
    pub(super) versions: Arc<Versions>,
    pub(super) http_api: Served,
}

/// The versions of a function, and the alias that leads to one of them.
#[derive(Default)]
pub(super) struct Versions {
    published: Mutex<Vec<Arc<Function>>>,
    /// Its number, from 1.
    live: AtomicUsize,
}

impl Versions {
    pub(super) fn publish(&self, function: Function) {
        let mut published = self.published.lock().unwrap();
        published.push(Arc::new(function));
        self.live.store(published.len(), Ordering::Relaxed);
    }

    fn live(&self) -> (usize, Arc<Function>) {
        let live = self.live.load(Ordering::Relaxed);
        (live, Arc::clone(&self.published.lock().unwrap()[live - 1]))
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let published = self.published.lock().unwrap();
        published
            .iter()
            .flat_map(|function| function.lines())
            .collect()
    }
}

/// Starts an HTTP API that gives up after this time.
pub(super) async fn http_api(limit: Duration) -> Stack {
    let versions = Arc::<Versions>::default();
    let router = Router::new()
        .fallback(receive)
        .with_state((Arc::clone(&versions), limit));
    let http_api = Served::start(router).await;
    Stack { versions, http_api }
}

async fn receive(
    State((versions, limit)): State<(Arc<Versions>, Duration)>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 6 << 20).await.unwrap();
    let mut event = event_of(&parts, &body);
    event["headers"]["host"] = DOMAIN.into();
    event["requestContext"]["domainName"] = DOMAIN.into();
    let (_, function) = versions.live();
    let invocation = tokio::spawn(async move { function.invoke(&event, None).await });
    match tokio::time::timeout(limit, invocation).await {
        Ok(Ok(End::Response(reported))) => response_of(&reported),
        Ok(_) => answer(500, &[], r#"{"message":"Internal Server Error"}"#),
        Err(_) => answer(503, &[], r#"{"message":"Service Unavailable"}"#),
    }
}

/// Starts what answers the AWS CLI: invocations with the function, everything else with the emulator.
pub(super) async fn aws(emulator: &str, versions: &Arc<Versions>) -> Served {
    let state = (emulator.to_owned(), Arc::clone(versions));
    Served::start(Router::new().fallback(answer_cli).with_state(state)).await
}

async fn answer_cli(
    State((emulator, versions)): State<(String, Arc<Versions>)>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 6 << 20).await.unwrap();
    let path = parts.uri.path();
    if path.ends_with("/invocations") {
        let context = parts.headers.get("x-amz-client-context");
        let context = context.map(|it| STANDARD.decode(it).unwrap());
        let context = context.map(|it| serde_json::from_slice(&it).unwrap());
        let event = serde_json::from_slice(&body).unwrap();
        return invoke(&versions, path, &event, context.as_ref()).await;
    }
    if path.ends_with("/aliases/live") && parts.method == "PUT" {
        let alias: Value = serde_json::from_slice(&body).unwrap();
        let version = alias["FunctionVersion"].as_str().unwrap().parse().unwrap();
        versions.live.store(version, Ordering::Relaxed);
    }
    let mut headers = parts.headers;
    headers.remove("host");
    let client = reqwest::Client::new();
    let forwarded = client.request(parts.method, format!("{emulator}{}", parts.uri));
    let received = forwarded.headers(headers).body(body).send().await.unwrap();
    let mut response = Response::builder().status(received.status());
    for name in ["content-type", "x-amzn-errortype", "x-amzn-requestid"] {
        if let Some(value) = received.headers().get(name) {
            response = response.header(name, value);
        }
    }
    response
        .body(Body::from(received.bytes().await.unwrap()))
        .unwrap()
}

async fn invoke(
    versions: &Versions,
    path: &str,
    event: &Value,
    client_context: Option<&Value>,
) -> Response {
    assert!(
        path.contains("%3Alive/") || path.contains(":live/"),
        "{path}"
    );
    let (version, function) = versions.live();
    let version = version.to_string();
    let headers = [("x-amz-executed-version", &*version)];
    match function.invoke(event, client_context).await {
        End::Response(response) => answer(200, &headers, response.to_string()),
        other => panic!("{other:?}"),
    }
}
