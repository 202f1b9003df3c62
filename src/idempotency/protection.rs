//! Claiming calls, so that each runs once.

mod attempt;
mod given_up;
mod known;
mod settle;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use super::{Idempotency, Identity, Record};
use crate::{
    Failure,
    call::rejection::Rejection,
    clock::Host,
    store_error::within,
    tool::{output::Output, repeats::Policy},
};
use given_up::GivenUp;
use known::still_running;

/// The calls of a server.
pub(crate) struct Protection {
    idempotency: Idempotency,
    host: Host,
    /// Outcomes that the store did not take: the same call may come again to this process, and
    /// must not run again.
    unrecorded: Mutex<HashMap<String, Record>>,
    /// Claims under which nothing runs, whatever the store says.
    given_up: GivenUp,
    /// How many calls run whose outcome is to be recorded.
    running: AtomicUsize,
}

/// A call that runs, for as long as this is there.
pub(crate) struct RunningCall(Arc<Protection>);

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How far a call gets.
pub(crate) enum Claimed {
    /// It runs.
    Run,
    /// It runs, and what comes of it is recorded.
    Recorded(Claim),
    /// It has run, or runs elsewhere.
    Known(Known),
}

/// The right to run a call.
pub(crate) struct Claim {
    key: String,
    record: Record,
    pub(crate) policy: Policy,
    deadline: Option<SystemTime>,
}

/// What is known of a call without running it.
pub(crate) struct Known {
    pub(crate) duration: Duration,
    pub(crate) result: Result<Output, Failure>,
    /// Whether this is the outcome of an earlier call.
    pub(crate) is_replay: bool,
}

/// How a tool's run ended, as far as it matters for a second one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It gave a value or a failure.
    Returned,
    /// It panicked or was stopped: how far it got is not known.
    Stopped,
    /// It was to be stopped, and did not stop.
    Unstoppable,
    /// There was no time to begin.
    NotStarted,
}

/// What a call may take.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// How long the tool may run from now on.
    pub(crate) tool: Duration,
    /// When the platform stops the process, if it does.
    pub(crate) deadline: Option<SystemTime>,
}

impl Protection {
    pub(crate) fn new(idempotency: Idempotency, host: Host) -> Self {
        Self {
            idempotency,
            host,
            unrecorded: Mutex::default(),
            given_up: GivenUp::default(),
            running: AtomicUsize::new(0),
        }
    }

    /// Notes that a call runs, until what is returned is dropped.
    pub(crate) fn running(self: &Arc<Self>) -> RunningCall {
        self.running.fetch_add(1, Ordering::SeqCst);
        RunningCall(Arc::clone(self))
    }

