use std::{future::pending, sync::atomic::AtomicBool};

use serde_json::{Value, json};

use super::*;
use crate::{
    Context, Server, Tool, Toolkit,
    clock::FIXED,
    idempotency::{CallState, LIMITS},
    store::{self, PutOutcome, Store, StoreFuture, memory::Memory},
    testing::LambdaFunction,
};

async fn claims(deduplication: &Deduplication, left: Option<Duration>) -> bool {
    let identity = CallIdentity {
        key: "key".into(),
        fingerprint: "print".into(),
        owner: "owner".into(),
    };
    let limits = || ClaimLimits {
        tool: Duration::from_millis(20),
        deadline: left.map(|left| FIXED.now() + left),
    };
    let claimed = deduplication
        .claim(identity, RepeatPolicy::Recorded, limits)
        .await;
    matches!(claimed.ok().unwrap(), ClaimResult::Recorded(_))
}

#[tokio::test]
async fn a_call_without_time_left_is_over_and_not_of_unknown_length() {
    for (left, second) in [
        (Some(Duration::ZERO), true),
        (Some(Duration::from_millis(1)), false),
        (None, false),
    ] {
        let deduplication = Deduplication::new(Idempotency::in_memory(), FIXED);
        assert!(claims(&deduplication, left).await);
        // Nobody settles the first one: its process has died.
        assert_eq!(claims(&deduplication, left).await, second, "{left:?}");
    }
}

#[tokio::test]
async fn a_memory_that_is_full_is_no_store_that_is_away() {
    let idempotency = Idempotency::in_memory().best_effort();
    let deduplication = Deduplication::new(idempotency, FIXED);
    let limits = || ClaimLimits {
        tool: Duration::from_secs(1),
        deadline: None,
    };
    let claim = async |number: usize| {
        let identity = CallIdentity {
            key: number.to_string(),
            fingerprint: "print".into(),
            owner: "owner".into(),
        };
        deduplication
            .claim(identity, RepeatPolicy::AtMostOnce, limits)
            .await
    };
    for number in 0..10_000 {
        assert!(matches!(claim(number).await, Ok(ClaimResult::Recorded(_))));
    }
    // It would run, and once more when it is repeated.
    let refused = claim(10_000).await.err().expect("a refusal");
    assert!(matches!(refused, ClaimError::Unprotected(error) if error.is_temporary()));
}

#[tokio::test]
async fn a_clock_that_is_a_little_ahead_does_not_free_a_call_that_runs() {
    let moved = Arc::default();
    let clock = FIXED.movable(&moved);
    let idempotency = Idempotency::in_memory().wait_for(Duration::ZERO);
    let deduplication = Deduplication::new(idempotency, clock.clone());
    let identity = |key: &str| CallIdentity {
        key: key.into(),
        fingerprint: "print".into(),
        owner: "owner".into(),
    };
    let until = FIXED.now() + Duration::from_secs(1);
    let limits = || ClaimLimits {
        tool: Duration::from_millis(20),
        deadline: Some(until.max(clock.now() + Duration::from_millis(1))),
    };
    let claim = async |policy| {
        let key = format!("{policy:?}");
        deduplication.claim(identity(&key), policy, limits).await
    };
    for policy in [RepeatPolicy::Recorded, RepeatPolicy::AtMostOnce] {
        assert!(matches!(claim(policy).await, Ok(ClaimResult::Recorded(_))));
    }
    for (past_the_end, is_over) in [(0, false), (1500, false), (1999, false), (2500, true)] {
        moved.store(1000 + past_the_end, Ordering::SeqCst);
        let Ok(ClaimResult::Known(once)) = claim(RepeatPolicy::AtMostOnce).await else {
            panic!("runs twice, {past_the_end} ms past the end");
        };
        let reason = once.result.unwrap_err().parts().reason;
        let expected = if is_over { "cut_off" } else { "running" };
        assert_eq!(reason.as_str(), expected, "{past_the_end}");
        match claim(RepeatPolicy::Recorded).await {
            Ok(ClaimResult::Recorded(_)) => assert!(is_over, "{past_the_end}"),
            Ok(ClaimResult::Known(known)) => {
                assert!(!is_over, "{past_the_end}");
                assert!(!known.is_replay, "not known to be cut off");
            }
            _ => panic!("{past_the_end}"),
        }
    }
}

/// Claims a call and records that it gave a text. None if it ran before.
async fn runs(
    deduplication: &Deduplication,
    (owner, key): (&str, &str),
    policy: RepeatPolicy,
    text: &str,
) -> Option<()> {
    let identity = CallIdentity {
        key: format!("{owner} {key}"),
        fingerprint: "print".into(),
        owner: owner.into(),
    };
    let limits = || ClaimLimits {
        tool: Duration::from_secs(1),
        deadline: None,
    };
    let claim = match deduplication.claim(identity, policy, limits).await {
        Ok(ClaimResult::Recorded(claim)) => claim,
        Ok(ClaimResult::Known(known)) => {
            assert!(known.is_replay);
            return None;
        }
        _ => panic!("refused"),
    };
    let result = Ok(Output::Value(text.into()));
    let ending = RunEnd::Returned;
    let took = Duration::ZERO;
    deduplication.settle(claim, took, &result, ending).await;
    Some(())
}

