//! Sequences of operations, compared with moto.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
};

use lambda_tools::{
    idempotency::DynamoDb as LibraryStore,
    store::{Count, Field, Over, PutOutcome, Record, Store, Write},
};
use proptest::{
    prelude::*,
    test_runner::{Config, TestCaseError, TestRunner},
};
use serde_json::Value;
use test_support::{aws::Emulator, dynamodb::DynamoDb};

use super::{TABLE, at, store_at};

/// An operation of a store, with times in milliseconds since 1970.
#[derive(Clone, Debug)]
enum Action {
    Get(usize),
    Put {
        id: usize,
        record: Record,
        over: Over,
        now: u64,
    },
    Delete(usize, u64),
    Count {
        id: usize,
        limit: u64,
        expires_at: u64,
    },
}

/// Generates few values, so that many conditions are met and many are not.
fn actions() -> impl Strategy<Value = Vec<Action>> {
    let version = || prop_oneof![0..3_u64, Just((1 << 62) - 1)];
    // Around the limits of a second, because one attribute is in seconds.
    let time = || prop_oneof![Just(0), 999..1002_u64, 1999..2002_u64, Just(3_600_000)];
    let fields = (".{0,9}", any::<Vec<u8>>(), any::<bool>(), any::<u64>());
    let record = (version(), proptest::option::of(time()), time(), fields);
    let record = record.prop_map(
        |(version, free_at, expires_at, (text, bytes, flag, number))| Record {
            version,
            fields: vec![
                ("fingerprint".into(), Field::Text(text)),
                ("outcome".into(), Field::Bytes(bytes)),
                ("at_most_once".into(), Field::Flag(flag)),
                ("until".into(), Field::Number(number)),
            ],
            free_at: free_at.map(at),
            expires_at: at(expires_at),
        },
    );
    let over = prop_oneof![Just(Over::Nothing), version().prop_map(Over::Version)];
    let put = (0..2_usize, record, over, time());
    // Ids of their own: a number is not counted in the record of a call.
    let count = (2..4_usize, 0..4_u64, time());
    let action = prop_oneof![
        1 => (0..2_usize).prop_map(Action::Get),
        4 => put.prop_map(|(id, record, over, now)| Action::Put { id, record, over, now }),
        1 => (0..2_usize, version()).prop_map(|(id, version)| Action::Delete(id, version)),
        2 => count.prop_map(|(id, limit, expires_at)| Action::Count { id, limit, expires_at }),
    ];
    proptest::collection::vec(action, 1..12)
}

/// Returns a result as text, with the fields in order.
async fn result_of(store: &LibraryStore, case: usize, action: &Action) -> String {
    let id = |number: usize| format!("case-{case}-{number}");
    let in_order = |mut record: Record| {
        record.fields.sort_by(|one, two| one.0.cmp(&two.0));
        record
    };
    match action {
        Action::Get(number) => {
            let record = store.get(&id(*number)).await;
            format!("{:?}", record.map(|it| it.map(in_order)))
        }
        Action::Put {
            id: number,
            record,
            over,
            now,
        } => {
            let write = Write {
                id: &id(*number),
                record,
                over: *over,
                now: at(*now),
            };
            let outcome = store.put(write).await.map(|outcome| match outcome {
                PutOutcome::Conflict(current) => PutOutcome::Conflict(current.map(in_order)),
                written @ PutOutcome::Written => written,
            });
            format!("{outcome:?}")
        }
        Action::Count {
            id: number,
            limit,
            expires_at,
        } => {
            let count = Count {
                id: &id(*number),
                limit: *limit,
                free_at: at(*expires_at),
                expires_at: at(*expires_at),
                now: at(0),
            };
            format!("{:?}", store.count(count).await)
        }
        Action::Delete(number, version) => {
            format!("{:?}", store.delete(&id(*number), *version).await)
        }
    }
}

/// Carries out the same actions on this table and on moto's; returns the kinds of results.
async fn compare(
    [store, of_moto]: &[LibraryStore; 2],
    case: usize,
    actions: &[Action],
) -> Result<Vec<String>, TestCaseError> {
    let mut kinds = Vec::new();
    for action in actions {
        let result = result_of(store, case, action).await;
        let expected = result_of(of_moto, case, action).await;
        if result != expected {
            let text = format!("{action:?}: {result}, but moto returns {expected}");
            return Err(TestCaseError::fail(text));
        }
        kinds.push(result.chars().take(12).collect());
    }
    Ok(kinds)
}

#[test]
#[ignore = "needs moto; run tests/all"]
fn a_sequence_of_operations_has_the_results_that_moto_returns() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (emulator, table) =
        runtime.block_on(async { (Emulator::start().await, DynamoDb::start(TABLE).await) });
    let proxy = runtime.block_on(emulator.proxy());
    runtime.block_on(proxy.create_table(TABLE));
    let stores = [store_at(&table.url()), store_at(emulator.url())];
    let config = Config {
        cases: 80,
        failure_persistence: None,
        ..Config::default()
    };
    let (case, kinds) = (Cell::new(0), RefCell::new(BTreeSet::new()));
    let checked = TestRunner::new(config).run(&actions(), |actions| {
        case.set(case.get() + 1);
        let results = runtime.block_on(compare(&stores, case.get(), &actions))?;
        kinds.borrow_mut().extend(results);
        Ok(())
    });
    checked.unwrap();
    let kinds = kinds.into_inner();
    for kind in [
        "Ok(Some",
        "Ok(None",
        "Ok(Written",
        "Ok(Conflict",
        "Ok(true",
        "Ok(false",
    ] {
        assert!(kinds.iter().any(|it| it.starts_with(kind)), "{kind}");
    }
    let of_moto = runtime.block_on(proxy.items(TABLE));
    assert_eq!(by_id(table.items()), by_id(of_moto));
}

fn by_id(items: Vec<Value>) -> BTreeMap<String, Value> {
    let items = items.into_iter().map(|mut item| {
        // The version of a number is random.
        if item["count"] != Value::Null {
            item["version"].take();
        }
        (item["id"].to_string(), item)
    });
    items.collect()
}
