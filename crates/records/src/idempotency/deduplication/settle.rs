//! Settles a claim: records the outcome of its call, or releases it.

use std::time::{Duration, SystemTime};

use super::{Claim, Deduplication, RunEnd, task::ALWAYS};
use crate::{
    Failure,
    idempotency::{
        CallRecord, CallState,
        record::{OUTCOME, encode},
    },
    store::{Over, PutOutcome, within},
    tool::output::Output,
};

impl Deduplication {
    /// Records the outcome of a call, or releases its claim so that the call can run again.
    ///
    /// The caller gets the outcome whether or not this succeeds.
    pub async fn settle(
        &self,
        claim: Claim,
        duration: Duration,
        result: &Result<Output, Failure>,
        end: RunEnd,
    ) {
        let (store, now) = (self.store(), self.clock.now());
        let Claim {
            key,
            mut record,
            expire_after,
            deadline,
        } = claim;
        let (over, limit) = (record.claim, self.time_to_settle(deadline));
        let settlement = settlement(record.at_most_once, result, end);
        if record.task.is_some() {
            // Kept in any case: nobody else has the outcome. A repeated call may replace the record
            // if it could have a better one.
            match settlement {
                Settlement::Record => record.free_at = record.expires_at,
                Settlement::Release => record.free_at = ALWAYS,
                Settlement::Wait => {}
            }
            record.renew(now);
        } else {
            match settlement {
                // The tool may still have its effect.
                Settlement::Wait => return,
                Settlement::Release => {
                    let released = within(limit, store.delete(&key, over)).await;
                    if let Err(error) = released {
                        tracing::warn!(
                            %error,
                            "a claim could not be released; it blocks repeated calls until it expires"
                        );
                    }
                    return;
                }
                Settlement::Record => {
                    record.expires_at = now + expire_after;
                    record.free_at = record.expires_at;
                }
            }
        }
        let outcome = encode(duration, result);
        record.state = if outcome.len() <= store.largest_field() {
            CallState::Finished(outcome)
        } else {
            CallState::OutcomeDropped
        };
        self.record(&key, record, over, limit).await;
    }

    /// Replaces a claim with a record, and retries until the time is up.
    async fn record(&self, key: &str, mut finished: CallRecord, mut over: u64, limit: Duration) {
        let mut record = finished.clone().into_stored();
        let end = tokio::time::Instant::now() + limit;
        loop {
            let left = end.saturating_duration_since(tokio::time::Instant::now());
            let error = match self.put(key, &record, Over::Version(over), left).await {
                Ok(PutOutcome::Written) => return,
                Ok(PutOutcome::Conflict(current)) => {
                    // A task's progress or cancellation may have been written in the meantime.
                    if let Some(current) = current.and_then(|it| finished.task_in(it)) {
                        over = current.claim;
                        if let (Some(task), Some(other)) = (&mut finished.task, &current.task) {
                            task.is_cancelled |= other.is_cancelled;
                        }
                        record = finished.clone().into_stored();
                        continue;
                    }
                    tracing::warn!("a call outlasted its claim and may have run twice");
                    return;
                }
                Err(error) => error,
            };
            // The store rejects the outcome, but may accept a record that the call ran.
            let is_rejected = error.is_full() || !error.is_temporary();
            if is_rejected && record.take(OUTCOME).is_some() {
                tracing::error!(
                    %error,
                    "an outcome could not be recorded, only the fact that its call ran"
                );
                continue;
            }
            if left.is_zero() || !error.is_temporary() {
                tracing::error!(%error, "an outcome could not be recorded; its claim remains");
                return;
            }
            tokio::time::sleep(Duration::from_millis(100).min(left)).await;
        }
    }

    /// Returns the time left for settling: the response must be sent before the platform stops the
    /// process. Never zero, because losing the record is worse than losing the response.
    pub(super) fn time_to_settle(&self, deadline: Option<SystemTime>) -> Duration {
        const FOR_RESPONSE: Duration = Duration::from_millis(100);
        let limit = self.idempotency.timeout;
        let Some(deadline) = deadline else {
            return limit;
        };
        let left = deadline
            .duration_since(self.clock.now())
            .unwrap_or_default();
        limit.min(left.saturating_sub(FOR_RESPONSE).max(FOR_RESPONSE))
    }
}

/// The action on a claim after its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settlement {
    Record,
    Release,
    Wait,
}

pub(super) fn settlement(
    at_most_once: bool,
    result: &Result<Output, Failure>,
    end: RunEnd,
) -> Settlement {
    match (end, at_most_once, result) {
        (RunEnd::Stopped | RunEnd::Unstoppable, true, _) => Settlement::Record,
        (RunEnd::NotStarted | RunEnd::Stopped, ..) => Settlement::Release,
        (RunEnd::Unstoppable, ..) => Settlement::Wait,
        (RunEnd::Returned, _, Err(failure)) if failure.can_retry() => Settlement::Release,
        (RunEnd::Returned, ..) => Settlement::Record,
    }
}
