//! The clients of the library, over a transport that keeps each request and returns the response that
//! a target has set.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lambda_tools::{
    axum::body::Bytes,
    client::{ClientOptions, mcp::McpClient, opentool::OpenToolClient, oxp::OxpClient},
    http::{Request, Response, StatusCode},
};
use serde_json::{Value, json};

use crate::runtime::wait;

/// The id with which a response of MCP refers to its request, whichever id that has.
const ID: u64 = 7;

pub(crate) struct Clients {
    pub(crate) oxp: OxpClient,
    pub(crate) opentool: OpenToolClient,
    /// Of a server before 2026-07-28.
    pub(crate) mcp: McpClient,
    exchange: Arc<Mutex<Exchange>>,
}

/// The last request of a call or a list, and the response to the next one.
#[derive(Default)]
struct Exchange {
    sent: Request<Bytes>,
    status: StatusCode,
    body: Bytes,
}

fn lock(exchange: &Mutex<Exchange>) -> MutexGuard<'_, Exchange> {
    exchange.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Clients {
    pub(crate) fn new() -> Self {
        let exchange = Arc::<Mutex<Exchange>>::default();
        let shared = Arc::clone(&exchange);
        let send = move |request| lock(&shared).response_to(&request);
        let options = ClientOptions::default().attempts(1).transport(send);
        let (url, valid) = ("http://127.0.0.1", "the URL is valid");
        let clients = Self {
            oxp: OxpClient::new(url, options.clone()).expect(valid),
            opentool: OpenToolClient::new(url, options.clone()).expect(valid),
            mcp: McpClient::new(url, options).expect(valid),
            exchange,
        };
        // The connection counts for no input.
        wait(clients.mcp.server()).expect("the server has a revision");
        clients
    }

    /// Sets the response to the next requests.
    pub(crate) fn respond_with(&self, status: u16, body: &[u8]) {
        let mut exchange = lock(&self.exchange);
        exchange.status = StatusCode::from_u16(status).expect("the status is valid");
        exchange.body = Bytes::copy_from_slice(body);
    }

    /// Returns the last request of a call or a list.
    pub(crate) fn sent(&self) -> Request<Bytes> {
        lock(&self.exchange).sent.clone()
    }
}

impl Exchange {
    fn response_to(&mut self, request: &Request<Bytes>) -> Response<Bytes> {
        if request.uri().path() == "/mcp" {
            let message: Value = serde_json::from_slice(request.body()).expect("JSON");
            if let Some(response) = response_of_server(&message) {
                return response;
            }
            self.sent = request.clone();
            return response(self.status, self.body_for(&message["id"]));
        }
        self.sent = request.clone();
        response(self.status, self.body.clone())
    }

    /// Returns the body as a response to the request with this id.
    fn body_for(&self, id: &Value) -> Bytes {
        match serde_json::from_slice::<Value>(&self.body) {
            Ok(mut message) if message.get("id") == Some(&json!(ID)) => {
                message["id"] = id.clone();
                message.to_string().into()
            }
            _ => self.body.clone(),
        }
    }
}

/// Returns the response to a request that says nothing about a call or a first page of tools.
fn response_of_server(message: &Value) -> Option<Response<Bytes>> {
    let result = |result: Value| {
        let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        response(StatusCode::OK, body.to_string().into())
    };
    match message["method"].as_str()? {
        "server/discover" => Some(response(StatusCode::NOT_FOUND, Bytes::new())),
        "initialize" => Some(result(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "fuzzed", "version": "1.0.0"},
        }))),
        "tools/list" if message["params"]["cursor"].is_string() => {
            Some(result(json!({"tools": []})))
        }
        "tools/list" | "tools/call" => None,
        _ => Some(response(StatusCode::ACCEPTED, Bytes::new())),
    }
}

fn response(status: StatusCode, body: Bytes) -> Response<Bytes> {
    let response = Response::builder().status(status);
    let response = response.header("content-type", "application/json");
    response.body(body).expect("the response is valid")
}
