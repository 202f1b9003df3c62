use std::{
    future::pending,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

use serde_json::Value;

use super::{
    task::{NotStarted, TaskId, TaskState},
    *,
};
use crate::{
    clock::FIXED,
    idempotency::LIMITS,
    store::{
        self, Over, PutOutcome, Store, StoreFuture, Write,
        memory::{Memory, MemoryLimits},
    },
};

fn identity(key: &str, fingerprint: &str) -> CallIdentity {
    CallIdentity {
        key: key.into(),
        fingerprint: fingerprint.into(),
        window: None,
    }
}

/// Returns the limits of a call whose platform stops it after this time.
fn stopped_after(left: Option<Duration>) -> impl Fn() -> ClaimLimits {
    move || ClaimLimits {
        patience: None,
        tool: Duration::from_millis(500),
        deadline: left.map(|left| FIXED.now() + left),
    }
}

/// Claims a call whose platform stops it after this time.
async fn claim(
    deduplication: &Deduplication,
    key: &str,
    policy: RepeatPolicy,
    left: Option<Duration>,
) -> Result<ClaimResult, StoreError> {
    let identity = identity(key, "print");
    let claim = deduplication.claim(identity, policy, stopped_after(left), None);
    claim.await
}

/// Returns the reason of the failure that a duplicate call gets.
fn reason_of(outcome: RecordedOutcome) -> Option<&'static str> {
    let failure = outcome.result.err()?;
    Some(failure.parts().reason.as_str())
}

#[tokio::test]
async fn a_call_without_time_left_is_over_at_once() {
    for (left, second) in [
        (Some(Duration::ZERO), true),
        (Some(Duration::from_millis(1)), false),
        (None, false),
    ] {
        let idempotency = Idempotency::in_memory().wait_for(Duration::ZERO);
        let deduplication = Deduplication::new(idempotency, FIXED);
        let can_claim = async || {
            let claim = claim(&deduplication, "key", RepeatPolicy::Recorded, left);
            matches!(claim.await, Ok(ClaimResult::Claimed(_)))
        };
        assert!(can_claim().await);
        // The first claim is not settled, as if its process had died.
        assert_eq!(can_claim().await, second, "{left:?}");
    }
}

#[tokio::test]
async fn an_outcome_without_room_is_not_kept() {
    // There is room for the outcomes of four calls.
    let memory = Memory::new(MemoryLimits {
        bytes: 800,
        ..LIMITS
    });
    let deduplication = Deduplication::new(Idempotency::in_store(memory), FIXED);
    for number in 0..5 {
        let key = &*number.to_string();
        let claim = async || claim(&deduplication, key, RepeatPolicy::AtMostOnce, None).await;
        let Ok(ClaimResult::Claimed(first)) = claim().await else {
            panic!("{key}");
        };
        let result = Ok(Output::Value("x".repeat(150).into()));
        let settling = deduplication.settle(first, Duration::ZERO, &result, RunEnd::Returned);
        settling.await;
        let Ok(ClaimResult::Duplicate(again)) = claim().await else {
            panic!("{key} runs again");
        };
        let expected = (number == 4).then_some("not_kept");
        assert_eq!(reason_of(again), expected, "{key}");
    }
}

#[tokio::test]
async fn a_clock_that_is_slightly_ahead_does_not_free_a_running_call() {
    let moved = Arc::default();
    let clock = FIXED.movable(&moved);
    let idempotency = Idempotency::in_memory().wait_for(Duration::ZERO);
    let deduplication = Deduplication::new(idempotency, clock.clone());
    let until = FIXED.now() + Duration::from_secs(1);
    let limits = || ClaimLimits {
        patience: None,
        tool: Duration::from_millis(20),
        deadline: Some(until.max(clock.now() + Duration::from_millis(1))),
    };
    let claim = async |policy| {
        let identity = identity(&format!("{policy:?}"), "print");
        deduplication.claim(identity, policy, limits, None).await
    };
    for policy in [RepeatPolicy::Recorded, RepeatPolicy::AtMostOnce] {
        assert!(matches!(claim(policy).await, Ok(ClaimResult::Claimed(_))));
    }
    for (ms_past_end, is_over) in [(0, false), (1500, false), (1999, false), (2500, true)] {
        moved.store(1000 + ms_past_end, Ordering::SeqCst);
        let Ok(ClaimResult::Duplicate(once)) = claim(RepeatPolicy::AtMostOnce).await else {
            panic!("runs twice, {ms_past_end} ms past the end");
        };
        let expected = if is_over { "cut_off" } else { "running" };
        assert_eq!(reason_of(once), Some(expected), "{ms_past_end}");
        match claim(RepeatPolicy::Recorded).await {
            Ok(ClaimResult::Claimed(_)) => assert!(is_over, "{ms_past_end}"),
            Ok(ClaimResult::Duplicate(it)) => assert!(!is_over && !it.is_replay, "{ms_past_end}"),
            _ => panic!("{ms_past_end}"),
        }
    }
}