    /// Waits until no call runs whose outcome is to be recorded.
    pub(crate) async fn idle(&self) {
        while self.running.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Whether calls are remembered at all.
    pub(crate) fn is_on(&self) -> bool {
        self.idempotency.store.is_some()
    }

    /// Gets the store ready, so that the first call does not wait for it.
    pub(crate) async fn warm(&self) {
        if let Some(store) = self.idempotency.store.as_deref()
            && let Err(error) = within(self.idempotency.timeout, store.warm_up())
                .await
                .flatten()
        {
            tracing::warn!(%error, "the store of calls is not ready");
        }
    }

    /// Claims a call, or finds out what came of it. Waits for one that runs elsewhere.
    pub(crate) async fn claim(
        &self,
        identity: Identity,
        policy: Policy,
        limits: impl Fn() -> Limits,
    ) -> Result<Claimed, Rejection> {
        let Some(store) = &self.idempotency.store else {
            return Ok(Claimed::Run);
        };
        let begun = tokio::time::Instant::now();
        let patience = self.idempotency.wait_for.min(limits().tool / 2);
        let mut runs_elsewhere = false;
        let mut pause = Duration::from_millis(50);
        loop {
            let (current, now) = (limits(), self.host.now());
            let record = self.claim_of(&identity, policy, current, now);
            let deadline = current.deadline;
            let limit = self.idempotency.timeout.min(current.tool / 2);
            let held = match self.held(store, &identity.key, &record, now, limit).await {
                Ok(None) => {
                    let key = identity.key;
                    return Ok(Claimed::Recorded(Claim {
                        key,
                        record,
                        policy,
                        deadline,
                    }));
                }
                Ok(Some(held)) => held,
                // It is known to run elsewhere, whatever the store says now.
                Err(_) if runs_elsewhere => {
                    self.give_up(store, &identity.key, &record, deadline).await;
                    return Ok(Claimed::Known(still_running(begun.elapsed())));
                }
                // A store that is full is there, and knows of calls that must not run twice.
                Err(error)
                    if self.idempotency.runs_unprotected
                        && error.is_temporary()
                        && !error.is_full() =>
                {
                    self.release_beside(store, identity.key, record);
                    tracing::error!(%error, "the call runs without protection from repetition");
                    return Ok(Claimed::Run);
                }
                Err(error) => {
                    self.give_up(store, &identity.key, &record, deadline).await;
                    return Err(Rejection::Unprotected(error));
                }
            };
            if !self.given_up.contains(&held.claim) {
                if held.fingerprint != identity.fingerprint {
                    return Err(Rejection::CallIdReused);
                }
                if let Some(known) = self.known(&held) {
                    return Ok(Claimed::Known(known));
                }
            }
            runs_elsewhere = true;
            let left = patience.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(Claimed::Known(still_running(begun.elapsed())));
            }
            tokio::time::sleep(pause.min(left)).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::FIXED, idempotency::State};

    async fn claims(protection: &Protection, left: Option<Duration>) -> bool {
        let identity = Identity {
            key: "key".into(),
            fingerprint: "print".into(),
            owner: "owner".into(),
        };
        let limits = || Limits {
            tool: Duration::from_millis(20),
            deadline: left.map(|left| FIXED.now() + left),
        };
        let claimed = protection.claim(identity, Policy::Recorded, limits).await;
        matches!(claimed.ok().unwrap(), Claimed::Recorded(_))
    }

    #[tokio::test]
    async fn a_call_without_time_left_is_over_and_not_of_unknown_length() {
        for (left, second) in [
            (Some(Duration::ZERO), true),
            (Some(Duration::from_millis(1)), false),
            (None, false),
        ] {
            let protection = Protection::new(Idempotency::in_memory(), FIXED);
            assert!(claims(&protection, left).await);
            // Nobody settles the first one: its process has died.
            assert_eq!(claims(&protection, left).await, second, "{left:?}");
        }
    }

    #[tokio::test]
    async fn a_memory_that_is_full_is_no_store_that_is_away() {
        let idempotency = Idempotency::in_memory().run_without_store();
        let protection = Protection::new(idempotency, FIXED);
        let limits = || Limits {
            tool: Duration::from_secs(1),
            deadline: None,
        };
        let claim = async |number: usize| {
            let identity = Identity {
                key: number.to_string(),
                fingerprint: "print".into(),
                owner: "owner".into(),
            };
            protection.claim(identity, Policy::AtMostOnce, limits).await
        };
        for number in 0..10_000 {
            assert!(matches!(claim(number).await, Ok(Claimed::Recorded(_))));
        }
        // It would run, and once more when it is repeated.
        let refused = claim(10_000).await.err().expect("a refusal");
        assert_eq!(refused.reason(), "unprotected");
        assert!(refused.is_temporary());
    }

    #[tokio::test]
    async fn a_clock_that_is_a_little_ahead_does_not_free_a_call_that_runs() {
        let moved = Arc::default();
        let host = FIXED.movable(&moved);
        let idempotency = Idempotency::in_memory().wait_for(Duration::ZERO);
        let protection = Protection::new(idempotency, host.clone());
        let identity = |key: &str| Identity {
            key: key.into(),
            fingerprint: "print".into(),
            owner: "owner".into(),
        };
        let until = FIXED.now() + Duration::from_secs(1);
        let limits = || Limits {
            tool: Duration::from_millis(20),
            deadline: Some(until.max(host.now() + Duration::from_millis(1))),
        };
        let claim = async |policy| {
            let key = format!("{policy:?}");
            protection.claim(identity(&key), policy, limits).await
        };
        for policy in [Policy::Recorded, Policy::AtMostOnce] {
            assert!(matches!(claim(policy).await, Ok(Claimed::Recorded(_))));
        }
        for (past_the_end, is_over) in [(0, false), (1500, false), (1999, false), (2500, true)] {
            moved.store(1000 + past_the_end, Ordering::SeqCst);
            let Ok(Claimed::Known(once)) = claim(Policy::AtMostOnce).await else {
                panic!("runs twice, {past_the_end} ms past the end");
            };
            let reason = once.result.unwrap_err().parts().reason;
            let expected = if is_over { "cut_off" } else { "running" };
            assert_eq!(reason, expected, "{past_the_end}");
            match claim(Policy::Recorded).await {
                Ok(Claimed::Recorded(_)) => assert!(is_over, "{past_the_end}"),
                Ok(Claimed::Known(known)) => {
                    assert!(!is_over, "{past_the_end}");
                    assert!(!known.is_replay, "not known to be cut off");
                }
                _ => panic!("{past_the_end}"),
            }
        }
    }

    /// Claims a call and records that it gave a text. None if it ran before.
    async fn runs(
        protection: &Protection,
        (owner, key): (&str, &str),
        policy: Policy,
        text: &str,
    ) -> Option<()> {
        let identity = Identity {
            key: format!("{owner} {key}"),
            fingerprint: "print".into(),
            owner: owner.into(),
        };
        let limits = || Limits {
            tool: Duration::from_secs(1),
            deadline: None,
        };
        let claim = match protection.claim(identity, policy, limits).await {
            Ok(Claimed::Recorded(claim)) => claim,
            Ok(Claimed::Known(known)) => {
                assert!(known.is_replay);
                return None;
            }
            _ => panic!("refused"),
        };
        let result = Ok(Output::Value(text.into()));
        let ending = Ending::Returned;
        let took = Duration::ZERO;
        protection.settle(claim, took, &result, ending).await;
        Some(())
    }

    #[tokio::test]
    async fn other_calls_do_not_make_an_at_most_once_call_run_again() {
        let protection = Protection::new(Idempotency::in_memory(), FIXED);
        let once = async || runs(&protection, ("a", "once"), Policy::AtMostOnce, "paid").await;
        let recorded = async || runs(&protection, ("b", "do"), Policy::Recorded, "done").await;
        assert!(once().await.is_some() && recorded().await.is_some());
        for i in 0..=10_000 {
            let call = ("a", &*i.to_string());
            runs(&protection, call, Policy::Recorded, "").await;
        }
        assert!(once().await.is_none(), "ran twice");
        assert!(recorded().await.is_none(), "another caller's");
    }

    #[test]
    fn what_is_known_of_a_running_call() {
        let protection = Protection::new(Idempotency::in_memory(), FIXED);
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
            let held = Record {
                claim: String::new(),
                fingerprint: String::new(),
                owner: String::new(),
                at_most_once,
                state: State::Running { until },
                free_at,
                expires_at: later,
            };
            assert_eq!(protection.known(&held).is_some(), is_known);
        }
    }

    #[tokio::test]
    async fn settling_has_the_time_that_the_platform_leaves() {
        let protection = Protection::new(Idempotency::in_memory(), FIXED);
        for (left, limit) in [(50, 100), (250, 150), (1000, 900), (60_000, 3000)] {
            let deadline = FIXED.now() + Duration::from_millis(left);
            let settling = protection.time_to_settle(Some(deadline));
            assert_eq!(settling, Duration::from_millis(limit), "{left}");
        }
        assert_eq!(protection.time_to_settle(None), Duration::from_secs(3));
    }
}
