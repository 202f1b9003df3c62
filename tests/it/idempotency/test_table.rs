//! The table that tests of races and faults use, compared with moto, on which no test may race.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lambda_tools::{
    idempotency::DynamoDb as LibraryStore,
    store::{Count, Field, Over, PutOutcome, Record, Store, Write},
};
use serde_json::Value;
use test_support::{aws::Emulator, dynamodb::DynamoDb};

use crate::aws;

const TABLE: &str = "calls";

fn at(ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms)
}

fn store_at(url: &str) -> LibraryStore {
    LibraryStore::new(TABLE).client(aws::dynamodb_at(url))
}

/// Returns a record with a field of each type.
fn record(version: u64, free_at: Option<u64>, expires_at: u64) -> Record {
    Record {
        version,
        fields: vec![
            ("at_most_once".into(), Field::Flag(true)),
            ("fingerprint".into(), Field::Text("é".into())),
            ("outcome".into(), Field::Bytes(vec![0, 255])),
            ("until".into(), Field::Number(7)),
        ],
        free_at: free_at.map(at),
        expires_at: at(expires_at),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_concurrent_claims_one_is_written() {
    let table = DynamoDb::start(TABLE).await;
    for round in 0..10 {
        let mut claims = tokio::task::JoinSet::new();
        for version in 0..16 {
            let (store, id) = (store_at(&table.url()), format!("round-{round}"));
            claims.spawn(async move {
                let write = Write {
                    id: &id,
                    record: &record(version, Some(5000), 5000),
                    over: Over::Nothing,
                    now: at(1000),
                };
                store.put(write).await.unwrap() == PutOutcome::Written
            });
        }
        let written = claims.join_all().await.into_iter().filter(|it| *it).count();
        assert_eq!(written, 1);
    }
}

/// Writes records and counts calls, at the limits of each condition; returns all results.
async fn results(store: &LibraryStore) -> Vec<String> {
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
    let (emulator, table) = (Emulator::start().await, DynamoDb::start(TABLE).await);
    let proxy = emulator.proxy().await;
    proxy.create_table(TABLE).await;
    let expected = results(&store_at(emulator.url())).await;
    assert_eq!(results(&store_at(&table.url())).await, expected);
    for kind in [
        "Written",
        "Conflict(None",
        "Conflict(Some",
        "Ok(true",
        "Ok(false",
    ] {
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
