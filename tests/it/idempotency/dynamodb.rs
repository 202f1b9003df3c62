//! Deduplication on DynamoDB: its requests, its items, and failures of the store; and the table that
//! tests of races and faults use, compared with moto, on which no test may race.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::{Engine, prelude::BASE64_STANDARD as STANDARD};
use lambda_tools::{
    idempotency::DynamoDb,
    store::{Count, Field, Over, PutOutcome, Record, Store, Write},
};
use test_support::{
    aws::{AwsProxy, Emulator, emulated},
    dynamodb,
};

use super::*;
use crate::aws;

const TABLE: &str = "calls";

/// Starts an emulator of `DynamoDB` with a table, and a function that uses it.
async fn started() -> (Emulator, AwsProxy, Fixture) {
    let (emulator, proxy) = emulated().await;
    proxy.create_table(TABLE).await;
    let fixture = Fixture::new(&Idempotency::in_store(store_at(&proxy.url())));
    (emulator, proxy, fixture)
}

/// The outcome does not fit into an item.
#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn a_call_whose_outcome_is_too_large_to_store_does_not_run_again() {
    let (_emulator, _proxy, fixture) = started().await;
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
async fn a_call_costs_two_small_writes() {
    let (_emulator, proxy, fixture) = started().await;
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
    for item in proxy.items(TABLE).await {
        // The time of the recorded events in seconds, plus an hour.
        assert_eq!(item["expires_at"]["N"], "1696510800");
        // Ids chosen by callers are hashed.
        assert_eq!(item["id"]["S"].as_str().unwrap().len(), 64);
    }
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn without_the_store_no_call_runs() {
    let (_emulator, proxy, strict) = started().await;
    let permission = "allow dynamodb:PutItem on the table 'calls'";
    for (code, what) in [
        ("AccessDeniedException", permission),
        ("ResourceNotFoundException", "there is no table 'calls'"),
        ("ValidationException", "the string 'id' as its partition"),
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
}

fn at(ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms)
}

fn store_at(url: &str) -> DynamoDb {
    DynamoDb::new(TABLE).client(aws::dynamodb_at(url))
}

/// Returns a record with a field of each type.
fn record(version: u64, free_at: Option<u64>, expires_at: u64) -> Record {
    Record {
        version,
        fields: vec![
            ("fingerprint".into(), Field::Text("é".into())),
            ("outcome".into(), Field::Bytes(vec![0, 255])),
            ("until".into(), Field::Number(7)),
        ],
        free_at: free_at.map(at),
        expires_at: at(expires_at),
    }
}

/// Writes records and counts calls, at the limits of each condition; returns all results.
async fn results(store: &DynamoDb) -> Vec<String> {
    let mut results = Vec::new();
    let old = record(1, Some(2000), 9000);
    // Without a time at which it is free, a record is free when it has expired, in seconds.
    let unclaimed = record(2, None, 2001);
    for (id, first, over, now) in [
        ("taken", &old, Over::Nothing, 1999),
        ("free", &old, Over::Nothing, 2000),
        ("unexpired", &unclaimed, Over::Nothing, 2999),
        ("expired", &unclaimed, Over::Nothing, 3000),
        ("same", &old, Over::Version(1), 0),
        ("other", &old, Over::Version((1 << 62) - 1), 9_999_999),
    ] {
        let next = record((1 << 62) - 1, Some(5000), 5000);
        let (created, over) = ((first, Over::Nothing, 0), (&next, over, now));
        for (record, over, now) in [created, over] {
            let now = at(now);
            let write = Write {
                id,
                record,
                over,
                now,
            };
            let outcome = store.put(write).await;
            results.push(format!("{id}: {:?}", outcome.map(sorted)));
        }
        for version in [7, 1] {
            let deleted = store.delete(id, version).await;
            let left = store.get(id).await.map(PutOutcome::Conflict);
            results.push(format!("{id}: {deleted:?} {:?}", left.map(sorted)));
        }
    }
    let absent = Write {
        id: "absent",
        record: &old,
        over: Over::Version(1),
        now: at(0),
    };
    results.push(format!("{:?}", store.put(absent).await));
    for nth in 0..4 {
        let count = Count {
            id: "counted",
            limit: 2,
            free_at: at(nth),
            expires_at: at(1001 + nth * 1000),
            now: at(0),
        };
        results.push(format!("{:?}", store.count(count).await));
    }
    results
}

/// Returns an outcome with the fields of its record in order.
fn sorted(outcome: PutOutcome) -> PutOutcome {
    match outcome {
        PutOutcome::Conflict(Some(mut record)) => {
            record.fields.sort_by(|one, two| one.0.cmp(&two.0));
            PutOutcome::Conflict(Some(record))
        }
        other => other,
    }
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn operations_have_the_results_that_moto_returns() {
    let emulator = Emulator::start().await;
    let table = dynamodb::DynamoDb::start(TABLE).await;
    let proxy = emulator.proxy().await;
    proxy.create_table(TABLE).await;
    let expected = results(&store_at(emulator.url())).await;
    assert_eq!(results(&store_at(&table.url())).await, expected);
    for kind in "Written Conflict(None Conflict(Some Ok(true Ok(false".split(' ') {
        assert!(expected.iter().any(|it| it.contains(kind)), "{kind}");
    }
    let by_id = |mut items: Vec<Value>| {
        items.sort_by_key(|item| item["id"].to_string());
        // The version of a number is random.
        let counted = items.iter_mut().find(|item| item["count"] != Value::Null);
        counted.unwrap()["version"].take();
        items
    };
    assert_eq!(by_id(table.items()), by_id(proxy.items(TABLE).await));
}
