use std::time::Duration;

use test_support::lines::Lines;

use super::*;
use crate::store::Over;

const NOW: SystemTime = SystemTime::UNIX_EPOCH;

const LIMITS: MemoryLimits = MemoryLimits {
    what: "calls",
    records: 4,
    bytes: 100,
    may_forget: |_, record| record.fields.iter().all(|(name, _)| name != "kept"),
    is_anyones: |id| id.starts_with("anyone"),
    forgotten: "the oldest are forgotten",
};

fn after(seconds: u64) -> SystemTime {
    NOW + Duration::from_secs(seconds)
}

/// Creates a record that may be forgotten, with some bytes.
fn record(bytes: usize) -> Record {
    Record {
        version: 1,
        fields: vec![("body".into(), Field::Bytes(vec![0; bytes]))],
        free_at: None,
        expires_at: after(1),
    }
}

/// Creates a record that may not be forgotten.
fn unforgettable(bytes: usize) -> Record {
    let mut record = record(bytes);
    record.fields.push(("kept".into(), Field::Number(1)));
    record
}

async fn try_put(
    memory: &Memory,
    id: &str,
    record: &Record,
    over: Over,
    now: SystemTime,
) -> Result<PutOutcome, StoreError> {
    let write = Write {
        id,
        record,
        over,
        now,
    };
    memory.put(write).await
}

async fn put(memory: &Memory, id: &str, record: Record, over: Over) -> PutOutcome {
    try_put(memory, id, &record, over, NOW).await.unwrap()
}

/// Creates a memory with these new records, whose ids are their positions.
async fn memory(records: impl IntoIterator<Item = Record>) -> Memory {
    let memory = Memory::new(LIMITS);
    for (id, record) in records.into_iter().enumerate() {
        let outcome = put(&memory, &id.to_string(), record, Over::Nothing).await;
        assert_eq!(outcome, PutOutcome::Written, "{id}");
    }
    memory
}

fn held(memory: &Memory) -> Vec<String> {
    let records = memory.records();
    let mut ids: Vec<_> = records.by_id.keys().cloned().collect();
    ids.sort();
    ids
}

#[tokio::test]
async fn of_two_writers_one_wins() {
    let first = record(1);
    let memory = memory([first.clone()]).await;
    let second = Record {
        version: 2,
        ..first.clone()
    };
    for over in [Over::Nothing, Over::Version(2)] {
        let conflict = put(&memory, "0", second.clone(), over).await;
        assert_eq!(conflict, PutOutcome::Conflict(Some(first.clone())));
    }
    let none = put(&memory, "other", second.clone(), Over::Version(1)).await;
    assert_eq!(none, PutOutcome::Conflict(None));
    let outcome = put(&memory, "0", second.clone(), Over::Version(1)).await;
    assert_eq!(outcome, PutOutcome::Written);
    memory.delete("0", 1).await.unwrap();
    assert_eq!(memory.get("0").await, Ok(Some(second)));
    memory.delete("0", 2).await.unwrap();
    assert_eq!(memory.get("0").await, Ok(None));
    assert_eq!(memory.records().bytes, 0);
}

#[tokio::test]
async fn the_oldest_forgettable_records_make_room_for_a_new_one() {
    for (bytes, expected) in [(0, ["0", "2", "3", "new"]), (55, ["0", "1", "3", "new"])] {
        let memory = memory([unforgettable(10), record(0), record(40), record(10)]).await;
        // The second one is no longer the oldest.
        if bytes > 0 {
            put(&memory, "1", record(0), Over::Version(1)).await;
        }
        put(&memory, "new", record(bytes), Over::Nothing).await;
        assert_eq!(held(&memory), expected, "{bytes}");
    }
}

