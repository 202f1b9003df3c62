//! Changing a record that others may change at the same time.

use std::time::Duration;

use super::{PutOutcome, Record, Store, put, within};
use crate::{StoreError, clock::Clock};

/// What becomes of a record in [`update`], with what is to be returned.
pub(crate) enum Change<R, T> {
    Leave(T),
    Write(R, T),
}

/// Loads a record, decides, and saves it if it is unchanged; otherwise again. What is free is none.
pub(crate) async fn update<T>(
    store: &dyn Store,
    limit: Duration,
    id: &str,
    clock: &Clock,
    mut decide: impl FnMut(Option<Record>) -> Change<Record, T>,
) -> Result<T, StoreError> {
    for _ in 0..3 {
        let held = within(limit, store.get(id)).await.flatten()?;
        let now = clock.now();
        let held = held.filter(|held| !held.is_free(now));
        let over = held.as_ref().map(|held| held.version);
        match decide(held) {
            Change::Leave(done) => return Ok(done),
            Change::Write(record, done) => {
                if put(store, limit, (id, &record), over, now).await? == PutOutcome::Written {
                    return Ok(done);
                }
            }
        }
    }
    Err(StoreError::throttled("many calls write the same record"))
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicU64, Ordering},
        time::SystemTime,
    };

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

    /// A store in which others write after each of the first reads.
    struct Contended {
        memory: Memory,
        others: AtomicU64,
    }

    impl Contended {
        fn new(others: u64) -> Self {
            Self {
                memory: Memory::new(MemoryLimits {
                    what: "records",
                    of_one: 1,
                    of_all: 1,
                    bytes: 0,
                    forgotten: "",
                    dropped: "",
                }),
                others: AtomicU64::new(others),
            }
        }

        async fn count(&self) -> u64 {
            count_of(self.memory.get("id").await.unwrap())
        }
    }

    impl Store for Contended {
        fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Record>> {
            Box::pin(async move {
                let held = self.memory.get(id).await?;
                let less = |left: u64| left.checked_sub(1);
                let others = &self.others;
                if others
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less)
                    .is_ok()
                {
                    let over = held.as_ref().map(|held| held.version);
                    let other = counted(count_of(held.clone()) + 10);
                    self.memory.put(id, &other, over, FIXED.now()).await?;
                }
                Ok(held)
            })
        }

        fn put<'a>(
            &'a self,
            id: &'a str,
            record: &'a Record,
            over: Option<u64>,
            now: SystemTime,
        ) -> StoreFuture<'a, PutOutcome> {
            self.memory.put(id, record, over, now)
        }

        fn delete<'a>(&'a self, id: &'a str, version: u64) -> StoreFuture<'a, ()> {
            self.memory.delete(id, version)
        }
    }

    fn counted(count: u64) -> Record {
        Record {
            version: new_version(),
            fields: vec![("count".into(), Field::Number(count))],
            eviction: None,
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

    async fn count_one_more(store: &Contended, clock: &Clock) -> Result<u64, StoreError> {
        let one_more = |held| {
            let count = count_of(held) + 1;
            Change::Write(counted(count), count)
        };
        update(store, LIMIT, "id", clock, one_more).await
    }

    #[tokio::test]
    async fn nothing_that_others_write_is_lost() {
        let store = Contended::new(2);
        assert_eq!(count_one_more(&store, &FIXED).await, Ok(21));
        assert_eq!(store.count().await, 21);
        let leave = |held| Change::Leave(count_of(held));
        assert_eq!(update(&store, LIMIT, "id", &FIXED, leave).await, Ok(21));
    }

    #[tokio::test]
    async fn it_gives_up_where_others_never_stop() {
        let store = Contended::new(u64::MAX);
        let error = count_one_more(&store, &FIXED).await.unwrap_err();
        assert!(error.is_temporary());
        assert_eq!(store.count().await, 30, "three times");
    }

    #[tokio::test]
    async fn what_has_expired_is_not_there() {
        let store = Contended::new(0);
        let moved = std::sync::Arc::default();
        let clock = FIXED.movable(&moved);
        assert_eq!(count_one_more(&store, &clock).await, Ok(1));
        moved.store(999, Ordering::SeqCst);
        assert_eq!(count_one_more(&store, &clock).await, Ok(2));
        moved.store(1000, Ordering::SeqCst);
        assert_eq!(count_one_more(&store, &clock).await, Ok(1));
    }
}
