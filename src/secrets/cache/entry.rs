//! What is known of one secret, and for how long.

use std::time::{Duration, Instant};

use super::flight::Flight;
use crate::{
    Secret,
    secrets::{Read, Secrets},
};

/// How long it is remembered that there is no value, or none that may be read.
pub(super) const BRIEFLY: Duration = Duration::from_secs(10);

/// How long a store that failed is left alone.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Entry {
    pub(super) held: Option<Held>,
    pub(super) flight: Option<Flight>,
    /// When the value was last read again because it was refused.
    pub(super) reread_at: Option<Instant>,
}

/// What is answered until the next read is due.
pub(super) struct Held {
    pub(super) read: Read,
    due: Instant,
    /// The last value that the store gave, and when.
    good: Option<(Secret, Instant)>,
}

/// What is known of a secret now.
pub(super) enum Known {
    Read(Read),
    Flight(Flight),
}

impl Entry {
    pub(super) fn is_wanted(&self, now: Instant) -> bool {
        self.flight.is_none() && self.held.as_ref().is_none_or(|held| held.due <= now)
    }

    pub(super) fn known(&self, now: Instant) -> Known {
        match (&self.flight, &self.held) {
            (_, Some(held)) if held.due > now => Known::Read(held.read.clone()),
            (Some(flight), _) => Known::Flight(flight.clone()),
            (None, Some(held)) => Known::Read(held.read.clone()),
            (None, None) => unreachable!("what is not held was just asked for"),
        }
    }

    pub(super) fn value(&self) -> Option<&Secret> {
        self.held.as_ref()?.read.as_ref().ok()?.as_ref()
    }
}

impl Held {
    /// What is held after a read: the store's word, or the last good value in a bad time.
    pub(super) fn after(
        before: Option<Self>,
        id: &str,
        read: Read,
        secrets: &Secrets,
        now: Instant,
    ) -> Self {
        let ttl = secrets.cache_for;
        // It was read along with another, and need not have been.
        if let (Err(_), Some(held)) = (&read, &before)
            && held.due > now
            && let Some(before) = before
        {
            return before;
        }
        match read {
            Ok(Some(secret)) => Self {
                read: Ok(Some(secret.clone())),
                due: now + ttl,
                good: Some((secret, now)),
            },
            Err(error) if error.is_temporary() => {
                let due = now + PAUSE;
                let good = before.filter(|held| held.good(secrets, now).is_some());
                match good.and_then(|held| held.good) {
                    Some(good) => {
                        tracing::warn!(secret = id, %error, "the last good value is used");
                        let read = Ok(Some(good.0.clone()));
                        let good = Some(good);
                        Self { read, due, good }
                    }
                    None => Self {
                        read: Err(error),
                        due,
                        good: None,
                    },
                }
            }
            // There is no value any longer, or none that may be used.
            read => Self {
                read,
                due: now + BRIEFLY,
                good: None,
            },
        }
    }

    /// The last good value, while it may still be used.
    pub(super) fn good(&self, secrets: &Secrets, now: Instant) -> Option<&Secret> {
        let (secret, read_at) = self.good.as_ref()?;
        let age = now.saturating_duration_since(*read_at);
        let limit = secrets.cache_for.saturating_add(secrets.stale_for);
        (age < limit).then_some(secret)
    }
}
