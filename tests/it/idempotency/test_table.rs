//! The table that tests of races and faults use, compared with moto, on which no test may race.

mod invalid_requests;
mod operations;
mod treatments;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lambda_tools::idempotency::DynamoDb as LibraryStore;
use serde_json::{Value, json};

use crate::aws;

const TABLE: &str = "calls";

fn at(ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms)
}

fn store_at(url: &str) -> LibraryStore {
    LibraryStore::new(TABLE).client(aws::dynamodb_at(url))
}

/// Sends a request without an AWS client; returns the status and the error's name.
async fn send(url: &str, operation: &str, body: &Value) -> Option<(u16, String)> {
    let credential = "test/20260101/us-east-1/dynamodb/aws4_request";
    let request = reqwest::Client::new()
        .post(url)
        .header("x-amz-target", format!("DynamoDB_20120810.{operation}"))
        .header("content-type", "application/x-amz-json-1.0")
        .header(
            "authorization",
            format!("AWS4-HMAC-SHA256 Credential={credential}"),
        )
        .timeout(Duration::from_secs(5))
        .body(body.to_string());
    let response = request.send().await.ok()?;
    let status = response.status().as_u16();
    let body: Value = response.json().await.ok()?;
    let kind = body["__type"].as_str().unwrap_or_default();
    let kind = kind.rsplit('#').next().unwrap_or_default();
    Some((status, kind.to_owned()))
}

const ABSENT: &str = "attribute_not_exists(id)";

fn put(item: &Value) -> Value {
    json!({"TableName": TABLE, "Item": item, "ConditionExpression": ABSENT})
}
