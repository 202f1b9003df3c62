use std::time::Duration;

use super::*;
use crate::observe::lines::Lines;

const NOW: SystemTime = SystemTime::UNIX_EPOCH;

fn record(claim: &str, state: State) -> Record {
    Record {
        claim: claim.to_owned(),
        fingerprint: String::new(),
        owner: "a".to_owned(),
        at_most_once: false,
        state,
        free_at: NOW + Duration::from_secs(1),
        expires_at: NOW + Duration::from_secs(1),
    }
}

fn running(owner: &str, key: &str, at_most_once: bool) -> Record {
    Record {
        owner: owner.to_owned(),
        at_most_once,
        ..record(key, State::Running { until: NOW })
    }
}

async fn claims(memory: &Memory, key: &str) -> bool {
    let running = running("a", key, false);
    memory.claim(key, &running, NOW).await.unwrap().is_none()
}

/// Claims a call and finishes it.
async fn finishes(memory: &Memory, record: Record, state: State) {
    let key = record.claim.clone();
    let held = memory.claim(&key, &record, NOW).await.unwrap();
    assert_eq!(held, None, "{key}");
    let finished = Record { state, ..record };
    assert!(memory.finish(&key, &finished).await.unwrap(), "{key}");
}

/// What is held under a key, without a trace of the question.
fn held(memory: &Memory, key: &str) -> Option<Record> {
    let calls = memory.0.lock().unwrap();
    calls.records.get(key).map(|held| held.record.clone())
}

/// 4 MiB, the most that can be kept.
fn large() -> State {
    State::Finished(vec![0; MOST_BYTES / 4])
}

#[tokio::test]
async fn the_oldest_finished_calls_make_room_for_new_ones() {
    let memory = Memory::default();
    for i in 0..MOST_OF_ONE {
        assert!(claims(&memory, &i.to_string()).await);
    }
    for i in ["1", "2"] {
        memory.finish(i, &record(i, State::Ran)).await.unwrap();
    }
    assert!(claims(&memory, "new").await);
    assert!(!claims(&memory, "0").await, "still runs");
    assert!(claims(&memory, "1").await, "was the oldest finished one");
    assert!(!claims(&memory, "3").await);
}

#[tokio::test]
async fn calls_that_came_to_nothing_push_nothing_out() {
    let memory = Memory::default();
    finishes(&memory, running("a", "first", false), State::Ran).await;
    for i in 0..3 * MOST_OF_ONE {
        let key = i.to_string();
        assert!(claims(&memory, &key).await);
        memory.release(&key, &key).await.unwrap();
    }
    assert!(!claims(&memory, "first").await);
    let calls = memory.0.lock().unwrap();
    assert_eq!((calls.records.len(), calls.free.len()), (1, 1));
}

#[tokio::test]
async fn bytes_are_counted_too_and_given_back() {
    let memory = Memory::default();
    for i in ["a", "b", "c", "d", "e"] {
        finishes(&memory, running("a", i, false), large()).await;
    }
    let state = |held: Option<Record>| held.unwrap().state;
    assert_eq!(state(held(&memory, "a")), State::Ran, "made room");
    assert_eq!(state(held(&memory, "b")), large());
    assert!(!claims(&memory, "a").await, "does not run again");
    for i in ["a", "b", "c", "d", "e"] {
        memory.release(i, i).await.unwrap();
    }
    let calls = memory.0.lock().unwrap();
    assert!(calls.owners.is_empty() && calls.free.is_empty() && calls.records.is_empty());
    assert_eq!(calls.owners.bytes(), 0);
}

#[tokio::test]
async fn a_caller_with_very_many_calls_loses_their_own_and_no_at_most_once_call() {
    let memory = Memory::default();
    finishes(&memory, running("a", "a-once", true), State::Ran).await;
    finishes(&memory, running("a", "a-oldest", false), State::Ran).await;
    finishes(&memory, running("b", "b-once", true), State::Ran).await;
    finishes(&memory, running("b", "b-do", false), State::Ran).await;
    for i in 0..3 * MOST_OF_ONE {
        finishes(&memory, running("a", &i.to_string(), false), State::Ran).await;
    }
    for key in ["a-once", "b-once", "b-do"] {
        assert!(held(&memory, key).is_some(), "{key}");
    }
    assert!(held(&memory, "a-oldest").is_none());
    let calls = memory.0.lock().unwrap();
    assert_eq!(calls.owners.records_of("a"), MOST_OF_ONE);
}

