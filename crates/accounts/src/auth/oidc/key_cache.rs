//! The cache of an issuer's keys.
//!
//! Calls wait for the issuer only while its keys are unknown. Keys that are due are fetched again by
//! one call at a time; if that fails, the old ones are used for a day.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::time::timeout;

use super::key_set::KeySet;
use crate::{auth::AuthError, clock::Clock};

/// The time limit for fetching the metadata and the keys together.
const FETCH_LIMIT: Duration = Duration::from_secs(5);
/// The time that a call waits for new keys while the old ones can still be used.
const STALE_WAIT: Duration = Duration::from_secs(1);
/// The time after a failed fetch during which there is no other one.
const PAUSE: Duration = Duration::from_secs(5);
/// The time after a fetch for an unknown key id during which there is no other one: anyone can make
/// up key ids.
const UNKNOWN_KEY_PAUSE: Duration = Duration::from_mins(1);

/// The time for which keys are used before they are fetched again, if the response does not say.
const DEFAULT_AGE: Duration = Duration::from_hours(1);
const SHORTEST_AGE: Duration = Duration::from_mins(5);
const LONGEST_AGE: Duration = Duration::from_hours(12);
/// The time for which keys can be used if the issuer cannot be reached. A key that the issuer has
/// withdrawn is trusted no longer than this.
const LONGEST_USE: Duration = Duration::from_hours(24);

/// The keys of one issuer.
#[derive(Debug)]
pub(in crate::auth) struct KeyCache {
    /// The configured URL of the issuer.
    pub(super) url: Arc<str>,
    state: Mutex<CacheState>,
    /// Held by the one call that fetches.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct CacheState {
    /// The keys, and the time until which they can be used.
    keys: Option<(Arc<KeySet>, Instant)>,
    /// The time from which they are fetched again.
    due: Option<Instant>,
    /// The time from which they are fetched again for an unknown key id.
    due_for_unknown: Option<Instant>,
}

/// The keys for a token.
struct KnownKeys {
    set: Option<Arc<KeySet>>,
    /// True if they should be fetched: they may be old, and a fetch is possible at the moment.
    is_due: bool,
}

impl KeyCache {
    pub(in crate::auth) fn new(url: String) -> Self {
        Self {
            url: url.into(),
            state: Mutex::default(),
            fetching: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the issuer's own spelling of its URL once its metadata has been fetched, else the
    /// configured one: clients compare them exactly (RFC 8414, 3.3).
    pub(super) fn issuer(&self) -> Arc<str> {
        let state = self.lock();
        let known = state.keys.as_ref().map(|(set, _)| &set.issuer);
        Arc::clone(known.unwrap_or(&self.url))
    }

    /// Returns the keys to check a token with, which names the key `kid`. `None` if they are
    /// unavailable, or if the issuer may have added this key but cannot be asked yet.
    pub(in crate::auth) async fn get(
        self: &Arc<Self>,
        kid: Option<&str>,
        clock: &Clock,
        left: Option<Duration>,
    ) -> Option<Arc<KeySet>> {
        let KnownKeys { set: old, is_due } = self.lock().keys_for(kid, clock.instant());
        let is_fetched_elsewhere = || old.is_some() && self.fetching.try_lock().is_err();
        if !is_due || is_fetched_elsewhere() {
            return old;
        }
        let limit = old.as_ref().map_or(FETCH_LIMIT, |_| STALE_WAIT);
        let limit = left.map_or(limit, |left| limit.min(left / 2));
        // In a task, so that a cancelled call does not cancel a fetch that others wait for.
        let fetch = Arc::clone(self).refresh(kid.map(str::to_owned), clock.clone());
        match timeout(limit, tokio::spawn(fetch)).await {
            Ok(Ok(keys)) => keys.or(old),
            _ => old,
        }
    }

    /// Returns the error of a token for which there are no keys, with the time until the issuer can be
    /// asked again. It is not this server's or the issuer's as long as there are usable keys: whether
    /// a token names one of them is up to its sender.
    pub(super) fn error(&self, now: Instant) -> AuthError {
        let state = self.lock();
        let until = |due: Option<Instant>| due.unwrap_or(now).saturating_duration_since(now);
        match state.usable(now) {
            Some(_) => AuthError::UnknownKey(until(state.due_for_unknown)),
            None => AuthError::Undecided(until(state.due)),
        }
    }

    async fn refresh(self: Arc<Self>, kid: Option<String>, clock: Clock) -> Option<Arc<KeySet>> {
        let _one_at_a_time = self.fetching.lock().await;
        // Another call may have fetched them in the meantime.
        let known = self.lock().keys_for(kid.as_deref(), clock.instant());
        let KnownKeys { set: old, is_due } = known;
        if !is_due {
            return old;
        }
        let has_keys = self.lock().usable(clock.instant()).is_some();
        let is_unknown_key = has_keys && old.is_none();
        let fetched = timeout(FETCH_LIMIT, KeySet::fetch(&self.url)).await;
        let fetched = fetched.unwrap_or_else(|_| Err("did not answer in time".to_owned()));
        let now = clock.instant();
        let mut state = self.lock();
        if is_unknown_key {
            // Not before: while it runs, calls with other unknown keys wait for its result.
            state.due_for_unknown = Some(now + UNKNOWN_KEY_PAUSE);
        }
        match fetched {
            Ok((set, age)) => {
                let set = Arc::new(set);
                let age = age.unwrap_or(DEFAULT_AGE).clamp(SHORTEST_AGE, LONGEST_AGE);
                state.due = Some(now + age);
                state.keys = Some((Arc::clone(&set), now + LONGEST_USE));
                Some(set)
            }
            Err(error) => {
                state.due = state.due.max(Some(now + PAUSE));
                let issuer = &*self.url;
                let text = "the keys of an issuer cannot be fetched";
                // An error sets off alarms, and anyone can make up a key id.
                if is_unknown_key {
                    tracing::warn!(issuer, error, has_keys, "{text}");
                } else {
                    tracing::error!(issuer, error, has_keys, "{text}");
                }
                old
            }
        }
    }

    /// Locks the state. A poisoned lock is harmless: a panic elsewhere leaves the state consistent.
    fn lock(&self) -> MutexGuard<'_, CacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CacheState {
    fn usable(&self, now: Instant) -> Option<&Arc<KeySet>> {
        let usable = self.keys.as_ref().filter(|(_, end)| now < *end);
        usable.map(|(set, _)| set)
    }

    /// Returns the usable keys, unless they lack this one.
    fn keys_for(&self, kid: Option<&str>, now: Instant) -> KnownKeys {
        let is_due = |due: Option<Instant>| due.is_none_or(|due| now >= due);
        let usable = self.usable(now);
        // The issuer may have added the key since the last fetch.
        let has_key = |set: &&Arc<KeySet>| kid.is_none_or(|kid| set.has_key(kid));
        let known = usable.filter(has_key);
        let is_unknown_key = usable.is_some() && known.is_none();
        KnownKeys {
            set: known.cloned(),
            is_due: is_due(if is_unknown_key {
                self.due_for_unknown
            } else {
                self.due
            }),
        }
    }
}
