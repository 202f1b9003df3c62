//! What becomes of a claim: its outcome is recorded, or it is released.

use std::time::{Duration, SystemTime};

use super::{Claim, Ending, Protection};
use crate::{
    Failure,
    idempotency::{Record, State, outcome::encoded, record::OUTCOME},
    store::{self, Put, Store, within},
    tool::{output::Output, repeats::Policy},
};

impl Protection {
    /// Records what came of a call, or releases it so that it can run again.
    ///
    /// The caller gets the outcome whether or not that goes well.
    pub(crate) async fn settle(
        &self,
        claim: Claim,
        duration: Duration,
        result: &Result<Output, Failure>,
        ending: Ending,
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
            Afterwards::Wait => {}
            Afterwards::Release => {
                let released = within(limit, store.delete(&key, record.claim)).await;
                if let Err(error) = released.flatten() {
                    tracing::warn!(%error, "a call is not released; it runs again only after its time");
                }
            }
            Afterwards::Record => {
                let expires_at = self.host.now() + self.idempotency.expire_after;
                let outcome = encoded(duration, result);
                let record = Record {
                    state: if outcome.len() <= store.largest_field() {
                        State::Finished(outcome)
                    } else {
                        State::Ran
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
            let (over, now) = (Some(record.version), self.host.now());
            let error = match store::put(store, left, (key, &record), over, now).await {
                Ok(Put::Written) => return,
                Ok(Put::Conflict(_)) => {
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
        let left = deadline.duration_since(self.host.now()).unwrap_or_default();
        limit.min(left.saturating_sub(FOR_THE_ANSWER).max(FOR_THE_ANSWER))
    }
}

/// What happens to a claim after its call.
enum Afterwards {
    Record,
    Release,
    Wait,
}

fn afterwards(policy: Policy, result: &Result<Output, Failure>, ending: Ending) -> Afterwards {
    match (ending, policy, result) {
        (Ending::Stopped | Ending::Unstoppable, Policy::AtMostOnce, _) => Afterwards::Record,
        (Ending::NotStarted | Ending::Stopped, ..) => Afterwards::Release,
        (Ending::Unstoppable, ..) => Afterwards::Wait,
        (Ending::Returned, _, Err(failure)) if failure.can_retry() => Afterwards::Release,
        (Ending::Returned, ..) => Afterwards::Record,
    }
}
