use std::{future::pending, sync::atomic::AtomicBool};

use serde_json::{Value, json};

use super::*;
use crate::{
    Context, Server, Tool, Toolkit,
    clock::FIXED,
    idempotency::{CallState, LIMITS},
    store::{
        self, Over, PutOutcome, Store, StoreFuture, Write,
        memory::{Memory, MemoryLimits},
    },
    testing::LambdaFunction,
};

fn identity(key: &str, fingerprint: &str) -> CallIdentity {
    CallIdentity {
        key: key.into(),
        fingerprint: fingerprint.into(),
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

#[tokio::test]
async fn a_call_without_time_left_is_over_at_once() {
    for (left, second) in [
        (Some(Duration::ZERO), true),
        (Some(Duration::from_millis(1)), false),
        (None, false),
    ] {
        let deduplication =
            Deduplication::new(Idempotency::in_memory().wait_for(Duration::ZERO), FIXED);
        let can_claim = async || {
            let limits = stopped_after(left);
            let identity = identity("key", "print");
            let claim = deduplication.claim(identity, RepeatPolicy::Recorded, limits, None);
            matches!(claim.await, Ok(ClaimResult::Claimed(_)))
        };
        assert!(can_claim().await);
        // The first claim is not settled, as if its process had died.
        assert_eq!(can_claim().await, second, "{left:?}");
    }
}

/// Creates a memory for a few calls, and for the outcomes of four.
fn small_memory(records: usize) -> Idempotency {
    Idempotency::in_store(Memory::new(MemoryLimits {
        records,
        bytes: 800,
        ..LIMITS
    }))
}

#[tokio::test]
async fn a_full_memory_is_not_an_unreachable_store() {
    let deduplication = Deduplication::new(small_memory(2).best_effort(), FIXED);
    let claim = async |key: &str| {
        let identity = identity(key, "print");
        let claim = deduplication.claim(
            identity,
            RepeatPolicy::AtMostOnce,
            stopped_after(None),
            None,
        );
        claim.await
    };
    for key in ["1", "2"] {
        assert!(matches!(claim(key).await, Ok(ClaimResult::Claimed(_))));
    }
    // Otherwise the call would run now, and again if it is repeated.
    let error = claim("3").await.err().expect("an error");
    assert!(matches!(error, ClaimError::Unprotected(error) if error.is_temporary()));
}

#[tokio::test]
async fn an_outcome_without_room_is_not_kept() {
    let deduplication = Deduplication::new(small_memory(9), FIXED);
    for number in 0..5 {
        let key = &*number.to_string();
        let claim = async || {
            let identity = identity(key, "print");
            let claim = deduplication.claim(
                identity,
                RepeatPolicy::AtMostOnce,
                stopped_after(None),
                None,
            );
            claim.await
        };
        let Ok(ClaimResult::Claimed(first)) = claim().await else {
            panic!("{key}");
        };
        let result = Ok(Output::Value("x".repeat(150).into()));
        let settling = deduplication.settle(first, Duration::ZERO, &result, RunEnd::Returned);
        settling.await;
        let Ok(ClaimResult::Duplicate(again)) = claim().await else {
            panic!("{key} runs again");
        };
        let error = again.result.err().map(|it| it.parts().reason.as_str());
        assert_eq!(error, (number == 4).then_some("not_kept"), "{key}");
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
        let reason = once.result.unwrap_err().parts().reason;
        let expected = if is_over { "cut_off" } else { "running" };
        assert_eq!(reason.as_str(), expected, "{ms_past_end}");
        match claim(RepeatPolicy::Recorded).await {
            Ok(ClaimResult::Claimed(_)) => assert!(is_over, "{ms_past_end}"),
            Ok(ClaimResult::Duplicate(outcome)) => {
                assert!(!is_over, "{ms_past_end}");
                assert!(!outcome.is_replay, "not cut off yet");
            }
            _ => panic!("{ms_past_end}"),
        }
    }
}

#[test]
fn only_a_call_that_was_cut_off_has_an_outcome_without_finishing() {
    let deduplication = Deduplication::new(Idempotency::in_memory(), FIXED);
    let now = FIXED.now();
    let ago = now - Duration::from_secs(2);
    let later = now + Duration::from_secs(1);
    for (until, free_at, at_most_once, has_outcome) in [
        (later, later, false, false),
        (now, now, false, false),
        (now, later, false, false),
        (ago, later, false, false),
        (now, later, true, false),
        (ago, now, true, false),
        (ago, later, true, true),
    ] {
        let record = CallRecord {
            claim: 1,
            fingerprint: String::new(),
            at_most_once,
            state: CallState::Running { until },
            task: None,
            free_at,
            expires_at: later,
        };
        let outcome = deduplication.recorded_outcome(&record);
        assert_eq!(outcome.is_some(), has_outcome);
    }
}

#[tokio::test]
async fn settling_is_limited_by_the_platforms_deadline() {
    let deduplication = Deduplication::new(Idempotency::in_memory(), FIXED);
    for (left, limit) in [(50, 100), (250, 150), (1000, 900), (60_000, 3000)] {
        let deadline = FIXED.now() + Duration::from_millis(left);
        let time = deduplication.time_to_settle(Some(deadline));
        assert_eq!(time, Duration::from_millis(limit), "{left}");
    }
    assert_eq!(deduplication.time_to_settle(None), Duration::from_secs(3));
}

/// A store that writes claims, but whose first responses are lost.
struct LossyStore {
    memory: Memory,
    losses: AtomicUsize,
    /// The delay of deletions; `None` if they never finish.
    deletes_after: Option<Duration>,
}

impl LossyStore {
    fn new(losses: usize, deletes_after: Option<Duration>) -> Self {
        Self {
            memory: Memory::new(LIMITS),
            losses: AtomicUsize::new(losses),
            deletes_after,
        }
    }
}

impl Store for LossyStore {
    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<store::Record>> {
        self.memory.get(id)
    }

    fn put<'a>(&'a self, write: Write<'a>) -> StoreFuture<'a, PutOutcome> {
        Box::pin(async move {
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
        Box::pin(async move {
            match self.deletes_after {
                Some(time) => tokio::time::sleep(time).await,
                None => pending().await,
            }
            self.memory.delete(id, version).await
        })
    }
}

/// Claims for a call with little time left.
async fn claim_in_a_hurry(deduplication: &Deduplication) -> Result<ClaimResult, ClaimError> {
    let limits = stopped_after(Some(Duration::from_millis(400)));
    let claim = deduplication.claim(
        identity("key", "print"),
        RepeatPolicy::AtMostOnce,
        limits,
        None,
    );
    claim.await
}

#[tokio::test]
async fn a_call_whose_claim_was_not_confirmed_runs_once_if_repeated() {
    for losses in [1, 2] {
        for is_at_most_once in [false, true] {
            let effects = Arc::new(AtomicUsize::new(0));
            let counter = Arc::clone(&effects);
            let act = move |_: Value, _: Context| {
                let effect = counter.fetch_add(1, Ordering::SeqCst) + 1;
                async move { Ok::<_, Failure>(json!(effect)) }
            };
            let object = json!({"type": "object"});
            let tool = Tool::dynamic("Act.Do@1.0.0", "Acts.", object, json!({}), act);
            let tool = if is_at_most_once {
                tool.run_at_most_once()
            } else {
                tool
            };
            let store = LossyStore::new(losses, Some(Duration::ZERO));
            let idempotency = Idempotency::in_store(store).wait_for(Duration::ZERO);
            let server = Server::new(Toolkit::new([tool]).unwrap());
            let function = LambdaFunction::new(server.idempotency(idempotency));
            let body = json!({"tool_id": "Act.Do", "call_id": "lost", "input": {}});
            let event = json!({
                "version": "2.0", "rawPath": "/tools/call", "rawQueryString": "",
                "headers": {}, "body": body.to_string(), "isBase64Encoded": false,
                "requestContext": {"stage": "$default", "timeEpoch": 0,
                                   "http": {"method": "POST", "path": "/tools/call"}},
            });
            let call = async || function.respond(&event.to_string()).await.unwrap();
            for _ in 0..losses {
                assert_eq!(call().await.status, 400, "nothing runs");
            }
            assert_eq!(effects.load(Ordering::SeqCst), 0);
            let response = call().await;
            assert_eq!(response.body["value"], 1, "{response:?}");
            let replay = call().await;
            assert_eq!(replay.body["value"], 1);
            assert_eq!(replay.headers["idempotent-replay"], "true");
        }
    }
}

#[tokio::test]
async fn another_call_may_take_the_id_of_one_that_never_ran() {
    let store = LossyStore::new(1, Some(Duration::from_millis(50)));
    let deduplication = Deduplication::new(Idempotency::in_store(store), FIXED);
    // The claim is withdrawn before the response is sent.
    assert!(claim_in_a_hurry(&deduplication).await.is_err());
    let limits = stopped_after(None);
    let claim = deduplication.claim(
        identity("key", "other"),
        RepeatPolicy::Recorded,
        limits,
        None,
    );
    assert!(matches!(claim.await, Ok(ClaimResult::Claimed(_))));
}

#[tokio::test]
async fn withdrawing_a_claim_leaves_time_for_the_response() {
    let store = LossyStore::new(1, None);
    let deduplication = Deduplication::new(Idempotency::in_store(store), FIXED);
    let started = std::time::Instant::now();
    assert!(claim_in_a_hurry(&deduplication).await.is_err());
    // The withdrawal takes 300 of the call's 400 ms; the store's own limit is 3 seconds.
    let elapsed = started.elapsed();
    assert!(elapsed >= Duration::from_millis(300), "{elapsed:?}");
    assert!(elapsed < Duration::from_secs(2), "{elapsed:?}");
}

/// A store that cannot replace records while it is down.
struct UnavailableStore {
    memory: Memory,
    is_down: Arc<AtomicBool>,
}

impl Store for UnavailableStore {
    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<store::Record>> {
        self.memory.get(id)
    }

    fn put<'a>(&'a self, write: Write<'a>) -> StoreFuture<'a, PutOutcome> {
        if write.over != Over::Nothing && self.is_down.load(Ordering::SeqCst) {
            return Box::pin(async { Err(StoreError::unavailable("down")) });
        }
        self.memory.put(write)
    }

    fn delete<'a>(&'a self, id: &'a str, version: u64) -> StoreFuture<'a, ()> {
        self.memory.delete(id, version)
    }
}

#[tokio::test]
async fn an_outcome_that_cannot_be_recorded_leaves_the_claim() {
    for policy in [RepeatPolicy::Recorded, RepeatPolicy::AtMostOnce] {
        let (moved, is_down) = (Arc::default(), Arc::new(AtomicBool::new(true)));
        let clock = FIXED.movable(&moved);
        let store = UnavailableStore {
            memory: Memory::new(LIMITS),
            is_down: Arc::clone(&is_down),
        };
        let idempotency = Idempotency::in_store(store).wait_for(Duration::ZERO);
        let idempotency = idempotency.timeout(Duration::from_millis(50));
        let deduplication = Deduplication::new(idempotency, clock);
        let limits = stopped_after(Some(Duration::from_secs(1)));
        let claim = async || {
            deduplication
                .claim(identity("key", "print"), policy, &limits, None)
                .await
        };
        let Ok(ClaimResult::Claimed(first)) = claim().await else {
            panic!("{policy:?}");
        };
        let result = Ok(Output::Value("done".into()));
        let settling = deduplication.settle(first, Duration::ZERO, &result, RunEnd::Returned);
        settling.await;
        is_down.store(false, Ordering::SeqCst);
        let reason = |outcome: RecordedOutcome| outcome.result.unwrap_err().parts().reason;
        let Ok(ClaimResult::Duplicate(outcome)) = claim().await else {
            panic!("{policy:?}");
        };
        assert_eq!(reason(outcome).as_str(), "running");
        moved.store(3000, Ordering::SeqCst);
        match claim().await {
            Ok(ClaimResult::Claimed(_)) => assert_eq!(policy, RepeatPolicy::Recorded),
            Ok(ClaimResult::Duplicate(outcome)) => {
                assert_eq!(policy, RepeatPolicy::AtMostOnce);
                assert_eq!(reason(outcome).as_str(), "cut_off");
            }
            _ => panic!("{policy:?}"),
        }
    }
}
