//! The cached result for one secret, and how long it is valid.

use std::time::{Duration, Instant};

use crate::{
    Secret,
    secrets::{ReadResult, Secrets},
};

/// The time for which a missing or unreadable secret is remembered, and the minimum time between
/// two reads of a secret whose value was rejected.
pub(super) const NEGATIVE_TTL: Duration = Duration::from_secs(10);

/// The pause before a store that failed is read again.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// The result to return until the next read is due.
pub(super) struct CacheEntry {
    pub(super) result: ReadResult,
    pub(super) due: Instant,
    /// The last value that the store returned, and the time at which it did.
    good: Option<(Secret, Instant)>,
    /// The time at which a value of the secret was last rejected.
    rejected_at: Option<Instant>,
}

impl CacheEntry {
    /// Returns the entry after a read: the store's result, or the last good value after a temporary
    /// error.
    pub(super) fn after(
        before: Option<&Self>,
        id: &str,
        result: ReadResult,
        secrets: &Secrets,
        now: Instant,
    ) -> Self {
        let rejected_at = before.and_then(|before| before.rejected_at);
        let (result, wait, good) = match result {
            Ok(Some(secret)) => {
                let good = (secret.clone(), now);
                (Ok(Some(secret)), secrets.cache_for, Some(good))
            }
            Err(error) if error.is_temporary() => {
                let good = before.and_then(|before| before.last_good(secrets, now));
                let result = good.map(|(secret, _)| {
                    tracing::warn!(secret = id, %error, "using the last good value");
                    Some(secret.clone())
                });
                (result.ok_or(error), PAUSE, good.cloned())
            }
            // The value no longer exists, or may no longer be used.
            result => (result, NEGATIVE_TTL, None),
        };
        let due = now + wait;
        Self {
            result,
            due,
            good,
            rejected_at,
        }
    }

    /// Returns the last good value, while it may still be used.
    pub(super) fn last_good(&self, secrets: &Secrets, now: Instant) -> Option<&(Secret, Instant)> {
        let limit = secrets.cache_for.saturating_add(secrets.stale_for);
        let good = self.good.as_ref();
        good.filter(|(_, at)| now.saturating_duration_since(*at) < limit)
    }

    /// Returns `true` if the rejected value is the cached one and no value of this secret was
    /// rejected shortly before; in that case, it also records the rejection.
    pub(super) fn is_newly_rejected(&mut self, rejected: &Secret, now: Instant) -> bool {
        let is_recent = |at| now.saturating_duration_since(at) < NEGATIVE_TTL;
        let is_cached = matches!(&self.result, Ok(Some(value)) if value.is(rejected));
        let is_new = is_cached && !self.rejected_at.is_some_and(is_recent);
        if is_new {
            self.rejected_at = Some(now);
        }
        is_new
    }
}
