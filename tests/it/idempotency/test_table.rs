//! The table that tests of races and faults use, compared with moto, on which no test may race.

mod operations;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lambda_tools::{
    idempotency::DynamoDb as LibraryStore,
    store::{Over, PutOutcome, Record, Store, Write},
};
use test_support::dynamodb::DynamoDb;

use crate::aws;

const TABLE: &str = "calls";

fn at(ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms)
}

fn store_at(url: &str) -> LibraryStore {
    LibraryStore::new(TABLE).client(aws::dynamodb_at(url))
}

#[tokio::test(flavor = "multi_thread")]
async fn of_concurrent_claims_one_is_written() {
    let table = DynamoDb::start(TABLE).await;
    for round in 0..10 {
        let mut claims = tokio::task::JoinSet::new();
        for version in 0..16 {
            let (store, id) = (store_at(&table.url()), format!("round-{round}"));
            let record = Record {
                version,
                fields: Vec::new(),
                free_at: Some(at(5000)),
                expires_at: at(5000),
            };
            claims.spawn(async move {
                let write = Write {
                    id: &id,
                    record: &record,
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