#[tokio::test]
async fn other_calls_do_not_make_an_at_most_once_call_run_again() {
    let deduplication = Deduplication::new(Idempotency::in_memory(), FIXED);
    let once = async || {
        runs(
            &deduplication,
            ("a", "once"),
            RepeatPolicy::AtMostOnce,
            "paid",
        )
        .await
    };
    let recorded = async || runs(&deduplication, ("b", "do"), RepeatPolicy::Recorded, "done").await;
    assert!(once().await.is_some() && recorded().await.is_some());
    for i in 0..=10_000 {
        let call = ("a", &*i.to_string());
        runs(&deduplication, call, RepeatPolicy::Recorded, "").await;
    }
    assert!(once().await.is_none(), "ran twice");
    assert!(recorded().await.is_none(), "another caller's");
}

#[test]
fn what_is_known_of_a_running_call() {
    let deduplication = Deduplication::new(Idempotency::in_memory(), FIXED);
    let now = FIXED.now();
    let ago = now - Duration::from_secs(2);
    let later = now + Duration::from_secs(1);
    for (until, free_at, at_most_once, is_known) in [
        (later, later, false, false),
        (now, now, false, false),
        (now, later, false, false),
        (ago, later, false, false),
        (now, later, true, false),
        (ago, now, true, false),
        (ago, later, true, true),
    ] {
        let held = CallRecord {
            claim: 1,
            fingerprint: String::new(),
            owner: String::new(),
            at_most_once,
            state: CallState::Running { until },
            free_at,
            expires_at: later,
        };
        assert_eq!(deduplication.known(&held).is_some(), is_known);
    }
}

#[tokio::test]
async fn settling_has_the_time_that_the_platform_leaves() {
    let deduplication = Deduplication::new(Idempotency::in_memory(), FIXED);
    for (left, limit) in [(50, 100), (250, 150), (1000, 900), (60_000, 3000)] {
        let deadline = FIXED.now() + Duration::from_millis(left);
        let settling = deduplication.time_to_settle(Some(deadline));
        assert_eq!(settling, Duration::from_millis(limit), "{left}");
    }
    assert_eq!(deduplication.time_to_settle(None), Duration::from_secs(3));
}

/// A store that writes claims, and loses the answers to the first ones.
struct Losing {
    memory: Memory,
    answers: AtomicUsize,
    /// Whether it answers deletions, and how late.
    deletes_after: Option<Duration>,
}

impl Losing {
    fn new(answers: usize, deletes_after: Option<Duration>) -> Self {
        Self {
            memory: Memory::new(LIMITS),
            answers: AtomicUsize::new(answers),
            deletes_after,
        }
    }
}

impl Store for Losing {
    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<store::Record>> {
        self.memory.get(id)
    }

