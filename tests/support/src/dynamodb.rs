//! A DynamoDB table on a loopback address, for tests of races and faults.
//!
//! Published emulators serve other tests: moto checks a condition and writes in two steps, so that
//! two concurrent requests may both succeed; dynalite does not return the item of a failed
//! condition. This server has the four operations that the library uses. Each checks its condition
//! and writes under one lock, and what the server does not know is an error. A test compares the
//! results with moto's.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, HeaderValue, header::AUTHORIZATION},
    response::Response,
};
use serde_json::{Map, Value, json};

use crate::{Served, answer};

/// The server. It stops when dropped.
pub struct DynamoDb {
    served: Served,
    service: Arc<Service>,
}

struct Service {
    name: String,
    table: Table,
}

impl DynamoDb {
    /// Starts a server with one table, which is empty.
    pub async fn start(table: &str) -> Self {
        let service = Arc::new(Service {
            name: table.to_owned(),
            table: Table::default(),
        });
        let router = Router::new().fallback(respond);
        let served = Served::start(router.with_state(Arc::clone(&service))).await;
        Self { served, service }
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
    let (status, body) = match service.handle(&headers, &body) {
        Ok(body) => (200, body),
        Err(error) => (error.status, error.body),
    };
    let headers = [("content-type", "application/x-amz-json-1.0")];
    answer(status, &headers, body.to_string())
}

impl Service {
    fn handle(&self, headers: &HeaderMap, body: &[u8]) -> Result<Value, ApiError> {
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
        self.table.apply(operation, &body)
    }
}

/// An operation of DynamoDB.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Get,
    Put,
    Update,
    Delete,
}

/// An item, in the format of requests and responses: each attribute is an object with its type.
type Item = Map<String, Value>;

/// An error that a request gets instead of a result.
struct ApiError {
    status: u16,
    body: Value,
}

impl ApiError {
    /// Creates the error for a request that DynamoDB may support and this server does not. No AWS
    /// client retries its status.
    fn unsupported(what: &str) -> Self {
        let message = format!("the test's DynamoDB does not support {what}");
        eprintln!("{message}");
        let body = json!({"__type": "UnsupportedByTheTest", "message": message});
        Self { status: 501, body }
    }

    fn condition_failed(item: Option<&Item>) -> Self {
        let kind = "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException";
        let mut body = json!({"__type": kind, "message": "The conditional request failed"});
        if let Some(item) = item {
            body["Item"] = json!(item);
        }
        Self { status: 400, body }
    }
}

/// The items, by the partition key `id`, a string. There is no sort key.
#[derive(Default)]
struct Table {
    /// Held from the check of a condition until the write: no other request comes between.
    items: Mutex<BTreeMap<String, Item>>,
}

impl Table {
    fn items(&self) -> MutexGuard<'_, BTreeMap<String, Item>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all items, by their ids.
    fn all(&self) -> Vec<Value> {
        self.items().values().map(|item| json!(item)).collect()
    }

    /// Carries out a request on this table.
    fn apply(&self, operation: Operation, body: &Value) -> Result<Value, ApiError> {
        check_parameters(operation, body)?;
        let key = match operation {
            Operation::Put => &body["Item"],
            _ => &body["Key"],
        };
        let id = key["id"]["S"].as_str().filter(|it| !it.is_empty());
        let id = id.ok_or_else(|| ApiError::unsupported("a key without the text 'id'"))?;
        let mut items = self.items();
        let current = items.get(id);
        if operation == Operation::Get {
            return Ok(current.map_or_else(|| json!({}), |item| json!({"Item": item})));
        }
        // Every write of the library has a condition; without one, it could replace anything.
        let condition = body["ConditionExpression"].as_str().unwrap_or_default();
        if !is_met(condition, current, &body["ExpressionAttributeValues"])? {
            let is_returned = body["ReturnValuesOnConditionCheckFailure"] == "ALL_OLD";
            return Err(ApiError::condition_failed(current.filter(|_| is_returned)));
        }
        let next = match operation {
            Operation::Put => body["Item"].as_object().cloned(),
            Operation::Update => Some(counted(current, body)?),
            _ => None,
        };
        match next {
            Some(item) => items.insert(id.to_owned(), item),
            None => items.remove(id),
        };
        Ok(json!({}))
    }
}

/// Returns a number of an item. DynamoDB writes numbers as texts.
fn number(attribute: &Value) -> Option<u64> {
    attribute["N"].as_str()?.parse().ok()
}

/// Returns true if the current item, or its absence, meets a condition. No comparison with an absent
/// attribute is met.
fn is_met(condition: &str, item: Option<&Item>, values: &Value) -> Result<bool, ApiError> {
    let current = |name: &str| item.and_then(|it| number(it.get(name)?));
    let value = |name: &str| number(&values[name]);
    let is_reached = |time: &str, now: &str| current(time).is_some_and(|it| Some(it) <= value(now));
    match condition {
        "version = :version" => Ok(item.is_some() && current("version") == value(":version")),
        "attribute_not_exists(id) OR free_at <= :now \
         OR (attribute_not_exists(free_at) AND expires_at <= :seconds)" => Ok(item.is_none()
            || is_reached("free_at", ":now")
            || (current("free_at").is_none() && is_reached("expires_at", ":seconds"))),
        "attribute_not_exists(#count) OR #count < :limit" => {
            Ok(current("count").is_none_or(|it| Some(it) < value(":limit")))
        }
        other => Err(ApiError::unsupported(&format!("the condition '{other}'"))),
    }
}

/// Returns the item after its number was raised. An absent number counts as zero.
fn counted(current: Option<&Item>, body: &Value) -> Result<Item, ApiError> {
    let update = body["UpdateExpression"].as_str().unwrap_or_default();
    let is_known = update == "ADD #count :one SET expires_at = :expires, version = :version";
    if !is_known || body["ExpressionAttributeNames"] != json!({"#count": "count"}) {
        return Err(ApiError::unsupported(&format!("the update '{update}'")));
    }
    let values = &body["ExpressionAttributeValues"];
    let mut item = current.cloned().unwrap_or_default();
    let count = item.get("count").and_then(number).unwrap_or(0) + number(&values[":one"]).unwrap();
    item.insert("id".to_owned(), body["Key"]["id"].clone());
    item.insert("count".to_owned(), json!({"N": count.to_string()}));
    item.insert("expires_at".to_owned(), values[":expires"].clone());
    item.insert("version".to_owned(), values[":version"].clone());
    Ok(item)
}

/// Refuses parameters that this table would ignore.
fn check_parameters(operation: Operation, body: &Value) -> Result<(), ApiError> {
    let own: &[&str] = match operation {
        // Here every read is consistent, in DynamoDB only those that ask for it.
        Operation::Get if body["ConsistentRead"] == true => &["Key", "ConsistentRead"],
        Operation::Get => return Err(ApiError::unsupported("reads that are not consistent")),
        Operation::Put => &["Item", "ReturnValuesOnConditionCheckFailure"],
        Operation::Delete => &["Key"],
        Operation::Update => &["Key", "ExpressionAttributeNames", "UpdateExpression"],
    };
    let shared = [
        "TableName",
        "ConditionExpression",
        "ExpressionAttributeValues",
    ];
    let mut names = body.as_object().into_iter().flat_map(Map::keys);
    match names.find(|name| !own.contains(&&***name) && !shared.contains(&&***name)) {
        Some(unknown) => Err(ApiError::unsupported(&format!("the parameter {unknown}"))),
        None => Ok(()),
    }
}