/// A store with faults.
struct FaultyStore {
    memory: Memory,
    /// The number of writes that are carried out, but whose responses are lost.
    losses: AtomicUsize,
    /// True while deletions never finish.
    hangs: bool,
    /// True while records cannot be replaced.
    is_down: Arc<AtomicBool>,
}

impl FaultyStore {
    fn new(losses: usize) -> Self {
        Self {
            memory: Memory::new(LIMITS),
            losses: AtomicUsize::new(losses),
            hangs: false,
            is_down: Arc::default(),
        }
    }
}

impl Store for FaultyStore {
    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<store::Record>> {
        self.memory.get(id)
    }

    fn put<'a>(&'a self, write: Write<'a>) -> StoreFuture<'a, PutOutcome> {
        Box::pin(async move {
            if write.over != Over::Nothing && self.is_down.load(Ordering::SeqCst) {
                return Err(StoreError::unavailable("down"));
            }
            let outcome = self.memory.put(write).await?;
            let decrement = |count: usize| count.checked_sub(1);
            let loss = self
                .losses
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, decrement);
            match loss {
                Ok(_) => Err(StoreError::unavailable("the response was lost")),
                Err(_) => Ok(outcome),
            }
        })
    }

    fn delete<'a>(&'a self, id: &'a str, version: u64) -> StoreFuture<'a, ()> {
        if self.hangs {
            return Box::pin(pending());
        }
        self.memory.delete(id, version)
    }
}

/// The claim is in the store, although its response was lost: it is withdrawn.
#[tokio::test]
async fn a_call_whose_claim_was_not_confirmed_can_be_repeated() {
    for losses in [1, 2] {
        for policy in [RepeatPolicy::Recorded, RepeatPolicy::AtMostOnce] {
            let idempotency = Idempotency::in_store(FaultyStore::new(losses));
            let deduplication = Deduplication::new(idempotency.wait_for(Duration::ZERO), FIXED);
            let claim = async || claim(&deduplication, "key", policy, None).await;
            for _ in 0..losses {
                assert!(claim().await.err().expect("an error").is_temporary());
            }
            assert!(matches!(claim().await, Ok(ClaimResult::Claimed(_))));
        }
    }
}

#[tokio::test]
async fn withdrawing_a_claim_leaves_time_for_the_response() {
    let store = FaultyStore {
        hangs: true,
        ..FaultyStore::new(1)
    };
    let deduplication = Deduplication::new(Idempotency::in_store(store), FIXED);
    let started = std::time::Instant::now();
    let left = Some(Duration::from_millis(400));
    let claimed = claim(&deduplication, "key", RepeatPolicy::AtMostOnce, left).await;
    assert!(claimed.is_err());
    // The withdrawal takes 300 of the call's 400 ms; the store's own limit is 3 seconds.
    let elapsed = started.elapsed();
    assert!(elapsed >= Duration::from_millis(300), "{elapsed:?}");
    assert!(elapsed < Duration::from_secs(2), "{elapsed:?}");
}

