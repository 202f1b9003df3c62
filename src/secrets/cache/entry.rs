//! What is known of one secret, and for how long.

use std::time::{Duration, Instant};

use crate::{
    Secret,
    secrets::{ReadResult, Secrets},
};

/// How long it is remembered that there is no value, or none that may be read.
pub(super) const BRIEFLY: Duration = Duration::from_secs(10);

/// How long a store that failed is left alone.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// What is answered until the next read is due.
pub(super) struct CacheEntry {
    pub(super) read: ReadResult,
    pub(super) due: Instant,
    /// The last value that the store gave, and when.
    good: Option<(Secret, Instant)>,
    /// When a value was last refused where it belongs.
    refused_at: Option<Instant>,
}

impl CacheEntry {
    /// What is known after a read: the store's word, or the last good value in a bad time.
    pub(super) fn after(
        before: Option<&Self>,
        id: &str,
        read: ReadResult,
        secrets: &Secrets,
        now: Instant,
    ) -> Self {
        let refused_at = before.and_then(|before| before.refused_at);
        let (read, wait, good) = match read {
            Ok(Some(secret)) => {
                let good = (secret.clone(), now);
                (Ok(Some(secret)), secrets.cache_for, Some(good))
            }
            Err(error) if error.is_temporary() => {
                let good = before.and_then(|before| before.last_good(secrets, now));
                let read = good.map(|(secret, _)| {
                    tracing::warn!(secret = id, %error, "the last good value is used");
                    Some(secret.clone())
                });
                (read.ok_or(error), PAUSE, good.cloned())
            }
            // There is no value any longer, or none that may be used.
            read => (read, BRIEFLY, None),
        };
        let due = now + wait;
        Self {
            read,
            due,
            good,
            refused_at,
        }
    }

    /// The last good value, while it may still be used.
    pub(super) fn last_good(&self, secrets: &Secrets, now: Instant) -> Option<&(Secret, Instant)> {
        let limit = secrets.cache_for.saturating_add(secrets.stale_for);
        let good = self.good.as_ref();
        good.filter(|(_, at)| now.saturating_duration_since(*at) < limit)
    }

    /// Whether this value was refused, and none of this secret a moment ago.
    pub(super) fn is_newly_refused(&mut self, refused: &Secret, now: Instant) -> bool {
        let recently = |at| now.saturating_duration_since(at) < BRIEFLY;
        let is_this = matches!(&self.read, Ok(Some(value)) if value.is(refused));
        let is_new = is_this && !self.refused_at.is_some_and(recently);
        if is_new {
            self.refused_at = Some(now);
        }
        is_new
    }
}
