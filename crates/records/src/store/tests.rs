use std::sync::atomic::{AtomicU64, Ordering};

use super::{
    memory::{Memory, MemoryLimits},
    *,
};
use crate::clock::FIXED;

/// A store in which another caller counts before each of the first writes.
struct Contended {
    memory: Memory,
    remaining_writes: AtomicU64,
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
        }
    }

    async fn number(&self) -> Option<Field> {
        let record = self.memory.get("id").await.unwrap();
        record?.take(Count::FIELD)
    }
}

impl Store for Contended {
    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Record>> {
        self.memory.get(id)
    }

    fn put<'a>(&'a self, write: Write<'a>) -> StoreFuture<'a, PutOutcome> {
        Box::pin(async move {
            let decrement = |left: u64| left.checked_sub(1);
            let (writes, order) = (&self.remaining_writes, Ordering::SeqCst);
            if writes.fetch_update(order, order, decrement).is_ok() {
                self.memory.count(one_more(u64::MAX)).await?;
            }
            self.memory.put(write).await
        })
    }

    fn delete<'a>(&'a self, id: &'a str, version: u64) -> StoreFuture<'a, ()> {
        self.memory.delete(id, version)
    }
}

fn one_more(limit: u64) -> Count<'static> {
    let end = FIXED.now() + Duration::from_secs(1);
    Count {
        id: "id",
        limit,
        free_at: end,
        expires_at: end,
        now: FIXED.now(),
    }
}

#[tokio::test]
async fn concurrent_writes_are_not_lost() {
    let store = Contended::new(2);
    for (limit, is_counted) in [(9, true), (3, false)] {
        assert_eq!(store.count(one_more(limit)).await, Ok(is_counted));
        assert_eq!(store.number().await, Some(Field::Number(3)));
    }
}

#[tokio::test]
async fn an_update_gives_up_after_many_conflicts() {
    let store = Contended::new(u64::MAX);
    let error = store.count(one_more(u64::MAX)).await.unwrap_err();
    assert!(error.is_temporary());
    assert_eq!(store.number().await, Some(Field::Number(1000)));
}