#[tokio::test]
async fn an_outcome_that_cannot_be_recorded_leaves_the_claim() {
    let store = FaultyStore::new(0);
    let is_down = Arc::clone(&store.is_down);
    is_down.store(true, Ordering::SeqCst);
    let idempotency = Idempotency::in_store(store).wait_for(Duration::ZERO);
    let idempotency = idempotency.timeout(Duration::from_millis(50));
    let deduplication = Deduplication::new(idempotency, FIXED);
    let claim = async || claim(&deduplication, "key", RepeatPolicy::Recorded, None).await;
    let Ok(ClaimResult::Claimed(first)) = claim().await else {
        panic!("it is claimed already");
    };
    let result = Ok(Output::Value("done".into()));
    let settling = deduplication.settle(first, Duration::ZERO, &result, RunEnd::Returned);
    settling.await;
    is_down.store(false, Ordering::SeqCst);
    let Ok(ClaimResult::Duplicate(outcome)) = claim().await else {
        panic!("it runs twice");
    };
    assert_eq!(reason_of(outcome), Some("running"));
}

/// Returns the id of a task, and claims its call.
async fn claimed_task(deduplication: &Deduplication, policy: RepeatPolicy) -> (TaskId, Claim) {
    let id = TaskId {
        key: "0".repeat(64),
        random: "1".repeat(32),
    };
    let task = NewTask {
        random: id.random.clone(),
        owner: "owner".into(),
        tool: "Act.Do@1.0.0".into(),
        sealed: vec![7],
        limit: Duration::from_mins(1),
    };
    let identity = identity(&id.key, "print");
    let claimed = deduplication.claim(identity, policy, stopped_after(None), Some(&task));
    let Ok(ClaimResult::Claimed(claim)) = claimed.await else {
        panic!("it is claimed already");
    };
    (id, claim)
}

/// Opens the call of a task, whose tool may take a minute.
fn open(sealed: &[u8]) -> Option<((), Duration)> {
    (sealed == [7]).then_some(((), Duration::from_mins(1)))
}

/// Makes a call a task, and starts it.
async fn started(deduplication: &Deduplication, deadline: Option<SystemTime>) -> (TaskId, Claim) {
    let (id, _) = claimed_task(deduplication, RepeatPolicy::Recorded).await;
    let started = deduplication.start(&id, deadline, open).await;
    (id, started.expect("it is in time").0)
}

/// Returns a task as its owner sees it, after cancelling it if `cancels` says so.
async fn task_of(deduplication: &Deduplication, id: &TaskId, cancels: bool) -> Task {
    let task = deduplication.task(id, "owner", cancels).await;
    task.unwrap().expect("it is its owner's")
}

#[tokio::test]
async fn a_task_that_is_not_handed_over_has_ended_and_its_call_may_be_repeated() {
    for policy in [RepeatPolicy::Recorded, RepeatPolicy::AtMostOnce] {
        let deduplication = Deduplication::new(Idempotency::in_memory(), FIXED);
        let (id, claim) = claimed_task(&deduplication, policy).await;
        assert!(deduplication.withdraw(claim).await);
        // A repeated call may have found the task.
        let TaskState::Lost(failure) = task_of(&deduplication, &id, false).await.state else {
            panic!("{policy:?}");
        };
        assert_eq!(failure.parts().reason.as_str(), "lost");
        let started = deduplication.start(&id, None, open).await;
        assert!(matches!(started, Err(NotStarted::TooLate)));
        claimed_task(&deduplication, policy).await;
    }
    // One that has started meanwhile goes on.
    let deduplication = Deduplication::new(Idempotency::in_memory(), FIXED);
    let (id, claim) = claimed_task(&deduplication, RepeatPolicy::Recorded).await;
    assert!(deduplication.start(&id, None, open).await.is_ok());
    assert!(!deduplication.withdraw(claim).await);
    let task = task_of(&deduplication, &id, false).await;
    assert!(matches!(task.state, TaskState::Working));
}

/// Two seconds after its time, by the platform or by its tool, a task is lost.
#[tokio::test]
async fn a_task_whose_process_has_ended_is_lost_after_its_time() {
    for (left, ms) in [(None, 64_000), (Some(5_000), 5_000), (Some(90_000), 64_000)] {
        let moved = Arc::default();
        let clock = FIXED.movable(&moved);
        let idempotency = Idempotency::in_memory().timeout(Duration::from_secs(3));
        let deduplication = Deduplication::new(idempotency, clock);
        let deadline = left.map(|left| FIXED.now() + Duration::from_millis(left));
        let (id, _) = started(&deduplication, deadline).await;
        for (at, is_lost) in [(ms + 1_999, false), (ms + 2_000, true)] {
            moved.store(at, Ordering::SeqCst);
            let task = task_of(&deduplication, &id, false).await;
            let is_cut_off = matches!(&task.state, TaskState::Lost(failure)
                if failure.parts().reason.as_str() == "cut_off");
            assert_eq!(is_cut_off, is_lost, "{left:?} {at}");
        }
    }
}

