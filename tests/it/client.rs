//! The crate's own clients: against a program of tools, through recordings of what they say, and
//! against servers that misbehave.

mod agent;
mod misbehaving;
mod opentool;
mod oxp;
mod recorded;

use std::{
    future::Future,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Bytes, to_bytes},
    extract::Request,
    http::HeaderMap,
    response::Response,
};

use test_support::answer;

/// What a played server was asked.
#[derive(Clone, Debug)]
struct Asked {
    method: String,
    path: String,
    headers: HeaderMap,
    body: Bytes,
}

/// A server that answers as it is told to, stopped when dropped.
struct Played {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    server: tokio::task::JoinHandle<()>,
}

type Answering = Pin<Box<dyn Future<Output = Response> + Send>>;

impl Played {
    /// `answer` gets the number of the request, from 0 on, and the request.
    async fn start(
        answer: impl Fn(usize, Asked) -> Answering + Clone + Send + Sync + 'static,
    ) -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        let handler = move |request: Request| {
            let (log, answer) = (Arc::clone(&log), answer.clone());
            async move {
                let (parts, body) = request.into_parts();
                let one = Asked {
                    method: parts.method.to_string(),
                    path: parts.uri.to_string(),
                    headers: parts.headers,
                    body: to_bytes(body, 1_000_000).await.unwrap(),
                };
                let number = {
                    let mut log = log.lock().unwrap();
                    log.push(one.clone());
                    log.len() - 1
                };
                answer(number, one).await
            }
        };
        let router = Router::new().fallback(handler);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            address,
            asked,
            server,
        }
    }

    /// The same answer to everything.
    async fn saying(status: u16, headers: &'static [(&str, &str)], body: &'static str) -> Self {
        Self::start(move |_, _| now(answer(status, headers, body))).await
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        self.server.abort();
    }
}

const JSON: &[(&str, &str)] = &[("content-type", "application/json")];

fn now(response: Response) -> Answering {
    Box::pin(async { response })
}
