//! Deduplication on DynamoDB: its requests, its items, and failures of the store.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD as STANDARD};
use lambda_tools::idempotency::{DynamoDb, Idempotency};
use serde_json::{Value, json};
use test_support::aws::{AwsProxy, Emulator};

use super::{Fixture, assert_concurrent_repeats_run_once, assert_expires, error_of, is_replay};
use crate::aws;

/// An emulator of `DynamoDB` with a table.
struct Stores {
    proxy: AwsProxy,
    emulator: Emulator,
}

impl Stores {
    async fn start() -> Self {
        let emulator = Emulator::start().await;
        let proxy = emulator.proxy().await;
        proxy.create_table("calls").await;
        Self { proxy, emulator }
    }

    fn dynamodb(&self) -> Idempotency {
        Idempotency::in_store(DynamoDb::new("calls").client(aws::dynamodb(&self.proxy)))
    }
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn a_call_has_one_effect() {
    let stores = Stores::start().await;
    assert_expires(stores.dynamodb()).await;
    Box::pin(assert_concurrent_repeats_run_once(&stores.dynamodb())).await;
}

/// The outcome does not fit into an item.
#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn a_call_whose_outcome_is_too_large_to_store_does_not_run_again() {
    let stores = Stores::start().await;
    let fixture = Fixture::new(&stores.dynamodb());
    let input = json!({"value": "x".repeat(410_000)});
    let first = fixture.call("Act.Do", "large", input.clone()).await;
    assert_eq!(first.body["value"], input["value"], "the caller gets it");
    let again = fixture.call("Act.Do", "large", input).await;
    assert_eq!((is_replay(&again), fixture.effects()), (true, 1));
    let error = error_of(&again);
    assert_eq!(error["can_retry"], false);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("has run"), "{error}");
}

/// Returns the size of an item in bytes, as DynamoDB documents it: the UTF-8 of names and texts,
/// bytes as they are, and for a number at most one byte for two digits and one more.
fn size_of(item: &Value) -> usize {
    let attributes = item.as_object().unwrap().iter();
    let sizes = attributes.map(|(name, value)| {
        let (kind, value) = value.as_object().unwrap().iter().next().unwrap();
        let size = match (&**kind, value) {
            ("S", Value::String(text)) => text.len(),
            ("N", Value::String(digits)) => digits.len().div_ceil(2) + 1,
            ("B", Value::String(base64)) => STANDARD.decode(base64).unwrap().len(),
            ("BOOL", Value::Bool(_)) => 1,
            other => panic!("{other:?}"),
        };
        name.len() + size
    });
    sizes.sum()
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn a_call_costs_two_small_writes_and_a_replay_one() {
    let stores = Stores::start().await;
    let (proxy, fixture) = (&stores.proxy, Fixture::new(&stores.dynamodb()));
    for (call_id, value, largest) in [
        ("sum", json!(8.5), 270),
        ("text", json!("x".repeat(300)), 570),
        // The size that the documentation states.
        ("longer", json!("x".repeat(700)), 1024),
    ] {
        fixture
            .call("Act.Do", call_id, json!({"value": value}))
            .await;
        let requests = proxy.take_requests();
        assert_eq!(requests.len(), 2);
        for (action, request) in requests {
            let size = size_of(&request["Item"]);
            assert!(action == "PutItem" && size <= largest, "{call_id}: {size}");
        }
    }
    let retry = json!({"then": "retry"});
    for (tool, id, input, actions) in [
        ("Act.Do", "sum", json!({"value": 8.5}), &["PutItem"][..]),
        ("Act.Do", "retry", retry, &["PutItem", "DeleteItem"]),
        ("Act.Again", "sum", json!({}), &[]),
    ] {
        fixture.call(tool, id, input).await;
        assert_eq!(proxy.take_actions(), actions, "{tool} {id}");
    }
    for item in proxy.items("calls").await {
        // The time of the recorded events in seconds, plus an hour.
        assert_eq!(item["expires_at"]["N"], "1696510800");
        // Ids chosen by callers are hashed.
        assert_eq!(item["id"]["S"].as_str().unwrap().len(), 64);
    }
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn without_the_store_no_call_runs_unless_best_effort_is_set() {
    let mut stores = Stores::start().await;
    let proxy = &stores.proxy;
    let strict = Fixture::new(&stores.dynamodb());
    for (code, what) in [
        (
            "AccessDeniedException",
            "allow dynamodb:PutItem on the table 'calls'",
        ),
        ("ResourceNotFoundException", "there is no table 'calls'"),
        (
            "ValidationException",
            "the string 'id' as its partition key",
        ),
        ("ThrottlingException", "throttled"),
        ("InternalServerError", "not available"),
    ] {
        proxy.fail_with(400, code, "");
        let reply = strict.call("Act.Do", "down", json!({})).await;
        assert_eq!((reply.status, strict.effects()), (400, 0));
        let message = "The tool server is temporarily unavailable";
        assert_eq!(reply.body["message"], message);
        let detail = reply.body["developer_message"].as_str().unwrap();
        assert!(detail.contains(what), "{detail}");
    }
    // A call that needs no record needs no store.
    let reply = strict.call("Act.Again", "down", json!({})).await;
    assert_eq!((reply.status, strict.effects()), (200, 1));
    proxy.open();
    stores.emulator.stop();
    let hasty = stores.dynamodb().timeout(Duration::from_millis(300));
    for (idempotency, status) in [(hasty.clone(), 400), (hasty.best_effort(), 200)] {
        let fixture = Fixture::new(&idempotency);
        for run in 1..3 {
            let reply = fixture.call("Act.Do", "down", json!({})).await;
            assert_eq!(reply.status, status);
            assert_eq!(fixture.effects(), if status == 200 { run } else { 0 });
        }
    }
}
