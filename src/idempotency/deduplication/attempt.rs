//! One attempt to claim a call.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{ClaimLimits, Deduplication};
use crate::{
    StoreError,
    idempotency::{CallIdentity, CallRecord, CallState},
    store::{self, PutOutcome, Store, within},
    tool::repeats::RepeatPolicy,
};

/// How much longer than its tool and the store may take a call is nobody else's, where the platform
/// does not stop the whole process by itself.
const GRACE: Duration = Duration::from_secs(1);

/// How far the clocks of two processes may be apart. One that is ahead takes a call for over that
/// still runs: claims are free that much later.
pub(super) const CLOCK_MARGIN: Duration = Duration::from_secs(2);

impl Deduplication {
    pub(super) fn claim_of(
        &self,
        identity: &CallIdentity,
        policy: RepeatPolicy,
        limits: ClaimLimits,
        now: SystemTime,
    ) -> CallRecord {
        let to_settle = self.idempotency.timeout + GRACE;
        let until = limits.deadline.unwrap_or(now + limits.tool + to_settle);
        // With no time left nothing runs, by whatever clock.
        let has_time = until > now;
        let over = if has_time {
            until + CLOCK_MARGIN
        } else {
            until
        };
        let expires_at = (now + self.idempotency.expire_after).max(over);
        let at_most_once = policy == RepeatPolicy::AtMostOnce;
        CallRecord {
            claim: store::new_version(),
            fingerprint: identity.fingerprint.clone(),
            owner: identity.owner.clone(),
            at_most_once,
            state: CallState::Running { until },
            free_at: if at_most_once { expires_at } else { over },
            expires_at,
        }
    }

    /// Writes the claim; the record that stands against it, if any.
    pub(super) async fn held(
        &self,
        store: &dyn Store,
        key: &str,
        record: &CallRecord,
        now: SystemTime,
        limit: Duration,
    ) -> Result<Option<CallRecord>, StoreError> {
        let claim = (key, &record.clone().stored());
        match store::put(store, limit, claim, None, now).await? {
            PutOutcome::Written => Ok(None),
            PutOutcome::Conflict(Some(held)) => CallRecord::read(held).map(Some),
            PutOutcome::Conflict(None) => Err(StoreError::unavailable(
                "the store neither writes a claim nor says what is there",
            )),
        }
    }

    /// Takes back a claim that may have been written although the store did not say so. Its call
    /// must not run any more.
    ///
    /// Before the answer leaves: afterwards the platform may stop the process.
    pub(super) async fn give_up(
        &self,
        store: &dyn Store,
        key: &str,
        record: &CallRecord,
        deadline: Option<SystemTime>,
    ) {
        let limit = self.time_to_settle(deadline);
        let released = within(limit, store.delete(key, record.claim)).await;
        if let Err(error) = released.flatten() {
            tracing::debug!(%error, "a claim that was given up may be in the store");
        }
    }

    /// Takes back such a claim while its call runs without it.
    pub(super) fn release_beside(&self, store: &Arc<dyn Store>, key: String, record: &CallRecord) {
        let (store, limit, claim) = (Arc::clone(store), self.idempotency.timeout, record.claim);
        tokio::spawn(async move {
            // If that fails too, the claim ends by itself.
            let _ = within(limit, store.delete(&key, claim)).await.flatten();
        });
    }
}
