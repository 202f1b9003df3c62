//! Updating a record that other callers may change at the same time.

use std::time::Duration;

use crate::{
    StoreError,
    clock::Clock,
    store::{Over, PutOutcome, Record, Store, Write, put, within},
};

/// A decision in [`update`]: leave or replace the record, and the value to return.
pub(crate) enum Change<R, T> {
    Leave(T),
    Write(R, T),
}

/// The record that an update assumes at first.
#[derive(Clone, Copy)]
pub(crate) enum Start {
    /// The current one, which is read.
    Current,
    /// None. If there is a record after all, the store returns it instead of writing.
    Absent,
}

/// Lets `decide` make a decision on a record, and saves the new record if the old one is unchanged;
/// otherwise it tries again with the record that the store returned, at most three times in all. A
/// free record counts as absent.
pub(super) async fn update<T>(
    store: &dyn Store,
    limit: Duration,
    id: &str,
    (start, clock): (Start, &Clock),
    mut decide: impl FnMut(Option<Record>) -> Change<Record, T>,
) -> Result<T, StoreError> {
    let mut current = match start {
        Start::Current => within(limit, store.get(id)).await.flatten()?,
        Start::Absent => None,
    };
    for _ in 0..3 {
        let now = clock.now();
        let valid = current.filter(|current| !current.is_free(now));
        let over = over(valid.as_ref());
        match decide(valid) {
            Change::Leave(value) => return Ok(value),
            Change::Write(record, value) => {
                let write = Write {
                    id,
                    record: &record,
                    over,
                    now,
                };
                match put(store, limit, write).await? {
                    PutOutcome::Written => return Ok(value),
                    PutOutcome::Conflict(newer) => current = newer,
                }
            }
        }
    }
    Err(StoreError::throttled(
        "too many calls write the same record",
    ))
}

fn over(current: Option<&Record>) -> Over {
    current.map_or(Over::Nothing, |current| Over::Version(current.version))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::{
        clock::FIXED,
        store::{
            Field, StoreFuture,
            memory::{Memory, MemoryLimits},
            new_version,
        },
    };

    const LIMIT: Duration = Duration::from_secs(3);

    /// A store in which another caller writes before each of the first writes.
    struct Contended {
        memory: Memory,
        remaining_writes: AtomicU64,
        reads: AtomicU64,
    }

    impl Contended {
        fn new(writes: u64) -> Self {
            Self {
                memory: Memory::new(MemoryLimits {
                    what: "records",
                    records: 1,
                    bytes: 0,
                    may_forget: |_, _| false,
                    is_anyones: |_| false,
                    forgotten: "",
                }),
                remaining_writes: AtomicU64::new(writes),
                reads: AtomicU64::new(0),
            }
        }

        async fn count(&self) -> u64 {
            count_of(self.memory.get("id").await.unwrap())
        }
    }

    impl Store for Contended {
        fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Record>> {
            self.reads.fetch_add(1, Ordering::SeqCst);
            self.memory.get(id)
        }

        fn put<'a>(&'a self, write: Write<'a>) -> StoreFuture<'a, PutOutcome> {
            Box::pin(async move {
                let decrement = |left: u64| left.checked_sub(1);
                let writes = &self.remaining_writes;
                if writes
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, decrement)
                    .is_ok()
                {
                    let current = self.memory.get(write.id).await?;
                    let over = over(current.as_ref());
                    let other = Write {
                        record: &counter(count_of(current) + 10),
                        over,
                        now: FIXED.now(),
                        ..write
                    };
                    self.memory.put(other).await?;
                }
                self.memory.put(write).await
            })
        }

        fn delete<'a>(&'a self, id: &'a str, version: u64) -> StoreFuture<'a, ()> {
            self.memory.delete(id, version)
        }
    }

    fn counter(count: u64) -> Record {
        Record {
            version: new_version(),
            fields: vec![("count".into(), Field::Number(count))],
            free_at: None,
            expires_at: FIXED.now() + Duration::from_secs(1),
        }
    }

    fn count_of(record: Option<Record>) -> u64 {
        match record.and_then(|mut record| record.take("count")) {
            Some(Field::Number(count)) => count,
            _ => 0,
        }
    }

    async fn increment(store: &Contended, clock: &Clock) -> Result<u64, StoreError> {
        let one_more = |current| {
            let count = count_of(current) + 1;
            Change::Write(counter(count), count)
        };
        update(store, LIMIT, "id", (Start::Current, clock), one_more).await
    }

    #[tokio::test]
    async fn concurrent_writes_are_not_lost() {
        let store = Contended::new(2);
        assert_eq!(increment(&store, &FIXED).await, Ok(21));
        assert_eq!(store.count().await, 21);
        assert_eq!(
            store.reads.load(Ordering::SeqCst),
            1,
            "conflicts bring the record"
        );
        let leave = |current| Change::Leave(count_of(current));
        let left = update(&store, LIMIT, "id", (Start::Current, &FIXED), leave).await;
        assert_eq!(left, Ok(21));
    }

    #[tokio::test]
    async fn an_update_that_assumes_no_record_finds_the_one_that_exists() {
        for (writes, count) in [(0, 1), (1, 11)] {
            let store = Contended::new(writes);
            let one_more = |current| {
                let count = count_of(current) + 1;
                Change::Write(counter(count), count)
            };
            let updated = update(&store, LIMIT, "id", (Start::Absent, &FIXED), one_more).await;
            assert_eq!(updated, Ok(count));
            assert_eq!(store.reads.load(Ordering::SeqCst), 0);
        }
    }

    #[tokio::test]
    async fn an_update_gives_up_after_three_conflicts() {
        let store = Contended::new(u64::MAX);
        let error = increment(&store, &FIXED).await.unwrap_err();
        assert!(error.is_temporary());
        assert_eq!(store.count().await, 30, "three times");
    }

    #[tokio::test]
    async fn an_expired_record_counts_as_absent() {
        let store = Contended::new(0);
        let moved = std::sync::Arc::default();
        let clock = FIXED.movable(&moved);
        assert_eq!(increment(&store, &clock).await, Ok(1));
        moved.store(999, Ordering::SeqCst);
        assert_eq!(increment(&store, &clock).await, Ok(2));
        moved.store(1000, Ordering::SeqCst);
        assert_eq!(increment(&store, &clock).await, Ok(1));
    }
}
