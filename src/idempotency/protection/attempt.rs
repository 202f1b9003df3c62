//! One attempt to claim a call.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use uuid::Uuid;

use super::{Limits, Protection};
use crate::{
    StoreError,
    idempotency::{CallStore, Identity, Record, State},
    store_error::within,
    tool::repeats::Policy,
};

/// How much longer than its tool and the store may take a call is nobody else's, where the platform
/// does not stop the whole process by itself.
const GRACE: Duration = Duration::from_secs(1);

/// How far the clocks of two processes may be apart. One that is ahead takes a call for over that
/// still runs: claims are free that much later.
pub(super) const CLOCK_MARGIN: Duration = Duration::from_secs(2);

impl Protection {
    pub(super) fn claim_of(
        &self,
        identity: &Identity,
        policy: Policy,
        limits: Limits,
        now: SystemTime,
    ) -> Record {
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
        let at_most_once = policy == Policy::AtMostOnce;
        Record {
            // Not the host's ids, which a replay fixes: two claims must never look the same, and no
            // answer shows them.
            claim: Uuid::new_v4().to_string(),
            fingerprint: identity.fingerprint.clone(),
            owner: identity.owner.clone(),
            at_most_once,
            state: State::Running { until },
            free_at: if at_most_once { expires_at } else { over },
            expires_at,
        }
    }

    /// Writes the claim; the record that stands against it, if any.
    pub(super) async fn held(
        &self,
        store: &Arc<dyn CallStore>,
        key: &str,
        record: &Record,
        now: SystemTime,
        limit: Duration,
    ) -> Result<Option<Record>, StoreError> {
        if let Some(unrecorded) = self.unrecorded(key, now) {
            // The store may be there again; if not, this process still knows.
            match within(limit, store.finish(key, &unrecorded))
                .await
                .flatten()
            {
                Ok(true) => drop(self.forget(key)),
                // Another process has run it since.
                Ok(false) => {
                    self.forget(key);
                    return Box::pin(self.held(store, key, record, now, limit)).await;
                }
                Err(_) => {}
            }
            return Ok(Some(unrecorded));
        }
        let ends = tokio::time::Instant::now() + limit;
        let left = || ends.saturating_duration_since(tokio::time::Instant::now());
        let claim = async || {
            let claimed = within(left(), store.claim(key, record, now)).await;
            claimed.flatten()
        };
        let mut held = claim().await?;
        if let Some(held_by) = held.as_ref().map(|held| &held.claim)
            && self.given_up.contains(held_by)
        {
            let released = within(left(), store.release(key, held_by)).await;
            released.flatten()?;
            held = claim().await?;
        }
        // This very write, sent twice because the answer to the first was lost.
        Ok(held.filter(|held| held.claim != record.claim))
    }
}
