//! A DynamoDB table on a loopback address, for tests of races and faults.
//!
//! Published emulators serve other tests: moto checks a condition and writes in two steps, so that
//! two concurrent requests may both succeed; dynalite does not return the item of a failed
//! condition. This server has the four operations that the library uses. Each checks its condition
//! and writes under one lock, and what the server does not know is an error. An [`Interceptor`] can
//! delay requests and withhold responses. A test compares the results with moto's.

mod interceptor;
mod table;

use std::sync::Arc;

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, header::AUTHORIZATION},
    response::Response,
};
use serde_json::Value;

use crate::{Served, answer};
use interceptor::Nothing;
pub use interceptor::{
    Applied, Interception, Interceptor, OnRequest, OnResponse, Operation, Request,
};
use table::{ApiError, Table};

/// The server. It stops when dropped.
pub struct DynamoDb {
    served: Served,
    state: Arc<Table>,
}

struct Service {
    name: String,
    table: Arc<Table>,
    interceptor: Arc<dyn Interceptor>,
}

impl DynamoDb {
    /// Starts a server with one table, which is empty.
    pub async fn start(table: &str) -> Self {
        Self::intercepted(table, Arc::new(Nothing)).await
    }

    /// Starts the same, with an interceptor of its requests.
    pub async fn intercepted(table: &str, interceptor: Arc<dyn Interceptor>) -> Self {
        let state = Arc::<Table>::default();
        let service = Arc::new(Service {
            name: table.to_owned(),
            table: Arc::clone(&state),
            interceptor,
        });
        let router = Router::new().fallback(respond).with_state(service);
        let served = Served::start(router).await;
        Self { served, state }
    }

    /// Returns its URL, for `AWS_ENDPOINT_URL_DYNAMODB`.
    pub fn url(&self) -> String {
        self.served.url.clone()
    }

    /// Returns all items of the table, as JSON, by their ids.
    pub fn items(&self) -> Vec<Value> {
        self.state.all()
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
    let (status, body) = handled.await.unwrap();
    let headers = [("content-type", "application/x-amz-json-1.0")];
    answer(status, &headers, body.to_string())
}

impl Service {
    async fn handle(&self, headers: &HeaderMap, body: &[u8]) -> (u16, Value) {
        let request = match self.decode(headers, body) {
            Ok(request) => request,
            Err(error) => return (error.status, error.body),
        };
        let OnRequest::Apply = self.interceptor.on_request(&request).await;
        let applied = match self.table.apply(request.operation, &request.body) {
            Ok(body) => Applied {
                status: 200,
                body,
                has_written: request.operation != Operation::GetItem,
            },
            Err(error) => Applied {
                status: error.status,
                body: error.body,
                has_written: false,
            },
        };
        match self.interceptor.on_response(&request, &applied).await {
            OnResponse::Send => (applied.status, applied.body),
            // Until the client closes the connection.
            OnResponse::Ignore => std::future::pending().await,
        }
    }

    fn decode(&self, headers: &HeaderMap, body: &[u8]) -> Result<Request, ApiError> {
        let target = headers["x-amz-target"].to_str().unwrap_or_default();
        let operation = match target {
            "DynamoDB_20120810.GetItem" => Operation::GetItem,
            "DynamoDB_20120810.PutItem" => Operation::PutItem,
            "DynamoDB_20120810.UpdateItem" => Operation::UpdateItem,
            "DynamoDB_20120810.DeleteItem" => Operation::DeleteItem,
            _ => return Err(ApiError::unsupported(&format!("the operation '{target}'"))),
        };
        let credential = headers.get(AUTHORIZATION).map(|it| it.as_bytes());
        if credential.is_none_or(|it| !it.starts_with(b"AWS4-HMAC-SHA256 Credential=")) {
            return Err(ApiError::unsupported("requests without a signature"));
        }
        let body: Value = serde_json::from_slice(body).unwrap();
        if body["TableName"] != *self.name {
            return Err(ApiError::unsupported("another table"));
        }
        Ok(Request { operation, body })
    }
}