#[tokio::test]
async fn a_cancellation_that_races_with_the_record_of_the_end_is_kept() {
    // Whoever cancelled too late gets the value.
    for (fails, reports) in [(true, false), (true, true), (false, false), (false, true)] {
        let deduplication = Deduplication::new(Idempotency::in_memory(), FIXED);
        let (id, mut claim) = started(&deduplication, None).await;
        if reports {
            let message = Some("half".to_owned());
            assert!(!deduplication.note(&mut claim, message).await.unwrap());
        }
        // The worker has not looked since then.
        let task = task_of(&deduplication, &id, true).await;
        assert!(matches!(task.state, TaskState::Working));
        let result = if fails {
            Err(Failure::new("stopped"))
        } else {
            Ok(Output::Value("done".into()))
        };
        let settling = deduplication.settle(claim, Duration::ZERO, &result, RunEnd::Returned);
        settling.await;
        let task = task_of(&deduplication, &id, false).await;
        match task.state {
            TaskState::Cancelled => assert!(fails),
            TaskState::Ended(it) => assert!(it.result.is_ok() && !fails),
            _ => panic!("{fails} {reports}"),
        }
        assert_eq!(task.message.as_deref(), reports.then_some("half"));
    }
}

#[tokio::test]
async fn a_report_and_a_cancellation_do_not_undo_each_other() {
    let deduplication = Deduplication::new(Idempotency::in_memory(), FIXED);
    let (id, mut claim) = started(&deduplication, None).await;
    task_of(&deduplication, &id, true).await;
    // The first report meets the cancellation, which the worker learns of.
    let note = async |claim: &mut Claim| {
        let message = Some("half".to_owned());
        deduplication.note(claim, message).await.unwrap()
    };
    assert!(note(&mut claim).await);
    assert!(note(&mut claim).await);
    let task = task_of(&deduplication, &id, false).await;
    assert_eq!(task.message.as_deref(), Some("half"));
}

#[tokio::test]
async fn the_time_to_record_is_that_before_the_deadline() {
    let idempotency = Idempotency::in_memory().timeout(Duration::from_secs(3));
    let deduplication = Deduplication::new(idempotency, FIXED);
    for (left, limit) in [
        (None, 3_000),
        (Some(10_000), 3_000),
        (Some(3_100), 3_000),
        (Some(1_100), 1_000),
        (Some(150), 100),
        (Some(0), 100),
    ] {
        let deadline = left.map(|left| FIXED.now() + Duration::from_millis(left));
        let expected = Duration::from_millis(limit);
        assert_eq!(deduplication.time_to_settle(deadline), expected, "{left:?}");
    }
}

/// Each outcome settles its claim as in the rows of `docs/calls.md`.
#[test]
fn claims_are_recorded_released_or_left_as_the_page_says() {
    use super::settle::{
        Settlement::{Record, Release, Wait},
        settlement,
    };
    use RunEnd::{NotStarted, Returned, Stopped, Unstoppable};

    let failure = || Failure::new("no");
    for (end, result, usual, once) in [
        (Returned, Ok(Output::Value(Value::Null)), Record, Record),
        (Returned, Err(failure()), Record, Record),
        (Returned, Err(failure().retry()), Release, Release),
        (Stopped, Err(failure()), Release, Record),
        (Stopped, Err(failure().retry()), Release, Record),
        (Unstoppable, Err(failure()), Wait, Record),
        (NotStarted, Err(failure()), Release, Release),
    ] {
        for (is_once, expected) in [(false, usual), (true, once)] {
            let actual = settlement(is_once, &result, end);
            assert_eq!(actual, expected, "{end:?} {is_once}");
        }
    }
}
