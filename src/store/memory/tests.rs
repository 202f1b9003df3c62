use std::{borrow::Cow, time::Duration};

use super::*;
use crate::{
    observe::lines::Lines,
    store::{Eviction, Field},
};

const NOW: SystemTime = SystemTime::UNIX_EPOCH;
const MOST_OF_ONE: usize = 10_000;
const MOST: usize = 50_000;

const LIMITS: MemoryLimits = MemoryLimits {
    what: "calls",
    per_owner: MOST_OF_ONE,
    total: MOST,
    bytes: 16 << 20,
    forgotten: "forgotten",
    dropped: "dropped",
};

fn memory() -> Memory {
    Memory::new(LIMITS)
}

fn after(seconds: u64) -> SystemTime {
    NOW + Duration::from_secs(seconds)
}

/// A record that may be forgotten.
fn record(owner: &str) -> Record {
    Record {
        version: 1,
        fields: Vec::new(),
        eviction: Some(Eviction {
            owner: owner.to_owned(),
            is_forgettable: true,
            droppable: Some("body"),
        }),
        free_at: None,
        expires_at: after(1),
    }
}

/// A record that may not be forgotten.
fn unforgettable(owner: &str) -> Record {
    let mut record = record(owner);
    record.eviction.as_mut().unwrap().is_forgettable = false;
    record
}

/// Adds a field of 4 MiB, the maximum that can be kept.
fn large(record: Record) -> Record {
    let body = vec![0; LIMITS.bytes / 4];
    let fields = vec![(Cow::Borrowed("body"), Field::Bytes(body))];
    Record { fields, ..record }
}

async fn put(memory: &Memory, id: &str, record: Record, over: Option<u64>) -> PutOutcome {
    memory.put(id, &record, over, NOW).await.unwrap()
}

/// Writes a new record.
async fn add(memory: &Memory, id: &str, record: Record) {
    assert_eq!(
        put(memory, id, record, None).await,
        PutOutcome::Written,
        "{id}"
    );
}

/// Replaces an existing record.
async fn rewrite(memory: &Memory, id: &str, record: Record) {
    assert_eq!(
        put(memory, id, record, Some(1)).await,
        PutOutcome::Written,
        "{id}"
    );
}

async fn is_held(memory: &Memory, id: &str) -> bool {
    memory.get(id).await.unwrap().is_some()
}

async fn has_body(memory: &Memory, id: &str) -> bool {
    let mut record = memory.get(id).await.unwrap().unwrap();
    record.take("body").is_some()
}

fn is_empty(memory: &Memory) -> bool {
    let records = memory.records.lock().unwrap();
    let owners = &records.owners;
    (owners.records(), owners.bytes()) == (0, 0)
        && owners.is_empty()
        && records.by_free_at.is_empty()
        && records.by_id.is_empty()
}

#[tokio::test]
async fn of_two_writers_one_wins() {
    let memory = memory();
    let first = record("a");
    add(&memory, "id", first.clone()).await;
    let second = Record {
        version: 2,
        ..first.clone()
    };
    for over in [None, Some(2)] {
        let conflict = put(&memory, "id", second.clone(), over).await;
        assert_eq!(conflict, PutOutcome::Conflict(Some(first.clone())));
    }
    let none = put(&memory, "other", second.clone(), Some(1)).await;
    assert_eq!(none, PutOutcome::Conflict(None));
    rewrite(&memory, "id", second.clone()).await;
    memory.delete("id", 1).await.unwrap();
    assert_eq!(memory.get("id").await, Ok(Some(second)));
    memory.delete("id", 2).await.unwrap();
    assert_eq!(memory.get("id").await, Ok(None));
    assert!(is_empty(&memory));
}

#[tokio::test]
async fn a_record_that_is_not_free_is_replaced_only_by_its_version() {
    let memory = memory();
    let free = Record {
        free_at: Some(after(1)),
        expires_at: after(9),
        ..unforgettable("a")
    };
    add(&memory, "id", free.clone()).await;
    let new = Record { version: 2, ..free };
    for (seconds, over, is_written) in [(0, None, false), (1, Some(1), true), (2, None, true)] {
        let outcome = memory.put("id", &new, over, after(seconds)).await.unwrap();
        assert_eq!(outcome == PutOutcome::Written, is_written, "{seconds}");
    }
}

