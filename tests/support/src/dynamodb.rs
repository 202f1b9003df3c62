//! A DynamoDB table on a loopback address, for tests of races and faults.
//!
//! Published emulators serve other tests: moto checks a condition and writes in two steps, so that
//! two concurrent requests may both succeed; dynalite does not return the item of a failed
//! condition. This server has the four operations that the library uses. Each checks its condition
//! and writes under one lock, and what the server does not know is an error. A test compares the
//! results with moto's.

mod table;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, HeaderValue, header::AUTHORIZATION},
    response::Response,
};
use serde_json::Value;

use tokio::sync::Notify;

use crate::{Served, answer};
use table::{ApiError, Operation, Table};

/// The server. It stops when dropped.
pub struct DynamoDb {
    served: Served,
    service: Arc<Service>,
}

struct Service {
    name: String,
    table: Table,
    /// The number of writes of whole items so far.
    writes: AtomicUsize,
    stall: Option<Stall>,
}

/// A write that gets no response.
struct Stall {
    nth: usize,
    is_applied: bool,
    reached: Notify,
}

impl DynamoDb {
    /// Starts a server with one table, which is empty.
    pub async fn start(table: &str) -> Self {
        Self::start_with(table, None).await
    }

    /// Starts a server that does not respond to one of the writes of items, which it applies or not.
    pub async fn stalling(table: &str, nth: usize, is_applied: bool) -> Self {
        let reached = Notify::new();
        let stall = Stall {
            nth,
            is_applied,
            reached,
        };
        Self::start_with(table, Some(stall)).await
    }

    async fn start_with(table: &str, stall: Option<Stall>) -> Self {
        let service = Arc::new(Service {
            name: table.to_owned(),
            table: Table::default(),
            writes: AtomicUsize::new(0),
            stall,
        });
        let router = Router::new().fallback(respond);
        let served = Served::start(router.with_state(Arc::clone(&service))).await;
        Self { served, service }
    }

    /// Waits for the write that gets no response.
    pub async fn stalled(&self) {
        let stall = self.service.stall.as_ref();
        stall.expect("it stalls").reached.notified().await;
    }

    /// Returns its URL, for `AWS_ENDPOINT_URL_DYNAMODB`.
    pub fn url(&self) -> String {
        self.served.url.clone()
    }

    /// Returns all items of the table, as JSON, by their ids.
    pub fn items(&self) -> Vec<Value> {
        self.service.table.all()
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.items().len()
    }

    /// Returns true if the table has no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

async fn respond(State(service): State<Arc<Service>>, headers: HeaderMap, body: Bytes) -> Response {
    // A task of its own goes on when the client closes the connection.
    let handled = tokio::spawn(async move { service.handle(&headers, &body).await });
    let (status, body) = match handled.await.unwrap() {
        Ok(body) => (200, body),
        Err(error) => (error.status, error.body),
    };
    let headers = [("content-type", "application/x-amz-json-1.0")];
    answer(status, &headers, body.to_string())
}

impl Service {
    async fn handle(&self, headers: &HeaderMap, body: &[u8]) -> Result<Value, ApiError> {
        let (operation, body) = self.decode(headers, body)?;
        let is_stalled = |it: &&Stall| {
            operation == Operation::Put && self.writes.fetch_add(1, Ordering::SeqCst) + 1 == it.nth
        };
        let Some(stall) = self.stall.as_ref().filter(is_stalled) else {
            return self.table.apply(operation, &body);
        };
        if stall.is_applied {
            self.table.apply(operation, &body)?;
        }
        stall.reached.notify_one();
        // Until the client closes the connection.
        std::future::pending().await
    }

    fn decode(&self, headers: &HeaderMap, body: &[u8]) -> Result<(Operation, Value), ApiError> {
        let target = headers["x-amz-target"].to_str().unwrap_or_default();
        let operation = match target {
            "DynamoDB_20120810.GetItem" => Operation::Get,
            "DynamoDB_20120810.PutItem" => Operation::Put,
            "DynamoDB_20120810.UpdateItem" => Operation::Update,
            "DynamoDB_20120810.DeleteItem" => Operation::Delete,
            _ => return Err(ApiError::unsupported(&format!("the operation '{target}'"))),
        };
        let credential = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        if credential.is_none_or(|it| !it.starts_with(b"AWS4-HMAC-SHA256 Credential=")) {
            return Err(ApiError::unsupported("requests without a signature"));
        }
        let body: Value = serde_json::from_slice(body).unwrap();
        if body["TableName"] != *self.name {
            return Err(ApiError::unsupported("another table"));
        }
        Ok((operation, body))
    }
}
