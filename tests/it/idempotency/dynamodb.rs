//! Deduplication on DynamoDB: its requests, its items, and failures of the store.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD as STANDARD};
use lambda_tools::idempotency::{DynamoDb, Idempotency};
use serde_json::{Value, json};
use test_support::aws::{AwsProxy, Emulator};

use super::{Fixture, assert_concurrent_repeats_run_once, assert_expires, assert_replays};
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
    assert_replays(&stores.dynamodb()).await;
    assert_expires(stores.dynamodb()).await;
    assert_concurrent_repeats_run_once(&stores.dynamodb()).await;
}

/// The outcome does not fit into an item.
#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn a_call_whose_outcome_is_too_large_to_store_does_not_run_again() {
    let stores = Stores::start().await;
    let fixture = Fixture::new(&stores.dynamodb());
    let input = json!({"value": "x".repeat(410_000)});
    let first = fixture.call("Act.Do", "large", input.clone()).await;
    assert_eq!(first.json()["value"], input["value"], "the caller gets it");
    let again = fixture.call("Act.Do", "large", input).await;
    assert_eq!((again.is_replay, fixture.effects()), (true, 1));
    let error = again.error();
    assert_eq!(error["can_retry"], false);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("has run"), "{error}");
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn a_new_call_costs_two_writes_and_a_replay_one() {
    let stores = Stores::start().await;
    let proxy = &stores.proxy;
    let fixture = Fixture::new(&stores.dynamodb());
    let actions = || {
        proxy
            .take_requests()
            .into_iter()
            .map(|(it, _)| it)
            .collect::<Vec<_>>()
    };
    fixture.call("Act.Do", "cost", json!({})).await;
    assert_eq!(actions(), ["PutItem", "PutItem"]);
    fixture.call("Act.Do", "cost", json!({})).await;
    assert_eq!(actions(), ["PutItem"]);
    fixture
        .call("Act.Do", "cost-retry", json!({"then": "retry"}))
        .await;
    assert_eq!(actions(), ["PutItem", "DeleteItem"]);
    fixture.call("Act.Again", "cost", json!({})).await;
    assert_eq!(actions(), [""; 0]);
    let items = proxy.items("calls").await;
    let item = &items[0];
    // The time of the recorded events in seconds, plus an hour.
    assert_eq!(item["expires_at"]["N"], "1696510800");
    let id = format!("{:?}", item["id"]);
    assert!(
        !id.contains("cost"),
        "ids chosen by callers are hashed: {id}"
    );
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
async fn the_records_of_small_outcomes_take_one_write_unit() {
    let stores = Stores::start().await;
    let fixture = Fixture::new(&stores.dynamodb());
    for (call_id, value, largest) in [
        ("sum", json!(8.5), 270),
        ("text", json!("x".repeat(300)), 570),
        // The size that the documentation states.
        ("longer", json!("x".repeat(700)), 1024),
    ] {
        fixture
            .call("Act.Do", call_id, json!({"value": value}))
            .await;
        let requests = stores.proxy.take_requests();
        let sizes: Vec<_> = requests
            .iter()
            .map(|(_, it)| size_of(&it["Item"]))
            .collect();
        println!("{call_id}: {sizes:?}");
        assert_eq!(sizes.len(), 2);
        let is_small = sizes.iter().all(|size| *size <= largest);
        assert!(is_small, "{call_id}: {sizes:?}");
    }
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn a_write_whose_response_is_lost_counts_once() {
    let stores = Stores::start().await;
    let fixture = Fixture::new(&stores.dynamodb());
    stores.proxy.lose_next_response();
    let first = fixture.call("Act.Do", "lost", json!({"value": 1})).await;
    assert_eq!(
        first.json()["value"],
        1,
        "the function recognizes its own claim"
    );
    assert_eq!(stores.proxy.take_requests().len(), 3);
    let again = fixture.call("Act.Do", "lost", json!({"value": 1})).await;
    assert_eq!((again.is_replay, fixture.effects()), (true, 1));
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn without_the_store_no_call_runs_unless_best_effort_is_set() {
    let mut stores = Stores::start().await;
    let proxy = &stores.proxy;
    let strict = Fixture::new(&stores.dynamodb());
    let detail_of = async |code: &str| {
        proxy.fail_with(400, code, "");
        let reply = strict.call("Act.Do", "down", json!({})).await;
        assert_eq!(reply.status, 400);
        let text = |name: &str| reply.json()[name].as_str().unwrap().to_owned();
        assert_eq!(
            text("message"),
            "The tool server is temporarily unavailable"
        );
        text("developer_message")
    };
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
        let detail = detail_of(code).await;
        assert!(detail.contains(what), "{detail}");
    }
    assert_eq!(strict.effects(), 0);
    // A call that needs no record needs no store.
    assert_eq!(
        strict.call("Act.Again", "down", json!({})).await.status,
        200
    );
    proxy.open();
    stores.emulator.stop();
    let hasty = stores.dynamodb().timeout(Duration::from_millis(300));
    let strict = Fixture::with(&hasty, &strict.effects);
    let reply = strict.call("Act.Do", "down", json!({})).await;
    assert_eq!((reply.status, strict.effects()), (400, 1));
    let best_effort = Fixture::new(&hasty.best_effort());
    for _ in 0..2 {
        let reply = best_effort.call("Act.Do", "down", json!({})).await;
        assert_eq!(reply.status, 200);
    }
    assert_eq!(best_effort.effects(), 2);
}
