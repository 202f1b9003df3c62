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
    of_one: MOST_OF_ONE,
    of_all: MOST,
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

/// One that may not.
fn kept(owner: &str) -> Record {
    let mut record = record(owner);
    record.eviction.as_mut().unwrap().is_forgettable = false;
    record
}

/// With 4 MiB, the most that can be kept.
fn large(record: Record) -> Record {
    let body = vec![0; LIMITS.bytes / 4];
    let fields = vec![(Cow::Borrowed("body"), Field::Bytes(body))];
    Record { fields, ..record }
}

async fn put(memory: &Memory, id: &str, record: Record, over: Option<u64>) -> PutOutcome {
    memory.put(id, &record, over, NOW).await.unwrap()
}

/// Writes what is not there yet.
async fn add(memory: &Memory, id: &str, record: Record) {
    assert_eq!(
        put(memory, id, record, None).await,
        PutOutcome::Written,
        "{id}"
    );
}

/// Writes what is there once more.
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
    let mut held = memory.get(id).await.unwrap().unwrap();
    held.take("body").is_some()
}

fn is_empty(memory: &Memory) -> bool {
    let records = memory.records.lock().unwrap();
    let owners = &records.owners;
    (owners.records(), owners.bytes()) == (0, 0)
        && owners.is_empty()
        && records.free.is_empty()
        && records.held.is_empty()
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
async fn what_is_free_is_written_over_and_until_then_by_its_own_writer() {
    let memory = memory();
    let free = Record {
        free_at: Some(after(1)),
        expires_at: after(9),
        ..kept("a")
    };
    add(&memory, "id", free.clone()).await;
    let new = Record { version: 2, ..free };
    for (seconds, over, is_written) in [(0, None, false), (1, Some(1), true), (2, None, true)] {
        let put = memory.put("id", &new, over, after(seconds)).await.unwrap();
        assert_eq!(put == PutOutcome::Written, is_written, "{seconds}");
    }
}

#[tokio::test]
async fn the_oldest_that_may_go_make_room_for_new_ones() {
    let memory = memory();
    for i in 0..MOST_OF_ONE {
        add(&memory, &i.to_string(), kept("a")).await;
    }
    for i in ["1", "2"] {
        rewrite(&memory, i, record("a")).await;
    }
    add(&memory, "new", kept("a")).await;
    assert!(!is_held(&memory, "1").await, "was the oldest that may go");
    for id in ["0", "2", "3", "new"] {
        assert!(is_held(&memory, id).await, "{id}");
    }
}

#[tokio::test]
async fn what_was_written_again_is_not_the_oldest() {
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
async fn what_is_deleted_pushes_nothing_out() {
    let memory = memory();
    add(&memory, "first", record("a")).await;
    for i in 0..3 * MOST_OF_ONE {
        let id = i.to_string();
        add(&memory, &id, kept("a")).await;
        memory.delete(&id, 1).await.unwrap();
    }
    assert!(is_held(&memory, "first").await);
    let records = memory.records.lock().unwrap();
    assert_eq!((records.held.len(), records.free.len()), (1, 1));
}

#[tokio::test]
async fn bytes_are_counted_too_and_given_back() {
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
        "it is still known"
    );
    for id in ids {
        memory.delete(id, 1).await.unwrap();
    }
    assert!(is_empty(&memory));
}

#[tokio::test]
async fn who_writes_very_much_loses_their_own_and_nothing_that_must_stay() {
    let memory = memory();
    add(&memory, "a-once", kept("a")).await;
    add(&memory, "a-oldest", record("a")).await;
    add(&memory, "b-once", kept("b")).await;
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
async fn who_writes_large_records_loses_their_own_bytes() {
    let memory = memory();
    let small = |record: Record| Record {
        fields: vec![("body".into(), Field::Bytes(b"small".to_vec()))],
        ..record
    };
    add(&memory, "b-once", small(kept("b"))).await;
    add(&memory, "b-do", small(record("b"))).await;
    for i in 0..8 {
        let new = if i % 2 == 0 { kept("a") } else { record("a") };
        add(&memory, &format!("a-{i}"), large(new)).await;
    }
    for id in ["b-once", "b-do"] {
        assert!(has_body(&memory, id).await, "{id}");
    }
    for i in 0..8 {
        // Three are left beside the small ones.
        assert_eq!(has_body(&memory, &format!("a-{i}")).await, i >= 5, "{i}");
    }
}

#[tokio::test]
async fn together_owners_have_a_limit_too_and_who_holds_most_makes_room() {
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
    assert_eq!(records.held.len(), MOST);
    assert_eq!(records.owners.records_of("most"), MOST_OF_ONE - 10);
    assert_eq!(records.owners.records_of("b"), MOST_OF_ONE - 2000);
    assert!(!records.held.contains_key("most-9"));
    assert!(records.held.contains_key("most-10"));
}

#[tokio::test]
async fn where_nothing_can_be_forgotten_nothing_new_is_written() {
    let memory = memory();
    for i in 0..MOST_OF_ONE {
        add(&memory, &i.to_string(), kept("a")).await;
    }
    add(&memory, "b-do", record("b")).await;
    let new = kept("a");
    let error = memory.put("new", &new, None, NOW).await.unwrap_err();
    assert!(error.is_temporary() && error.is_full());
    let text = error.to_string();
    assert!(text.contains("10000 calls of this caller"), "{text}");
    assert!(!is_held(&memory, "new").await);
    assert!(is_held(&memory, "b-do").await, "makes no room");
    // What is there can be written again, and nobody else is hindered.
    rewrite(&memory, "0", kept("a")).await;
    add(&memory, "b", kept("b")).await;
    // Everything has expired.
    let put = memory.put("new", &new, None, after(1)).await;
    assert_eq!(put, Ok(PutOutcome::Written));
    assert_eq!(memory.records.lock().unwrap().held.len(), 1);
}

#[tokio::test]
async fn what_must_stay_of_everybody_has_a_limit_too() {
    let memory = memory();
    for i in 0..MOST {
        let owner = (i % 10).to_string();
        add(&memory, &i.to_string(), kept(&owner)).await;
    }
    let error = memory.put("new", &kept("new"), None, NOW).await;
    let text = error.unwrap_err().to_string();
    assert!(text.contains("50000 calls of all callers"), "{text}");
}

#[tokio::test]
async fn what_takes_nobodys_share_finds_room_and_takes_none() {
    let memory = memory();
    let unshared = || Record {
        eviction: None,
        ..record("")
    };
    for i in 0..=MOST {
        add(&memory, &format!("grant{i}"), unshared()).await;
    }
    add(&memory, "a", record("a")).await;
    for id in ["a", "grant0"] {
        assert!(is_held(&memory, id).await, "{id}");
    }
}

#[tokio::test]
async fn what_is_free_goes_first() {
    let memory = memory();
    let until = |seconds| Record {
        free_at: Some(after(seconds)),
        expires_at: after(9),
        ..record("a")
    };
    add(&memory, "oldest", until(9)).await;
    add(&memory, "free", until(1)).await;
    for i in 2..MOST_OF_ONE {
        add(&memory, &i.to_string(), until(9)).await;
    }
    let put = memory.put("new", &until(9), None, after(1)).await;
    assert_eq!(put, Ok(PutOutcome::Written));
    assert!(is_held(&memory, "oldest").await);
    assert!(!is_held(&memory, "free").await);
}

#[tokio::test]
async fn what_has_expired_goes_with_the_next_write() {
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
    assert_eq!(memory.records.lock().unwrap().held.len(), 1);
}

#[tokio::test]
async fn what_is_lost_is_told_to_the_log_once() {
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