#[tokio::test]
async fn new_records_are_rejected_if_none_can_be_forgotten() {
    let many = (0..4).map(|_| unforgettable(0));
    let large = [unforgettable(40), unforgettable(40)];
    // Nothing is forgotten if that makes no room.
    let small = [record(10), unforgettable(40), unforgettable(40)];
    for records in [many.collect::<Vec<_>>(), large.to_vec(), small.to_vec()] {
        let memory = memory(records).await;
        let before = held(&memory);
        let refused = try_put(&memory, "new", &record(21), Over::Nothing, NOW).await;
        let error = refused.unwrap_err();
        assert!(error.is_temporary() && error.is_full());
        assert!(error.to_string().contains("too many calls"), "{error}");
        assert_eq!(held(&memory), before);
        // Existing records can still be replaced; one without room stays as it is.
        let larger = try_put(&memory, "0", &unforgettable(101), Over::Version(1), NOW).await;
        assert!(larger.unwrap_err().is_full());
        let outcome = put(&memory, "0", unforgettable(1), Over::Version(1)).await;
        assert_eq!(outcome, PutOutcome::Written);
        // Everything has expired, and makes room.
        let outcome = try_put(&memory, "new", &record(70), Over::Nothing, after(1)).await;
        assert_eq!(outcome, Ok(PutOutcome::Written));
        assert_eq!(held(&memory), ["new"]);
    }
}

#[tokio::test]
async fn free_records_are_dropped_before_others_are_forgotten() {
    let free_after = |seconds| Record {
        free_at: Some(after(seconds)),
        expires_at: after(9),
        ..record(0)
    };
    let memory = memory([9, 1, 9, 9].map(free_after)).await;
    let outcome = try_put(&memory, "new", &free_after(9), Over::Nothing, after(1)).await;
    assert_eq!(outcome, Ok(PutOutcome::Written));
    assert_eq!(held(&memory), ["0", "2", "3", "new"]);
}

#[tokio::test]
async fn a_share_of_the_oldest_is_forgotten_at_once_and_logged() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(lines.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let memory = Memory::new(MemoryLimits {
        records: 60,
        ..LIMITS
    });
    for id in 10..70 {
        put(&memory, &id.to_string(), record(0), Over::Nothing).await;
    }
    assert_eq!(lines.text(), "");
    for id in ["a", "b", "c"] {
        put(&memory, id, record(0), Over::Nothing).await;
    }
    assert_eq!(held(&memory)[0], "13");
    let text = lines.text();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(
        text.contains("WARN") && text.contains("forgotten"),
        "{text}"
    );
}

#[tokio::test]
async fn what_anyone_can_write_takes_half_of_the_memory_and_pushes_nothing_out() {
    for (bytes, fitting) in [(0, 2), (24, 2), (26, 1)] {
        let memory = Memory::new(LIMITS);
        for (index, id) in ["anyone-a", "anyone-b", "anyone-c"].into_iter().enumerate() {
            let outcome = try_put(&memory, id, &unforgettable(bytes), Over::Nothing, NOW).await;
            assert_eq!(outcome.is_ok(), index < fitting, "{bytes} {id}");
        }
        let before = held(&memory);
        // The rest has its half, also for more than one.
        for id in ["session", "grant"] {
            let outcome = put(&memory, id, unforgettable(20), Over::Nothing).await;
            assert_eq!(outcome, PutOutcome::Written, "{bytes} {id}");
        }
        // Those that are there can be changed, even with less than half left.
        for id in &before {
            let outcome = put(&memory, id, unforgettable(bytes), Over::Version(1)).await;
            assert_eq!(outcome, PutOutcome::Written, "{bytes} {id}");
        }
        assert_eq!(held(&memory).len(), fitting + 2);
        let late = unforgettable(bytes);
        let late = try_put(&memory, "anyone-e", &late, Over::Nothing, NOW).await;
        assert!(late.unwrap_err().is_full());
        // They make room once they have expired.
        let outcome = try_put(&memory, "anyone-e", &record(0), Over::Nothing, after(1)).await;
        assert_eq!(outcome, Ok(PutOutcome::Written));
    }
}

#[tokio::test]
async fn what_others_hold_takes_nothing_of_the_half_for_anyone() {
    let memory = memory([0, 0, 0].map(unforgettable)).await;
    let outcome = put(&memory, "anyone-a", unforgettable(0), Over::Nothing).await;
    assert_eq!(outcome, PutOutcome::Written);
}