#[tokio::test]
async fn the_oldest_forgettable_record_makes_room_for_a_new_one() {
    let memory = memory();
    for i in 0..MOST_OF_ONE {
        add(&memory, &i.to_string(), unforgettable("a")).await;
    }
    for i in ["1", "2"] {
        rewrite(&memory, i, record("a")).await;
    }
    add(&memory, "new", unforgettable("a")).await;
    assert!(
        !is_held(&memory, "1").await,
        "was the oldest forgettable one"
    );
    for id in ["0", "2", "3", "new"] {
        assert!(is_held(&memory, id).await, "{id}");
    }
}

#[tokio::test]
async fn a_rewritten_record_is_no_longer_the_oldest() {
    let memory = memory();
    for i in 0..MOST_OF_ONE {
        add(&memory, &i.to_string(), record("a")).await;
    }
    rewrite(&memory, "0", record("a")).await;
    assert!(is_held(&memory, "1").await, "nothing was added");
    add(&memory, "new", record("a")).await;
    assert!(is_held(&memory, "0").await && !is_held(&memory, "1").await);
}

#[tokio::test]
async fn deleted_records_do_not_evict_others() {
    let memory = memory();
    add(&memory, "first", record("a")).await;
    for i in 0..3 * MOST_OF_ONE {
        let id = i.to_string();
        add(&memory, &id, unforgettable("a")).await;
        memory.delete(&id, 1).await.unwrap();
    }
    assert!(is_held(&memory, "first").await);
    let records = memory.records.lock().unwrap();
    assert_eq!((records.by_id.len(), records.by_free_at.len()), (1, 1));
}

#[tokio::test]
async fn bytes_are_counted_and_released() {
    let memory = memory();
    let ids = ["a", "b", "c", "d", "e"];
    for id in ids {
        add(&memory, id, large(record("a"))).await;
    }
    assert!(!has_body(&memory, "a").await, "made room");
    assert!(has_body(&memory, "b").await);
    let again = put(&memory, "a", record("a"), None).await;
    assert!(
        matches!(again, PutOutcome::Conflict(_)),
        "the record itself is still there"
    );
    for id in ids {
        memory.delete(id, 1).await.unwrap();
    }
    assert!(is_empty(&memory));
}

#[tokio::test]
async fn an_owner_of_too_many_records_loses_only_their_own_forgettable_ones() {
    let memory = memory();
    add(&memory, "a-once", unforgettable("a")).await;
    add(&memory, "a-oldest", record("a")).await;
    add(&memory, "b-once", unforgettable("b")).await;
    add(&memory, "b-do", record("b")).await;
    for i in 0..3 * MOST_OF_ONE {
        add(&memory, &i.to_string(), record("a")).await;
    }
    for id in ["a-once", "b-once", "b-do"] {
        assert!(is_held(&memory, id).await, "{id}");
    }
    assert!(!is_held(&memory, "a-oldest").await);
    let records = memory.records.lock().unwrap();
    assert_eq!(records.owners.records_of("a"), MOST_OF_ONE);
}

#[tokio::test]
async fn an_owner_of_large_records_loses_only_their_own_bytes() {
    let memory = memory();
    let small = |record: Record| Record {
        fields: vec![("body".into(), Field::Bytes(b"small".to_vec()))],
        ..record
    };
    add(&memory, "b-once", small(unforgettable("b"))).await;
    add(&memory, "b-do", small(record("b"))).await;
    for i in 0..8 {
        let new = if i % 2 == 0 {
            unforgettable("a")
        } else {
            record("a")
        };
        add(&memory, &format!("a-{i}"), large(new)).await;
    }
    for id in ["b-once", "b-do"] {
        assert!(has_body(&memory, id).await, "{id}");
    }
    for i in 0..8 {
        // Three fit next to the small ones.
        assert_eq!(has_body(&memory, &format!("a-{i}")).await, i >= 5, "{i}");
    }
}

