//! Requests that the table rejects: those that moto rejects too, and those that only this table does
//! not know.

use serde_json::{Value, json};
use test_support::{aws::Emulator, dynamodb::DynamoDb};

use super::{ABSENT, TABLE, put, send};

/// An item of this size: its names and texts have four bytes more than the long text.
fn item_of(size: usize) -> Value {
    json!({"id": {"S": "k"}, "v": {"S": "x".repeat(size - 4)}})
}

/// Requests, and the errors that they get.
fn requests() -> Vec<(&'static str, Value, &'static str)> {
    const INVALID: &str = "ValidationException";
    const CONFLICT: &str = "ConditionalCheckFailedException";
    let compared = |condition: &str| {
        let mut put = put(&json!({"id": {"S": "compared"}}));
        put["ConditionExpression"] = condition.into();
        put["ExpressionAttributeValues"] = json!({":one": {"N": "1"}});
        put
    };
    let get =
        |table: &str, key: Value| json!({"TableName": table, "Key": key, "ConsistentRead": true});
    let key = json!({"id": {"S": "k"}});
    let delete = json!({"TableName": TABLE, "Key": key, "ConditionExpression": ABSENT});
    vec![
        // moto's limit is 405,000 bytes.
        ("PutItem", put(&item_of(404_000)), ""),
        ("PutItem", put(&item_of(411_000)), INVALID),
        ("PutItem", put(&key), CONFLICT),
        ("PutItem", put(&json!({"v": {"S": "k"}})), INVALID),
        ("PutItem", put(&json!({"id": {"N": "1"}})), INVALID),
        ("PutItem", put(&json!({"id": {"S": ""}})), INVALID),
        (
            "PutItem",
            put(&json!({"id": {"S": "x".repeat(2049)}})),
            INVALID,
        ),
        ("PutItem", compared("id = :one"), CONFLICT),
        (
            "GetItem",
            get("none", key.clone()),
            "ResourceNotFoundException",
        ),
        ("GetItem", get(TABLE, json!({"other": {"S": "k"}})), INVALID),
        ("DeleteItem", delete, CONFLICT),
    ]
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn invalid_requests_get_the_errors_that_moto_returns() {
    let (emulator, table) = (Emulator::start().await, DynamoDb::start(TABLE).await);
    emulator.proxy().await.create_table(TABLE).await;
    for (operation, body, error) in requests() {
        let status = if error.is_empty() { 200 } else { 400 };
        let expected = Some((status, error.to_owned()));
        let text: String = body.to_string().chars().take(200).collect();
        for url in [&*table.url(), emulator.url()] {
            let result = send(url, operation, &body).await;
            assert_eq!(result, expected, "{url}: {operation} {text}");
        }
    }
}

#[tokio::test]
async fn what_the_table_does_not_know_is_an_error() {
    let table = DynamoDb::start(TABLE).await;
    for condition in [
        "version <> :v",
        "version = :v OR size(id) > :v",
        "a.b = :v",
        "(version = :v",
        "version = :v version",
        "",
    ] {
        let mut put = put(&json!({"id": {"S": "k"}}));
        put["ConditionExpression"] = condition.into();
        put["ExpressionAttributeValues"] = json!({":v": {"N": "1"}});
        let (status, _) = send(&table.url(), "PutItem", &put).await.unwrap();
        assert_eq!(status, 501, "{condition}");
    }
    let item = json!({"id": {"S": "k"}});
    for (operation, body) in [
        ("Scan", json!({"TableName": TABLE})),
        ("GetItem", json!({"TableName": TABLE, "Key": item})),
        ("PutItem", json!({"TableName": TABLE, "Item": item})),
        ("PutItem", put(&json!({"id": {"S": "k"}, "v": {"L": []}}))),
        (
            "PutItem",
            put(&json!({"id": {"S": "k"}, "v": {"N": "1.5"}})),
        ),
        (
            "DeleteItem",
            json!({"TableName": TABLE, "Key": item, "ReturnValues": "ALL_OLD"}),
        ),
    ] {
        let (status, _) = send(&table.url(), operation, &body).await.unwrap();
        assert_eq!(status, 501, "{operation} {body}");
    }
    assert!(table.is_empty());
}