    fn put<'a>(
        &'a self,
        id: &'a str,
        record: &'a store::Record,
        over: Option<u64>,
        now: SystemTime,
    ) -> StoreFuture<'a, PutOutcome> {
        Box::pin(async move {
            let put = self.memory.put(id, record, over, now).await?;
            let less = |count: usize| count.checked_sub(1);
            let lost = self
                .answers
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
            match lost {
                Ok(_) => Err(StoreError::unavailable("the answer was lost")),
                Err(_) => Ok(put),
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

fn identity(print: &str) -> CallIdentity {
    CallIdentity {
        key: "key".into(),
        fingerprint: print.into(),
        owner: "owner".into(),
    }
}

/// A claim by a call that has not much time.
async fn hasty(deduplication: &Deduplication) -> Result<ClaimResult, ClaimError> {
    let limits = || ClaimLimits {
        tool: Duration::from_secs(1),
        deadline: Some(FIXED.now() + Duration::from_millis(400)),
    };
    let claim = deduplication.claim(identity("print"), RepeatPolicy::AtMostOnce, limits);
    claim.await
}

#[tokio::test]
async fn a_call_whose_claim_was_lost_runs_once_when_it_is_repeated() {
    for lost in [1, 2] {
        for is_at_most_once in [false, true] {
            let effects = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&effects);
            let act = move |_: Value, _: Context| {
                let effect = counted.fetch_add(1, Ordering::SeqCst) + 1;
                async move { Ok::<_, Failure>(json!(effect)) }
            };
            let object = json!({"type": "object"});
            let tool = Tool::dynamic("Act.Do@1.0.0", "Acts.", object, json!({}), act);
            let tool = if is_at_most_once {
                tool.run_at_most_once()
            } else {
                tool
            };
            let store = Idempotency::in_store(Losing::new(lost, Some(Duration::ZERO)));
            let server = Server::new(Toolkit::new([tool]).unwrap());
            let function = LambdaFunction::new(server.idempotency(store.wait_for(Duration::ZERO)));
            let body = json!({"tool_id": "Act.Do", "call_id": "lost", "input": {}});
            let event = json!({
                "version": "2.0", "rawPath": "/tools/call", "rawQueryString": "",
                "headers": {}, "body": body.to_string(), "isBase64Encoded": false,
                "requestContext": {"stage": "$default", "timeEpoch": 0,
                                   "http": {"method": "POST", "path": "/tools/call"}},
            });
            let call = async || function.answer(&event.to_string()).await.unwrap();
            for _ in 0..lost {
                assert_eq!(call().await.status, 400, "nothing runs");
            }
            assert_eq!(effects.load(Ordering::SeqCst), 0);
            let answer = call().await;
            assert_eq!(answer.body["value"], 1, "{answer:?}");
            let again = call().await;
            assert_eq!(again.body["value"], 1);
            assert_eq!(again.headers["idempotent-replay"], "true");
        }
    }
}

#[tokio::test]
async fn another_call_may_take_the_id_of_one_that_never_ran() {
    let store = Losing::new(1, Some(Duration::from_millis(50)));
    let deduplication = Deduplication::new(Idempotency::in_store(store), FIXED);
    // The claim is taken back before the call is answered.
    assert!(hasty(&deduplication).await.is_err());
    let limits = || ClaimLimits {
        tool: Duration::from_secs(1),
        deadline: None,
    };
    let claimed = deduplication.claim(identity("other"), RepeatPolicy::Recorded, limits);
    assert!(matches!(claimed.await, Ok(ClaimResult::Recorded(_))));
}

#[tokio::test]
async fn taking_back_a_claim_leaves_time_for_the_answer() {
    let store = Losing::new(1, None);
    let deduplication = Deduplication::new(Idempotency::in_store(store), FIXED);
    let begun = std::time::Instant::now();
    assert!(hasty(&deduplication).await.is_err());
    // 300 ms of the call's 400; the store itself may take 3 seconds.
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(300), "{took:?}");
    assert!(took < Duration::from_secs(2), "{took:?}");
}

/// A store that takes nothing over what is there while it is down.
struct Down {
    memory: Memory,
    is_down: Arc<AtomicBool>,
}

impl Store for Down {
    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<store::Record>> {
        self.memory.get(id)
    }

    fn put<'a>(
        &'a self,
        id: &'a str,
        record: &'a store::Record,
        over: Option<u64>,
        now: SystemTime,
    ) -> StoreFuture<'a, PutOutcome> {
        if over.is_some() && self.is_down.load(Ordering::SeqCst) {
            return Box::pin(async { Err(StoreError::unavailable("down")) });
        }
        self.memory.put(id, record, over, now)
    }

    fn delete<'a>(&'a self, id: &'a str, version: u64) -> StoreFuture<'a, ()> {
        self.memory.delete(id, version)
    }
}

#[tokio::test]
async fn an_outcome_that_is_not_recorded_is_as_if_its_process_had_died() {
    for policy in [RepeatPolicy::Recorded, RepeatPolicy::AtMostOnce] {
        let (moved, is_down) = (Arc::default(), Arc::new(AtomicBool::new(true)));
        let clock = FIXED.movable(&moved);
        let store = Down {
            memory: Memory::new(LIMITS),
            is_down: Arc::clone(&is_down),
        };
        let idempotency = Idempotency::in_store(store).wait_for(Duration::ZERO);
        let idempotency = idempotency.timeout(Duration::from_millis(50));
        let deduplication = Deduplication::new(idempotency, clock);
        let limits = || ClaimLimits {
            tool: Duration::from_millis(500),
            deadline: Some(FIXED.now() + Duration::from_secs(1)),
        };
        let claim = async || deduplication.claim(identity("print"), policy, limits).await;
        let Ok(ClaimResult::Recorded(first)) = claim().await else {
            panic!("{policy:?}");
        };
        let result = Ok(Output::Value("done".into()));
        let settled = deduplication.settle(first, Duration::ZERO, &result, RunEnd::Returned);
        settled.await;
        is_down.store(false, Ordering::SeqCst);
        let Ok(ClaimResult::Known(known)) = claim().await else {
            panic!("{policy:?}");
        };
        assert_eq!(known.result.unwrap_err().parts().reason.as_str(), "running");
        moved.store(3000, Ordering::SeqCst);
        match claim().await {
            Ok(ClaimResult::Recorded(_)) => assert_eq!(policy, RepeatPolicy::Recorded),
            Ok(ClaimResult::Known(known)) => {
                assert_eq!(policy, RepeatPolicy::AtMostOnce);
                assert_eq!(known.result.unwrap_err().parts().reason.as_str(), "cut_off");
            }
            _ => panic!("{policy:?}"),
        }
    }
}
