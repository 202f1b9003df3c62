//! Claims of calls, so that each call runs only once.

mod settle;
pub mod task;
#[cfg(test)]
mod tests;

use std::{
    ops::ControlFlow::{self, Break, Continue},
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{CallIdentity, CallRecord, CallState, Idempotency, record::decode};
use crate::{
    Failure, StoreError,
    clock::Clock,
    store::{self, Over, PutOutcome, Store, Write, within},
    tool::{output::Output, reason::Reason, repeats::RepeatPolicy},
};
use task::{NewTask, Task};

/// The extra time for which a claim is held beyond the limits of the tool and the store, if the
/// platform sets no deadline.
const GRACE: Duration = Duration::from_secs(1);

/// The maximum difference between the clocks of two processes. To a process whose clock is ahead, a
/// call that is still running appears to have ended, so claims become free that much later.
const CLOCK_MARGIN: Duration = Duration::from_secs(2);

/// Recognizes repeated calls to a server.
pub struct Deduplication {
    idempotency: Idempotency,
    clock: Clock,
    /// Shared with each running call whose outcome will be recorded.
    running: Arc<()>,
}

/// The result of claiming a call.
pub enum ClaimResult {
    /// The call may run, and its outcome will be recorded.
    Claimed(Claim),
    /// The call has run already, or is running elsewhere.
    Duplicate(RecordedOutcome),
    /// The `call_id` belongs to a different call. This one does not run.
    IdReused,
}

/// The right to run a call.
#[derive(Clone)]
pub struct Claim {
    key: String,
    record: CallRecord,
    /// The time for which the outcome is remembered.
    expire_after: Duration,
    deadline: Option<SystemTime>,
}

/// The outcome of a duplicate call, which does not run.
pub struct RecordedOutcome {
    /// The time that the tool ran; zero if that is unknown.
    pub duration: Duration,
    /// The value or the failure of the call.
    pub result: Result<Output, Failure>,
    /// True for the outcome of an earlier call.
    pub is_replay: bool,
    /// The time since an equal call ended, if this is its outcome.
    pub age: Option<Duration>,
    /// The task of a call that is still running.
    pub task: Option<Box<Task>>,
}

/// The way a tool's run ended, as far as it matters for a repeated call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
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
pub struct ClaimLimits {
    /// The time the tool has left.
    pub tool: Duration,
    /// The time for which the caller waits for a running call, if it is not the usual one.
    pub patience: Option<Duration>,
    /// The time at which the platform stops the process, if it does.
    pub deadline: Option<SystemTime>,
}

impl Claim {
    /// Returns the time at which the call is over, by the clock that the claim was made with.
    pub fn until(&self) -> Option<SystemTime> {
        match self.record.state {
            CallState::Running { until } => Some(until),
            CallState::Finished(_) | CallState::OutcomeDropped => None,
        }
    }
}

impl Deduplication {
    /// Creates the deduplication of one server.
    pub fn new(idempotency: Idempotency, clock: Clock) -> Self {
        Self {
            idempotency,
            clock,
            running: Arc::default(),
        }
    }

    /// Counts a call as running, until the returned value is dropped.
    pub fn count_running(&self) -> Arc<()> {
        Arc::clone(&self.running)
    }

    /// Waits until no call is running whose outcome will be recorded.
    pub async fn idle(&self) {
        while Arc::strong_count(&self.running) > 1 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Returns true if there is a store, so that calls are deduplicated.
    pub fn is_on(&self) -> bool {
        self.idempotency.store.is_some()
    }

    /// Returns true if the store can keep a field of this many bytes.
    pub fn can_keep(&self, bytes: usize) -> bool {
        // Encryption adds a nonce and a tag.
        let store = self.idempotency.store.as_deref();
        store.is_some_and(|it| bytes + 64 <= it.largest_field())
    }

    /// Returns the store, which every claim has.
    fn store(&self) -> &dyn Store {
        let store = self.idempotency.store.as_deref();
        store.expect("there are no claims without a store")
    }

    /// Warms up the store, so that the first call does not wait for it.
    pub async fn warm_up(&self) {
        if let Some(store) = self.idempotency.store.as_deref()
            && let Err(error) = within(self.idempotency.timeout, store.warm_up()).await
        {
            tracing::warn!(%error, "the store of calls could not be warmed up");
        }
    }

    /// Claims a call, or finds its outcome. If the call is running elsewhere, waits for its
    /// outcome. `task` makes the call a task. An error means that it is unknown whether the call has
    /// run before; it does not run.
    ///
    /// # Panics
    /// Without a [store](Self::is_on).
    pub async fn claim(
        &self,
        identity: CallIdentity,
        policy: RepeatPolicy,
        limits: impl Fn() -> ClaimLimits,
        task: Option<&NewTask>,
    ) -> Result<ClaimResult, StoreError> {
        let started = tokio::time::Instant::now();
        let first = limits();
        let usual = || self.idempotency.wait_for.min(first.tool / 2);
        let patience = first.patience.unwrap_or_else(usual);
        let mut running = None;
        let mut pause = Duration::from_millis(50);
        loop {
            match self.try_claim(&identity, policy, limits(), task).await {
                Ok(Break(result)) => return Ok(result),
                Ok(Continue(existing)) => running = Some(existing),
                // An earlier attempt found that the call is running elsewhere.
                Err(_) if running.is_some() => break,
                Err(error) => return Err(error),
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
            duration: started.elapsed(),
            result: Err(still_running(identity.window.is_some())),
            is_replay: false,
            age: None,
            task: task.map(Box::new),
        }))
    }

    /// Tries to write a claim. If its call is running elsewhere, or will soon be free, nothing is decided
    /// yet, and its record is returned.
    async fn try_claim(
        &self,
        identity: &CallIdentity,
        policy: RepeatPolicy,
        limits: ClaimLimits,
        task: Option<&NewTask>,
    ) -> Result<ControlFlow<ClaimResult, CallRecord>, StoreError> {
        let now = self.clock.now();
        let mut claim = self.new_claim(identity, policy, limits, now);
        if let Some(task) = task {
            task.turn(&mut claim.record, now, self.idempotency.expire_after);
        }
        let limit = self.idempotency.timeout.min(limits.tool / 2);
        let existing = match self.write_claim(&claim, limit).await {
            Ok(Some(existing)) => existing,
            Ok(None) => return Ok(Break(ClaimResult::Claimed(claim))),
            Err(error) => {
                self.withdraw(claim).await;
                return Err(error);
            }
        };
        if existing.fingerprint != identity.fingerprint {
            return Ok(Break(ClaimResult::IdReused));
        }
        Ok(match self.recorded_outcome(&existing) {
            Some(mut outcome) => {
                let age = |window| {
                    let left = existing.expires_at.duration_since(now).unwrap_or_default();
                    Duration::saturating_sub(window, left)
                };
                outcome.age = identity.window.map(age);
                Break(ClaimResult::Duplicate(outcome))
            }
            None => Continue(existing),
        })
    }

    fn new_claim(
        &self,
        identity: &CallIdentity,
        policy: RepeatPolicy,
        limits: ClaimLimits,
        now: SystemTime,
    ) -> Claim {
        let to_settle = self.idempotency.timeout + GRACE;
        let until = limits.deadline.unwrap_or(now + limits.tool + to_settle);
        // With no time left, nothing runs, so clocks do not matter.
        let has_time = until > now;
        let over_at = if has_time {
            until + CLOCK_MARGIN
        } else {
            until
        };
        let expire_after = identity.window.unwrap_or(self.idempotency.expire_after);
        let expires_at = (now + expire_after).max(over_at);
        let at_most_once = policy == RepeatPolicy::AtMostOnce;
        let record = CallRecord {
            claim: store::new_version(),
            fingerprint: identity.fingerprint.clone(),
            at_most_once,
            state: CallState::Running { until },
            task: None,
            free_at: if at_most_once { expires_at } else { over_at },
            expires_at,
        };
        Claim {
            key: identity.key.clone(),
            record,
            expire_after,
            deadline: limits.deadline,
        }
    }

    /// Writes a claim. Returns the existing record that prevents it, if any.
    async fn write_claim(
        &self,
        claim: &Claim,
        limit: Duration,
    ) -> Result<Option<CallRecord>, StoreError> {
        let record = claim.record.clone().into_stored();
        match self.put(&claim.key, &record, Over::Nothing, limit).await? {
            PutOutcome::Written => Ok(None),
            PutOutcome::Conflict(Some(existing)) => CallRecord::from_stored(existing).map(Some),
            PutOutcome::Conflict(None) => Err(StoreError::unavailable(
                "the store rejected a claim without returning the existing record",
            )),
        }
    }

    async fn put(
        &self,
        id: &str,
        record: &store::Record,
        over: Over,
        limit: Duration,
    ) -> Result<PutOutcome, StoreError> {
        let now = self.clock.now();
        let write = Write {
            id,
            record,
            over,
            now,
        };
        store::put(self.store(), limit, write).await
    }

    /// Returns the outcome that the record of a call determines. `None` while the call is running,
    /// or if it may soon run again.
    fn recorded_outcome(&self, record: &CallRecord) -> Option<RecordedOutcome> {
        let now = self.clock.now();
        match &record.state {
            // The call is over, but not free yet: it must not run again.
            CallState::Running { until }
                if record.at_most_once && is_over(*until, now) && now < record.free_at =>
            {
                Some(RecordedOutcome::replay(Duration::ZERO, Err(cut_off())))
            }
            // The call is still running, or will soon be free.
            CallState::Running { .. } => None,
            state => Some(state.outcome()),
        }
    }

    /// Withdraws a claim that may have been written although the store did not confirm it, or whose
    /// call was not handed over: deletes it, or ends its task, which a repeated call may have found.
    /// The call must not run afterwards. Returns false if it may: it is a task that has been started or
    /// cancelled since, or the store does not respond.
    ///
    /// Must finish before the response is sent: afterwards the platform may stop the process.
    pub async fn withdraw(&self, claim: Claim) -> bool {
        let limit = self.time_to_settle(claim.deadline);
        let (id, version, mut record) = (&*claim.key, claim.record.claim, claim.record);
        let withdrawn = if record.end() {
            record.claim = store::new_version();
            let record = record.into_stored();
            let put = self.put(id, &record, Over::Version(version), limit);
            put.await.map(|outcome| outcome == PutOutcome::Written)
        } else {
            let deleted = within(limit, self.store().delete(id, version)).await;
            deleted.map(|()| true)
        };
        withdrawn.unwrap_or_else(|error| {
            tracing::debug!(%error, "a withdrawn claim may still be in the store");
            false
        })
    }
}

impl RecordedOutcome {
    fn replay(duration: Duration, result: Result<Output, Failure>) -> Self {
        Self {
            duration,
            result,
            is_replay: true,
            age: None,
            task: None,
        }
    }
}

impl CallState {
    /// Returns the outcome of a call that has ended.
    fn outcome(&self) -> RecordedOutcome {
        let kept = match self {
            Self::Finished(bytes) => decode(bytes),
            Self::Running { .. } | Self::OutcomeDropped => None,
        };
        let (duration, result) = kept.unwrap_or_else(|| (Duration::ZERO, Err(not_kept())));
        RecordedOutcome::replay(duration, result)
    }
}

/// Returns true if the call is over even by the clock of the process that runs it.
fn is_over(until: SystemTime, now: SystemTime) -> bool {
    now.duration_since(until)
        .is_ok_and(|since| since >= CLOCK_MARGIN)
}

fn still_running(is_equal: bool) -> Failure {
    let message = if is_equal {
        "An equal call has not ended yet. Nothing was run."
    } else {
        "A call with the same call_id has not ended yet."
    };
    Failure::internal(Reason::Running, "This call is still running")
        .developer_message(message)
        .retry_after(Duration::from_secs(1))
}

fn cut_off() -> Failure {
    Failure::internal(
        Reason::CutOff,
        "This call was cut off, and may have had its effect",
    )
    .developer_message("The process that ran the tool ended before it recorded an outcome.")
    .prompt(
        "Do not call the tool again without asking the user whether the first call did its work.",
    )
}

fn not_kept() -> Failure {
    let message = "This call has run, and its outcome is no longer available";
    Failure::internal(Reason::NotKept, message)
        .developer_message(
            "The outcome was too large to be kept, had to make room for others, or cannot be read.",
        )
        .prompt("Do not call the tool again for its effect, which may already have happened.")
}
