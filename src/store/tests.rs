use std::sync::atomic::{AtomicU64, Ordering};

use super::{
    memory::{Memory, MemoryLimits},
    *,
};
use crate::clock::FIXED;

const TIMEOUT: Duration = Duration::from_secs(3);

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
                let over = Over::of(current.as_ref());
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

async fn increment(store: &Contended) -> Result<u64, StoreError> {
    let one_more = |current| {
        let count = count_of(current) + 1;
        Change::Write(counter(count), count)
    };
    update(store, "id", FIXED.now(), TIMEOUT, one_more).await
}

#[tokio::test]
async fn concurrent_writes_are_not_lost() {
    let store = Contended::new(2);
    assert_eq!(increment(&store).await, Ok(21));
    assert_eq!(store.count().await, 21);
    assert_eq!(
        store.reads.load(Ordering::SeqCst),
        1,
        "conflicts bring the record"
    );
    let leave = |current| Change::Leave(count_of(current));
    let left = update(&store, "id", FIXED.now(), TIMEOUT, leave);
    assert_eq!(left.await, Ok(21));
}

#[tokio::test]
async fn an_update_gives_up_after_many_conflicts() {
    let store = Contended::new(u64::MAX);
    let error = increment(&store).await.unwrap_err();
    assert!(error.is_temporary());
    assert_eq!(store.count().await, 10_000, "a thousand times");
}
