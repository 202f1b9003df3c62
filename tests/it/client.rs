//! The crate's clients, tested with a tool server and with scripted responses.

mod confidential;
mod misbehaving;
mod opentool;
mod oxp;
mod retries;

use std::sync::{Arc, Mutex};

use axum::{Router, body::Bytes, http::request::Parts, response::Response};

use lambda_tools::client::{
    CallRequest, ClientOptions,
    opentool::{FunctionCall, OpenToolClient},
    oxp::OxpClient,
};
use serde_json::{Map, Value};
use test_support::{Served, answer};

const JSON: &[(&str, &str)] = &[("content-type", "application/json")];

/// Returns options without retries.
fn once() -> ClientOptions {
    ClientOptions::default().attempts(1)
}

fn oxp(url: &str, options: ClientOptions) -> OxpClient {
    OxpClient::new(url, options).unwrap()
}

fn opentool(url: &str, options: ClientOptions) -> OpenToolClient {
    OpenToolClient::new(url, options).unwrap()
}

/// Returns the errors of a call over OXP and OpenTool.
async fn errors_of(url: &str, options: &ClientOptions) -> [Option<String>; 2] {
    let call = CallRequest::new("tool");
    let function = FunctionCall::new("call-1", "tool", Map::new());
    let oxp = oxp(url, options.clone()).call(&call).await.err();
    let opentool = opentool(url, options.clone()).call(&function).await.err();
    [oxp, opentool].map(|error| error.map(|it| it.to_string()))
}

/// A request that a fake server received, with its body as JSON.
struct FakeRequest {
    parts: Parts,
    body: Value,
}

impl FakeRequest {
    fn header(&self, name: &str) -> Option<&str> {
        let value = self.parts.headers.get(name);
        value.map(|it| it.to_str().unwrap())
    }
}

/// A server with scripted responses.
struct FakeServer {
    served: Served,
    requests: Arc<Mutex<Vec<FakeRequest>>>,
}

impl FakeServer {
    /// Starts a server. `respond` receives the number of the request, counted from 0, and the
    /// request.
    async fn start(
        respond: impl Fn(usize, &FakeRequest) -> Response + Clone + Send + Sync + 'static,
    ) -> Self {
        let requests = Arc::<Mutex<Vec<FakeRequest>>>::default();
        let log = Arc::clone(&requests);
        let handler = move |parts: Parts, body: Bytes| async move {
            let body = serde_json::from_slice(&body).unwrap_or_default();
            let request = FakeRequest { parts, body };
            let mut log = log.lock().unwrap();
            let response = respond(log.len(), &request);
            log.push(request);
            response
        };
        let served = Served::start(Router::new().fallback(handler)).await;
        Self { served, requests }
    }

    /// Sends the same response to every request.
    async fn fixed(status: u16, headers: &'static [(&str, &str)], body: impl Into<Bytes>) -> Self {
        let body = body.into();
        Self::start(move |_, _| answer(status, headers, body.clone())).await
    }

    fn url(&self) -> &str {
        &self.served.url
    }

    /// Returns the number of requests.
    fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}
