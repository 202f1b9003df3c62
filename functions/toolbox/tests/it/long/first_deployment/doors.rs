//! The entry points of a deployed function: an HTTP API, and Lambda's API.

use std::{
    sync::{Arc, Mutex},
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
    pub(super) deployments: Arc<Deployments>,
    pub(super) http_api: Served,
}

/// The deployments of a function, of which the last one gets all calls.
#[derive(Default)]
pub(super) struct Deployments(Mutex<Vec<Arc<Function>>>);

impl Deployments {
    pub(super) fn push(&self, function: Function) {
        self.0.lock().unwrap().push(Arc::new(function));
    }

    fn last(&self) -> Arc<Function> {
        Arc::clone(self.0.lock().unwrap().last().unwrap())
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let functions = self.0.lock().unwrap();
        functions
            .iter()
            .flat_map(|function| function.lines())
            .collect()
    }
}

/// Starts an HTTP API that gives up after this time.
pub(super) async fn http_api(limit: Duration) -> Stack {
    let deployments = Arc::<Deployments>::default();
    let router = Router::new()
        .fallback(receive)
        .with_state((Arc::clone(&deployments), limit));
    let http_api = Served::start(router).await;
    Stack {
        deployments,
        http_api,
    }
}

async fn receive(
    State((deployments, limit)): State<(Arc<Deployments>, Duration)>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 6 << 20).await.unwrap();
    let mut event = event_of(&parts, &body);
    event["headers"]["host"] = DOMAIN.into();
    event["requestContext"]["domainName"] = DOMAIN.into();
    let function = deployments.last();
    let invocation = tokio::spawn(async move { function.invoke(&event, None).await });
    match tokio::time::timeout(limit, invocation).await {
        Ok(Ok(End::Response(reported))) => response_of(&reported),
        Ok(_) => answer(500, &[], r#"{"message":"Internal Server Error"}"#),
        Err(_) => answer(503, &[], r#"{"message":"Service Unavailable"}"#),
    }
}

/// Starts what answers the AWS CLI: invocations with the function, everything else with the emulator.
pub(super) async fn aws(emulator: &str, deployments: &Arc<Deployments>) -> Served {
    let state = (emulator.to_owned(), Arc::clone(deployments));
    Served::start(Router::new().fallback(answer_cli).with_state(state)).await
}

async fn answer_cli(
    State((emulator, deployments)): State<(String, Arc<Deployments>)>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 6 << 20).await.unwrap();
    if parts.uri.path().ends_with("/invocations") {
        let context = parts.headers.get("x-amz-client-context");
        let context = context.map(|it| STANDARD.decode(it).unwrap());
        let context = context.map(|it| serde_json::from_slice(&it).unwrap());
        let event = serde_json::from_slice(&body).unwrap();
        return invoke(&deployments.last(), &event, context.as_ref()).await;
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

async fn invoke(function: &Function, event: &Value, client_context: Option<&Value>) -> Response {
    let headers = [("x-amz-executed-version", "$LATEST")];
    match function.invoke(event, client_context).await {
        End::Response(response) => answer(200, &headers, response.to_string()),
        other => panic!("{other:?}"),
    }
}