#[tokio::test]
async fn all_owners_share_a_limit_and_the_one_with_most_records_makes_room() {
    let memory = memory();
    let flood = async |owner: &str, count: usize| {
        for i in 0..count {
            add(&memory, &format!("{owner}-{i}"), record(owner)).await;
        }
    };
    flood("most", MOST_OF_ONE).await;
    for owner in ["b", "c", "d", "e", "f"] {
        flood(owner, MOST_OF_ONE - 2000).await;
    }
    flood("new", 10).await;
    let records = memory.records.lock().unwrap();
    assert_eq!(records.by_id.len(), MOST);
    assert_eq!(records.owners.records_of("most"), MOST_OF_ONE - 10);
    assert_eq!(records.owners.records_of("b"), MOST_OF_ONE - 2000);
    assert!(!records.by_id.contains_key("most-9"));
    assert!(records.by_id.contains_key("most-10"));
}

#[tokio::test]
async fn new_records_are_rejected_if_none_can_be_forgotten() {
    let memory = memory();
    for i in 0..MOST_OF_ONE {
        add(&memory, &i.to_string(), unforgettable("a")).await;
    }
    add(&memory, "b-do", record("b")).await;
    let new = unforgettable("a");
    let error = memory.put("new", &new, None, NOW).await.unwrap_err();
    assert!(error.is_temporary() && error.is_full());
    let text = error.to_string();
    assert!(text.contains("10000 calls of this caller"), "{text}");
    assert!(!is_held(&memory, "new").await);
    assert!(
        is_held(&memory, "b-do").await,
        "another owner's record makes no room"
    );
    // Existing records can still be replaced, and other owners are not affected.
    rewrite(&memory, "0", unforgettable("a")).await;
    add(&memory, "b", unforgettable("b")).await;
    // Everything has expired.
    let outcome = memory.put("new", &new, None, after(1)).await;
    assert_eq!(outcome, Ok(PutOutcome::Written));
    assert_eq!(memory.records.lock().unwrap().by_id.len(), 1);
}

#[tokio::test]
async fn unforgettable_records_of_all_owners_have_a_limit() {
    let memory = memory();
    for i in 0..MOST {
        let owner = (i % 10).to_string();
        add(&memory, &i.to_string(), unforgettable(&owner)).await;
    }
    let error = memory.put("new", &unforgettable("new"), None, NOW).await;
    let text = error.unwrap_err().to_string();
    assert!(text.contains("50000 calls of all callers"), "{text}");
}

#[tokio::test]
async fn records_without_an_owner_do_not_count_towards_the_limits() {
    let memory = memory();
    let unowned = || Record {
        eviction: None,
        ..record("")
    };
    for i in 0..=MOST {
        add(&memory, &format!("grant{i}"), unowned()).await;
    }
    add(&memory, "a", record("a")).await;
    for id in ["a", "grant0"] {
        assert!(is_held(&memory, id).await, "{id}");
    }
}

#[tokio::test]
async fn free_records_are_dropped_first() {
    let memory = memory();
    let free_after = |seconds| Record {
        free_at: Some(after(seconds)),
        expires_at: after(9),
        ..record("a")
    };
    add(&memory, "oldest", free_after(9)).await;
    add(&memory, "free", free_after(1)).await;
    for i in 2..MOST_OF_ONE {
        add(&memory, &i.to_string(), free_after(9)).await;
    }
    let outcome = memory.put("new", &free_after(9), None, after(1)).await;
    assert_eq!(outcome, Ok(PutOutcome::Written));
    assert!(is_held(&memory, "oldest").await);
    assert!(!is_held(&memory, "free").await);
}

#[tokio::test]
async fn expired_records_are_dropped_by_the_next_write() {
    let memory = memory();
    let ids: Vec<_> = (0..3).map(|i| i.to_string()).collect();
    for id in &ids {
        add(&memory, id, record("a")).await;
    }
    let late = Record {
        expires_at: after(9),
        ..record("b")
    };
    memory.put("late", &late, None, after(1)).await.unwrap();
    assert_eq!(memory.records.lock().unwrap().by_id.len(), 1);
}

#[tokio::test]
async fn losses_are_logged_once() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(lines.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let memory = memory();
    let text = || lines.text();
    for i in 0..MOST_OF_ONE {
        add(&memory, &i.to_string(), record("key A")).await;
    }
    assert_eq!(text(), "");
    for i in 0..6 {
        add(&memory, &format!("new-{i}"), large(record("key A"))).await;
    }
    let text = text();
    assert_eq!(text.lines().count(), 2, "{text}");
    for part in ["WARN", "forgotten", "dropped", "key A"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