#[tokio::test]
async fn a_caller_with_large_outcomes_loses_their_own() {
    let memory = Memory::default();
    let small = State::Finished(b"small".to_vec());
    finishes(&memory, running("b", "b-once", true), small.clone()).await;
    finishes(&memory, running("b", "b-do", false), small.clone()).await;
    for i in 0..8 {
        let key = format!("a-{i}");
        finishes(&memory, running("a", &key, i % 2 == 0), large()).await;
    }
    for key in ["b-once", "b-do"] {
        assert_eq!(held(&memory, key).unwrap().state, small, "{key}");
    }
    for i in 0..8 {
        let state = held(&memory, &format!("a-{i}")).unwrap().state;
        // Three are left beside the small ones.
        assert_eq!(state, if i < 5 { State::Ran } else { large() }, "{i}");
    }
}

#[tokio::test]
async fn together_callers_have_a_limit_too_and_who_holds_most_makes_room() {
    let memory = Memory::default();
    let flood = async |owner: &str, count: usize| {
        for i in 0..count {
            let key = format!("{owner}-{i}");
            finishes(&memory, running(owner, &key, false), State::Ran).await;
        }
    };
    flood("most", MOST_OF_ONE).await;
    for owner in ["b", "c", "d", "e", "f"] {
        flood(owner, MOST_OF_ONE - 2000).await;
    }
    flood("new", 10).await;
    let calls = memory.0.lock().unwrap();
    assert_eq!(calls.records.len(), MOST_CALLS);
    assert_eq!(calls.owners.records_of("most"), MOST_OF_ONE - 10);
    assert_eq!(calls.owners.records_of("b"), MOST_OF_ONE - 2000);
    assert!(!calls.records.contains_key("most-9"));
    assert!(calls.records.contains_key("most-10"));
}

#[tokio::test]
async fn where_nothing_can_be_forgotten_nothing_new_runs() {
    let memory = Memory::default();
    for i in 0..MOST_OF_ONE {
        finishes(&memory, running("a", &i.to_string(), true), State::Ran).await;
    }
    finishes(&memory, running("b", "b-do", false), State::Ran).await;
    let new = running("a", "new", false);
    let error = memory.claim("new", &new, NOW).await.unwrap_err();
    assert!(error.is_temporary());
    let text = error.to_string();
    assert!(text.contains("10000 calls of this caller"), "{text}");
    assert!(held(&memory, "new").is_none());
    assert!(held(&memory, "b-do").is_some(), "makes no room");
    // A repeated call is answered, and nobody else is hindered.
    assert!(!claims(&memory, "0").await);
    finishes(&memory, running("b", "b", true), State::Ran).await;
    // Everything has expired.
    let later = NOW + Duration::from_secs(1);
    assert_eq!(memory.claim("new", &new, later).await, Ok(None));
    assert_eq!(memory.0.lock().unwrap().records.len(), 1);
}

#[tokio::test]
async fn at_most_once_calls_of_everybody_have_a_limit_too() {
    let memory = Memory::default();
    for i in 0..MOST_CALLS {
        let owner = (i % 10).to_string();
        finishes(&memory, running(&owner, &i.to_string(), true), State::Ran).await;
    }
    let new = running("new", "new", true);
    let error = memory.claim("new", &new, NOW).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("50000 calls of all callers"), "{text}");
}

#[tokio::test]
async fn what_has_expired_goes_first() {
    let memory = Memory::default();
    let until = |key: &str, seconds| Record {
        free_at: NOW + Duration::from_secs(seconds),
        expires_at: NOW + Duration::from_secs(seconds),
        ..running("a", key, false)
    };
    finishes(&memory, until("oldest", 9), State::Ran).await;
    finishes(&memory, until("expired", 1), State::Ran).await;
    for i in 2..MOST_OF_ONE {
        finishes(&memory, until(&i.to_string(), 9), State::Ran).await;
    }
    let now = NOW + Duration::from_secs(1);
    let new = until("new", 9);
    assert_eq!(memory.claim("new", &new, now).await, Ok(None));
    assert!(held(&memory, "oldest").is_some());
    assert!(held(&memory, "expired").is_none());
}

#[tokio::test]
async fn what_is_lost_is_told_to_the_log_once() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(lines.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let memory = Memory::default();
    let text = || lines.text();
    for i in 0..MOST_OF_ONE {
        finishes(&memory, running("a", &i.to_string(), false), State::Ran).await;
    }
    assert_eq!(text(), "");
    for i in 0..6 {
        finishes(&memory, running("a", &format!("new-{i}"), false), large()).await;
    }
    let text = text();
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.contains("WARN"), "{text}");
    assert!(text.contains("run again when they are repeated"), "{text}");
    assert!(text.contains("cannot be told"), "{text}");
}
