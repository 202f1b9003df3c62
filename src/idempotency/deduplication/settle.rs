//! What becomes of a claim: its outcome is recorded, or it is released.

use std::time::{Duration, SystemTime};

use super::{Claim, Deduplication, RunEnd};
use crate::{
    Failure,
    idempotency::{CallRecord, CallState, outcome::encoded, record::OUTCOME},
    store::{self, PutOutcome, Store, within},
    tool::{output::Output, repeats::RepeatPolicy},
};

impl Deduplication {
    /// Records what came of a call, or releases it so that it can run again.
    ///
    /// The caller gets the outcome whether or not that goes well.
    pub(crate) async fn settle(
        &self,
        claim: Claim,
        duration: Duration,
        result: &Result<Output, Failure>,
        ending: RunEnd,
    ) {
        let Some(store) = self.idempotency.store.as_deref() else {
            return;
        };
        let Claim {
            key,
            record,
            policy,
            deadline,
        } = claim;
        let limit = self.time_to_settle(deadline);
        match afterwards(policy, result, ending) {
            // Whether it has its effect is not decided yet.
            Settlement::Wait => {}
            Settlement::Release => {
                let released = within(limit, store.delete(&key, record.claim)).await;
                if let Err(error) = released.flatten() {
                    tracing::warn!(%error, "a call is not released; it runs again only after its time");
                }
            }
            Settlement::Record => {
                let expires_at = self.clock.now() + self.idempotency.expire_after;
                let outcome = encoded(duration, result);
                let record = CallRecord {
                    state: if outcome.len() <= store.largest_field() {
                        CallState::Finished(outcome)
                    } else {
                        CallState::OutcomeDropped
                    },
                    free_at: expires_at,
                    expires_at,
                    ..record
                };
                self.record(store, &key, record.stored(), limit).await;
            }
        }
    }

    /// Writes a record in the place of its claim, again and again until its time is up.
    async fn record(
        &self,
        store: &dyn Store,
        key: &str,
        mut record: store::Record,
        limit: Duration,
    ) {
        let ends = tokio::time::Instant::now() + limit;
        loop {
            let left = ends.saturating_duration_since(tokio::time::Instant::now());
            let (over, now) = (Some(record.version), self.clock.now());
            let error = match store::put(store, left, (key, &record), over, now).await {
                Ok(PutOutcome::Written) => return,
                Ok(PutOutcome::Conflict(_)) => {
                    tracing::warn!("a call took longer than its claim; it may have run twice");
                    return;
                }
                Err(error) => error,
            };
            // The store does not take this one, and may take that it ran.
            if !error.is_temporary() && record.take(OUTCOME).is_some() {
                tracing::error!(%error, "an outcome cannot be kept");
                continue;
            }
            if left.is_zero() || !error.is_temporary() {
                tracing::error!(%error, "an outcome is not recorded, as if its process had died");
                return;
            }
            tokio::time::sleep(Duration::from_millis(100).min(left)).await;
        }
    }

    /// The answer has to leave before the platform stops the process. Never nothing: what is lost
    /// with the record is more than the answer.
    pub(super) fn time_to_settle(&self, deadline: Option<SystemTime>) -> Duration {
        const FOR_THE_ANSWER: Duration = Duration::from_millis(100);
        let limit = self.idempotency.timeout;
        let Some(deadline) = deadline else {
            return limit;
        };
        let left = deadline
            .duration_since(self.clock.now())
            .unwrap_or_default();
        limit.min(left.saturating_sub(FOR_THE_ANSWER).max(FOR_THE_ANSWER))
    }
}

/// What happens to a claim after its call.
enum Settlement {
    Record,
    Release,
    Wait,
}

fn afterwards(
    policy: RepeatPolicy,
    result: &Result<Output, Failure>,
    ending: RunEnd,
) -> Settlement {
    match (ending, policy, result) {
        (RunEnd::Stopped | RunEnd::Unstoppable, RepeatPolicy::AtMostOnce, _) => Settlement::Record,
        (RunEnd::NotStarted | RunEnd::Stopped, ..) => Settlement::Release,
        (RunEnd::Unstoppable, ..) => Settlement::Wait,
        (RunEnd::Returned, _, Err(failure)) if failure.can_retry() => Settlement::Release,
        (RunEnd::Returned, ..) => Settlement::Record,
    }
}
