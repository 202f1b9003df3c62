//! What becomes of a claim: its outcome is recorded, or it is released.

use std::{
    collections::HashMap,
    sync::{Arc, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use super::{Claim, Ending, Protection};
use crate::{
    Failure,
    idempotency::{CallStore, Record, State, outcome::encoded},
    store_error::within,
    tool::{output::Output, repeats::Policy},
};

/// How much is kept here that could not be written to the store.
const MOST_UNRECORDED: usize = 1000;
const MOST_UNRECORDED_BYTES: usize = 8 << 20;

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
        let Some(store) = &self.idempotency.store else {
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
                if let Err(error) = within(limit, store.release(&key, &record.claim))
                    .await
                    .flatten()
                {
                    self.given_up.remember(&record, self.host.now());
                    tracing::warn!(%error, "a call is not released; other processes run it again only after its time");
                }
            }
            Afterwards::Record => {
                let expires_at = self.host.now() + self.idempotency.expire_after;
                let outcome = encoded(duration, result);
                let record = Record {
                    state: if outcome.len() <= store.largest_outcome() {
                        State::Finished(outcome)
                    } else {
                        State::Ran
                    },
                    free_at: expires_at,
                    expires_at,
                    ..record
                };
                self.record(store, key, record, limit).await;
            }
        }
    }

    /// Writes a record, again and again until its time is up.
    async fn record(
        &self,
        store: &Arc<dyn CallStore>,
        key: String,
        mut record: Record,
        limit: Duration,
    ) {
        let ends = tokio::time::Instant::now() + limit;
        loop {
            let left = ends.saturating_duration_since(tokio::time::Instant::now());
            let error = match within(left, store.finish(&key, &record)).await.flatten() {
                Ok(true) => return self.catch_up(store, left).await,
                Ok(false) => {
                    tracing::warn!("a call took longer than its claim; it may have run twice");
                    return;
                }
                Err(error) => error,
            };
            // The store does not take this one, and may take that it ran.
            if !error.is_temporary() && matches!(record.state, State::Finished(_)) {
                tracing::error!(%error, "an outcome cannot be kept");
                record.state = State::Ran;
                continue;
            }
            if left.is_zero() || !error.is_temporary() {
                tracing::error!(%error, "an outcome is known to this process only");
                return self.keep(key, record);
            }
            tokio::time::sleep(Duration::from_millis(100).min(left)).await;
        }
    }

    /// Writes what could not be written before, now that the store is there.
    async fn catch_up(&self, store: &Arc<dyn CallStore>, left: Duration) {
        let ends = tokio::time::Instant::now() + left;
        let all: Vec<_> = self.all_unrecorded().clone().into_iter().collect();
        for (key, record) in all {
            let left = ends.saturating_duration_since(tokio::time::Instant::now());
            if within(left, store.finish(&key, &record))
                .await
                .flatten()
                .is_err()
            {
                return;
            }
            self.forget(&key);
        }
    }

    fn keep(&self, key: String, mut record: Record) {
        let now = self.host.now();
        let mut all = self.all_unrecorded();
        all.retain(|_, record| record.free_at > now);
        let bytes: usize = all.values().map(Record::size).sum();
        if bytes + record.size() > MOST_UNRECORDED_BYTES {
            record.state = State::Ran;
        }
        if all.len() < MOST_UNRECORDED {
            all.insert(key, record);
        } else {
            tracing::error!("too many outcomes are not recorded; one is forgotten");
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

    pub(super) fn unrecorded(&self, key: &str, now: SystemTime) -> Option<Record> {
        let all = self.all_unrecorded();
        all.get(key).filter(|record| record.free_at > now).cloned()
    }

    pub(super) fn forget(&self, key: &str) -> Option<Record> {
        self.all_unrecorded().remove(key)
    }

    fn all_unrecorded(&self) -> MutexGuard<'_, HashMap<String, Record>> {
        self.unrecorded
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
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
