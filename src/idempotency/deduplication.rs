//! Claiming calls, so that each runs once.

mod attempt;
mod replay;
mod settle;
#[cfg(test)]
mod tests;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use super::{CallIdentity, CallRecord, Idempotency};
use crate::{
    Failure, StoreError,
    clock::Clock,
    store::within,
    tool::{output::Output, repeats::RepeatPolicy},
};
use replay::still_running;

/// The calls of a server.
pub(crate) struct Deduplication {
    idempotency: Idempotency,
    clock: Clock,
    /// How many calls run whose outcome is to be recorded.
    running: AtomicUsize,
}

/// A call that runs, for as long as this is there.
pub(crate) struct RunningCall(Arc<Deduplication>);

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Why a call cannot be claimed. Nothing runs.
#[derive(Debug)]
pub(crate) enum ClaimError {
    /// The same `call_id` belongs to a call that asks for something else.
    IdReused,
    /// It cannot be told whether the call has run before.
    Unprotected(StoreError),
}

/// How far a call gets.
pub(crate) enum ClaimResult {
    /// It runs.
    Run,
    /// It runs, and what comes of it is recorded.
    Recorded(Claim),
    /// It has run, or runs elsewhere.
    Known(RecordedOutcome),
}

/// The right to run a call.
pub(crate) struct Claim {
    key: String,
    record: CallRecord,
    pub(crate) policy: RepeatPolicy,
    deadline: Option<SystemTime>,
}

/// What is known of a call without running it.
pub(crate) struct RecordedOutcome {
    pub(crate) duration: Duration,
    pub(crate) result: Result<Output, Failure>,
    /// Whether this is the outcome of an earlier call.
    pub(crate) is_replay: bool,
}

/// How a tool's run ended, as far as it matters for a second one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunEnd {
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
pub(crate) struct ClaimLimits {
    /// How long the tool may run from now on.
    pub(crate) tool: Duration,
    /// When the platform stops the process, if it does.
    pub(crate) deadline: Option<SystemTime>,
}

impl Deduplication {
    pub(crate) fn new(idempotency: Idempotency, clock: Clock) -> Self {
        Self {
            idempotency,
            clock,
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
        identity: CallIdentity,
        policy: RepeatPolicy,
        limits: impl Fn() -> ClaimLimits,
    ) -> Result<ClaimResult, ClaimError> {
        let Some(shared) = &self.idempotency.store else {
            return Ok(ClaimResult::Run);
        };
        let store = &**shared;
        let begun = tokio::time::Instant::now();
        let patience = self.idempotency.wait_for.min(limits().tool / 2);
        let mut runs_elsewhere = false;
        let mut pause = Duration::from_millis(50);
        loop {
            let (current, now) = (limits(), self.clock.now());
            let record = self.claim_of(&identity, policy, current, now);
            let deadline = current.deadline;
            let limit = self.idempotency.timeout.min(current.tool / 2);
            let held = match self.held(store, &identity.key, &record, now, limit).await {
                Ok(None) => {
                    let key = identity.key;
                    return Ok(ClaimResult::Recorded(Claim {
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
                    return Ok(ClaimResult::Known(still_running(begun.elapsed())));
                }
                // A store that is full is there, and knows of calls that must not run twice.
                Err(error)
                    if self.idempotency.runs_unprotected
                        && error.is_temporary()
                        && !error.is_full() =>
                {
                    self.release_beside(shared, identity.key, &record);
                    tracing::error!(%error, "the call runs without protection from repetition");
                    return Ok(ClaimResult::Run);
                }
                Err(error) => {
                    self.give_up(store, &identity.key, &record, deadline).await;
                    return Err(ClaimError::Unprotected(error));
                }
            };
            if held.fingerprint != identity.fingerprint {
                return Err(ClaimError::IdReused);
            }
            if let Some(known) = self.known(&held) {
                return Ok(ClaimResult::Known(known));
            }
            runs_elsewhere = true;
            let left = patience.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(ClaimResult::Known(still_running(begun.elapsed())));
            }
            tokio::time::sleep(pause.min(left)).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }
}
