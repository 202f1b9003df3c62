//! Claims of calls, so that each call runs only once.

mod attempt;
mod replay;
mod settle;
pub(crate) mod task;
#[cfg(test)]
mod tests;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{CallIdentity, CallRecord, CallState, Idempotency};
use crate::{
    Failure, StoreError,
    clock::Clock,
    store::within,
    tool::{output::Output, repeats::RepeatPolicy},
};
use replay::still_running;
use task::{NewTask, Task};

/// Recognizes repeated calls to a server.
pub(crate) struct Deduplication {
    idempotency: Idempotency,
    clock: Clock,
    /// Shared with each running call whose outcome will be recorded.
    running: Arc<()>,
}

/// The result of claiming a call.
pub(crate) enum ClaimResult {
    /// The call may run, but its outcome will not be recorded.
    Unclaimed,
    /// The call may run, and its outcome will be recorded.
    Claimed(Claim),
    /// The call has run already, or is running elsewhere.
    Duplicate(RecordedOutcome),
    /// The `call_id` belongs to a different call. This one does not run.
    IdReused,
}

/// The right to run a call.
#[derive(Clone)]
pub(crate) struct Claim {
    key: String,
    record: CallRecord,
    deadline: Option<SystemTime>,
}

/// The outcome of a duplicate call, which does not run.
pub(crate) struct RecordedOutcome {
    pub(crate) duration: Duration,
    pub(crate) result: Result<Output, Failure>,
    /// True for the outcome of an earlier call.
    pub(crate) is_replay: bool,
    /// The task of a call that is still running.
    pub(crate) task: Option<Box<Task>>,
}

/// The way a tool's run ended, as far as it matters for a repeated call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunEnd {
    /// The tool returned a value or a failure.
    Returned,
    /// The tool panicked or was stopped: how far it got is unknown.
    Stopped,
    /// The tool was aborted, and did not stop.
    Unstoppable,
    /// There was no time to start.
    NotStarted,
}

/// The time limits of a call.
#[derive(Clone, Copy)]
pub(crate) struct ClaimLimits {
    /// The time the tool has left.
    pub(crate) tool: Duration,
    /// The time for which the caller waits for a running call, if it is not the usual one.
    pub(crate) patience: Option<Duration>,
    /// The time at which the platform stops the process, if it does.
    pub(crate) deadline: Option<SystemTime>,
}

impl Claim {
    /// Returns the time at which the call is over, by the clock that the claim was made with.
    pub(crate) fn until(&self) -> Option<SystemTime> {
        match self.record.state {
            CallState::Running { until } => Some(until),
            CallState::Finished(_) | CallState::OutcomeDropped => None,
        }
    }
}

impl Deduplication {
    pub(crate) fn new(idempotency: Idempotency, clock: Clock) -> Self {
        Self {
            idempotency,
            clock,
            running: Arc::default(),
        }
    }

    /// Counts a call as running, until the returned value is dropped.
    pub(crate) fn count_running(&self) -> Arc<()> {
        Arc::clone(&self.running)
    }

    /// Waits until no call is running whose outcome will be recorded.
    pub(crate) async fn idle(&self) {
        while Arc::strong_count(&self.running) > 1 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Returns true if there is a store, so that calls are deduplicated.
    pub(crate) fn is_on(&self) -> bool {
        self.idempotency.store.is_some()
    }

    /// Returns true if all instances of a function remember the same calls.
    #[cfg(feature = "tasks")]
    pub(crate) fn is_shared(&self) -> bool {
        self.idempotency.shared_store().is_some()
    }

    /// Returns true if the store can keep a field of this many bytes.
    pub(crate) fn can_keep(&self, bytes: usize) -> bool {
        // Encryption adds a nonce and a tag.
        let store = self.idempotency.store.as_deref();
        store.is_some_and(|it| bytes + 64 <= it.largest_field())
    }

    /// Warms up the store, so that the first call does not wait for it.
    pub(crate) async fn warm_up(&self) {
        if let Some(store) = self.idempotency.store.as_deref()
            && let Err(error) = within(self.idempotency.timeout, store.warm_up())
                .await
                .flatten()
        {
            tracing::warn!(%error, "the store of calls could not be warmed up");
        }
    }

    /// Claims a call, or finds its outcome. If the call is running elsewhere, waits for its
    /// outcome. `task` makes the call a task. An error means that it is unknown whether the call has
    /// run before; it does not run.
    pub(crate) async fn claim(
        &self,
        identity: CallIdentity,
        policy: RepeatPolicy,
        limits: impl Fn() -> ClaimLimits,
        task: Option<&NewTask>,
    ) -> Result<ClaimResult, StoreError> {
        let Some(store) = &self.idempotency.store else {
            return Ok(ClaimResult::Unclaimed);
        };
        let started = tokio::time::Instant::now();
        let first = limits();
        let usual = || self.idempotency.wait_for.min(first.tool / 2);
        let patience = first.patience.unwrap_or_else(usual);
        let mut running = None;
        let mut pause = Duration::from_millis(50);
        loop {
            let (current, now) = (limits(), self.clock.now());
            let mut claim = self.new_claim(&identity, policy, current, now);
            if let Some(task) = task {
                task.turn(&mut claim.record, now, self.idempotency.expire_after);
            }
            let limit = self.idempotency.timeout.min(current.tool / 2);
            match self.write_claim(&**store, &claim, limit).await {
                Ok(None) => return Ok(ClaimResult::Claimed(claim)),
                Ok(Some(existing)) if existing.fingerprint != identity.fingerprint => {
                    return Ok(ClaimResult::IdReused);
                }
                Ok(Some(existing)) => match self.recorded_outcome(&existing) {
                    Some(outcome) => return Ok(ClaimResult::Duplicate(outcome)),
                    None => running = Some(existing),
                },
                // An earlier attempt found that the call is running elsewhere.
                Err(_) if running.is_some() => {
                    self.withdraw(claim).await;
                    break;
                }
                Err(error) => return self.run_unclaimed(store, claim, error).await,
            }
            let left = patience.saturating_sub(started.elapsed());
            if left.is_zero() {
                break;
            }
            tokio::time::sleep(pause.min(left)).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
        let task = running.and_then(|it| it.as_task(&identity.key, self.clock.now()));
        Ok(ClaimResult::Duplicate(RecordedOutcome {
            task: task.map(Box::new),
            ..still_running(started.elapsed())
        }))
    }
}
