//! A DynamoDB table on a loopback address, for tests of races and faults.
//!
//! Published emulators serve other tests: moto checks a condition and writes in two steps, so that
//! two concurrent requests may both succeed; dynalite does not return the item of a failed
//! condition. This server has the four operations that the library uses. Each checks its condition
//! and writes under one lock, and what the server does not know is an error. An [`Interceptor`] can
//! lose and delay requests. A test compares the results with moto's.

mod condition;
mod error;
mod interceptor;
mod item;
mod table;
mod update;

use std::{net::SocketAddr, sync::Arc};

use axum::body::{Body, to_bytes};
use hyper::{
    Response, body::Incoming, header::HeaderMap, server::conn::http1, service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinHandle};

use error::ApiError;
use interceptor::Nothing;
pub use interceptor::{
    Applied, Interception, Interceptor, OnRequest, OnResponse, Operation, Request,
};
use table::Table;

/// The largest request.
const LARGEST_REQUEST: usize = 1 << 20;

/// The server. It stops when dropped.
pub struct DynamoDb {
    address: SocketAddr,
    state: Arc<State>,
    server: JoinHandle<()>,
}

struct State {
    name: String,
    table: Table,
    interceptor: Arc<dyn Interceptor>,
}

impl DynamoDb {
    /// Starts a server with one table, which is empty.
    pub async fn start(table: &str) -> Self {
        Self::intercepted(table, Arc::new(Nothing)).await
    }

    /// Starts the same, with an interceptor of its requests.
    pub async fn intercepted(table: &str, interceptor: Arc<dyn Interceptor>) -> Self {
        let state = Arc::new(State {
            name: table.to_owned(),
            table: Table::default(),
            interceptor,
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(accept(listener, Arc::clone(&state)));
        Self {
            address,
            state,
            server,
        }
    }

    /// Returns its URL, for `AWS_ENDPOINT_URL_DYNAMODB`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns all items of the table, as JSON, by their ids.
    pub fn items(&self) -> Vec<Value> {
        self.state.table.all()
    }

    /// Changes an item, as nobody does but a test that cannot wait.
    pub fn change(&self, id: &str, change: impl FnOnce(&mut Value)) {
        self.state.table.change(id, change);
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.state.table.len()
    }

    /// Returns true if the table has no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Drop for DynamoDb {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    // Aborts the connections when the server is aborted.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let _ = stream.set_nodelay(true);
        let state = Arc::clone(&state);
        let service = service_fn(move |request| respond(Arc::clone(&state), request));
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        connections.spawn(async { drop(connection.await) });
    }
}

/// The reason for closing a connection without a response.
type Closed = Box<dyn std::error::Error + Send + Sync>;

async fn respond(
    state: Arc<State>,
    request: hyper::Request<Incoming>,
) -> Result<Response<Body>, Closed> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(Body::new(body), LARGEST_REQUEST).await?;
    // A task of its own goes on when the client closes the connection.
    let handled = tokio::spawn(async move { state.handle(&parts.headers, &body).await });
    let (status, body) = match handled.await? {
        Reply::Send(status, body) => (status, body),
        Reply::Close => return Err("closed by the test".into()),
        // Until the client closes the connection.
        Reply::Nothing => std::future::pending().await,
    };
    let response = Response::builder()
        .status(status)
        .header("content-type", "application/x-amz-json-1.0")
        .header(
            "x-amzn-requestid",
            "0000000000000000000000000000000000000000000000000000",
        );
    Ok(response.body(Body::from(body.to_string()))?)
}

impl State {
    async fn handle(&self, headers: &HeaderMap, body: &[u8]) -> Reply {
        let request = match self.decode(headers, body) {
            Ok(request) => request,
            Err(error) => return error.into(),
        };
        if self.interceptor.on_request(&request).await == OnRequest::Lose {
            return Reply::Close;
        }
        let applied = self.apply(&request);
        match self.interceptor.on_response(&request, &applied).await {
            OnResponse::Send => Reply::Send(applied.status, applied.body),
            OnResponse::Lose => Reply::Close,
            OnResponse::Ignore => Reply::Nothing,
        }
    }

    fn decode(&self, headers: &HeaderMap, body: &[u8]) -> Result<Request, ApiError> {
        let header = |name: &str| headers.get(name).and_then(|it| it.to_str().ok());
        let target = header("x-amz-target").unwrap_or_default();
        let operation = match target {
            "DynamoDB_20120810.GetItem" => Operation::GetItem,
            "DynamoDB_20120810.PutItem" => Operation::PutItem,
            "DynamoDB_20120810.UpdateItem" => Operation::UpdateItem,
            "DynamoDB_20120810.DeleteItem" => Operation::DeleteItem,
            _ => return Err(ApiError::unsupported(format!("the operation '{target}'"))),
        };
        header("authorization")
            .filter(|it| it.starts_with("AWS4-HMAC-SHA256 Credential="))
            .ok_or_else(ApiError::missing_token)?;
        let body: Value = serde_json::from_slice(body)
            .map_err(|_| ApiError::serialization("the body is no JSON"))?;
        if body["TableName"] != *self.name {
            return Err(ApiError::no_table());
        }
        Ok(Request { operation, body })
    }

    fn apply(&self, request: &Request) -> Applied {
        match self.table.apply(request.operation, &request.body) {
            Ok(body) => Applied {
                status: 200,
                body,
                has_written: request.operation != Operation::GetItem,
            },
            Err(error) => Applied {
                status: error.status,
                body: error.body(),
                has_written: false,
            },
        }
    }
}

/// The end of a request.
enum Reply {
    Send(u16, Value),
    /// Closes the connection.
    Close,
    /// Leaves the connection open.
    Nothing,
}

impl From<ApiError> for Reply {
    fn from(error: ApiError) -> Self {
        Self::Send(error.status, error.body())
    }
}
