//! The crate's clients, tested with a tool server, with recorded requests, and with misbehaving
//! servers.

mod hostile;
mod misbehaving;
mod opentool;
mod oxp;
mod recorded;

use std::{
    future::Future,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::{Bytes, to_bytes},
    extract::Request,
    http::HeaderMap,
    response::Response,
};

use lambda_tools::client::{ClientOptions, opentool::OpenToolClient, oxp::OxpClient};
use serde_json::Value;
use test_support::answer;

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

/// A request that a fake server received.
#[derive(Clone, Debug)]
struct FakeRequest {
    method: String,
    path: String,
    headers: HeaderMap,
    body: Bytes,
}

impl FakeRequest {
    /// Decodes the body as JSON; `null` if it is none.
    fn message(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|it| it.to_str().unwrap())
    }
}

/// A server with scripted responses, stopped when dropped.
struct FakeServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<FakeRequest>>>,
    server: tokio::task::JoinHandle<()>,
}

type ResponseFuture = Pin<Box<dyn Future<Output = Response> + Send>>;

impl FakeServer {
    /// Starts a server. `respond` receives the number of the request, counted from 0, and the
    /// request.
    async fn start(
        respond: impl Fn(usize, FakeRequest) -> ResponseFuture + Clone + Send + Sync + 'static,
    ) -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&requests);
        let handler = move |request: Request| {
            let (log, respond) = (Arc::clone(&log), respond.clone());
            async move {
                let (parts, body) = request.into_parts();
                let request = FakeRequest {
                    method: parts.method.to_string(),
                    path: parts.uri.to_string(),
                    headers: parts.headers,
                    body: to_bytes(body, 1_000_000).await.unwrap(),
                };
                let number = {
                    let mut log = log.lock().unwrap();
                    log.push(request.clone());
                    log.len() - 1
                };
                respond(number, request).await
            }
        };
        let router = Router::new().fallback(handler);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            address,
            requests,
            server,
        }
    }

    /// Sends the same response to every request.
    async fn fixed(status: u16, headers: &'static [(&str, &str)], body: impl Into<String>) -> Self {
        let body = body.into();
        Self::start(move |_, _| now(answer(status, headers, body.clone()))).await
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn requests(&self) -> Vec<FakeRequest> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.server.abort();
    }
}

const JSON: &[(&str, &str)] = &[("content-type", "application/json")];

/// Fails instead of waiting for a client whose own limits do not work.
async fn soon<F: Future>(future: F) -> F::Output {
    let limited = tokio::time::timeout(Duration::from_secs(5), future).await;
    limited.expect("the client ends by itself")
}

fn now(response: Response) -> ResponseFuture {
    Box::pin(async { response })
}
