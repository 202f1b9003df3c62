//! The table that tests of races and faults use, compared with moto, on which no test may race.

mod invalid_requests;
mod operations;
mod treatments;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lambda_tools::{
    idempotency::DynamoDb as LibraryStore,
    store::{PutOutcome, Record, Store},
};
use serde_json::{Value, json};
use test_support::dynamodb::DynamoDb;

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

#[tokio::test(flavor = "multi_thread")]
async fn of_concurrent_claims_one_is_written() {
    let table = DynamoDb::start(TABLE).await;
    for round in 0..20 {
        let mut claims = tokio::task::JoinSet::new();
        for version in 0..16 {
            let (store, id) = (store_at(&table.url()), format!("round-{round}"));
            let record = Record {
                version,
                fields: Vec::new(),
                eviction: None,
                free_at: Some(at(5000)),
                expires_at: at(5000),
            };
            claims.spawn(async move {
                let outcome = store.put(&id, &record, None, at(1000)).await.unwrap();
                outcome == PutOutcome::Written
            });
        }
        let written = claims.join_all().await.into_iter().filter(|it| *it).count();
        assert_eq!(written, 1);
    }
}

#[tokio::test]
async fn expired_items_remain_until_they_are_deleted() {
    let table = DynamoDb::start(TABLE).await;
    for seconds in ["10", "11"] {
        let item = json!({"id": {"S": seconds}, "expires_at": {"N": seconds}});
        let sent = send(&table.url(), "PutItem", &put(&item)).await;
        assert_eq!(sent, Some((200, String::new())));
    }
    assert_eq!((table.len(), table.delete_expired(at(9_999))), (2, 0));
    assert_eq!((table.delete_expired(at(10_000)), table.len()), (1, 1));
    assert_eq!(table.items()[0]["id"]["S"], "11");
}
