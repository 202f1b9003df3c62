//! A snapshot of the declared secrets: the store is read once, not by every call.
//!
//! The ids are known at start-up. The first call that finds one of them due reads all that are due,
//! and other calls wait for it. While the store is down or throttles, the last good values are used
//! for a limited time. Missing and unreadable secrets are remembered briefly, so that a bad
//! deployment does not overload the store.
//!
//! Existing caches do less: `aws_secretsmanager_caching` reads one secret per request, one after
//! the other, and neither caches absence nor shares requests; `moka` shares the loading of one key,
//! not of a batch, and drops a value when it expires.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::{task::JoinSet, time::timeout};

use super::{ReadResult, Secrets, stored};
use crate::{Secret, StoreError, clock::Clock, store::within, tool::context::Reread};

/// The time for which a value is used before it is read again.
const TTL: Duration = Duration::from_mins(5);

/// The time after that for which the last good value is used while the store cannot be reached or
/// throttles.
const STALE_TTL: Duration = Duration::from_hours(1);

/// The time limit of the store.
const TIMEOUT: Duration = Duration::from_secs(3);

/// The time for which a missing or unreadable secret is remembered, and the minimum time between
/// two reads of a secret whose value was rejected.
const NEGATIVE_TTL: Duration = Duration::from_secs(10);

/// The pause before a store that failed is read again.
const PAUSE: Duration = Duration::from_secs(1);

/// A store with its cache.
pub struct SecretCache {
    secrets: Secrets,
    /// All ids that the server's tools, authentication and providers declare.
    declared: Vec<String>,
    clock: Clock,
    snapshot: Mutex<HashMap<String, CacheEntry>>,
    /// Locked while the store is read for the snapshot.
    refreshing: tokio::sync::Mutex<()>,
}

/// The number of secrets that came from the cache, and of those that had to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// Those that came from the cache.
    pub hits: usize,
    /// Those that had to be read.
    pub misses: usize,
}

impl SecretCache {
    /// Creates the cache of a server with these ids.
    pub fn new(secrets: Secrets, declared: Vec<String>, clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            secrets,
            declared,
            clock,
            snapshot: Mutex::default(),
            refreshing: tokio::sync::Mutex::default(),
        })
    }

    /// Returns true if calls may bring secrets themselves.
    pub fn may_come_from_calls(&self) -> bool {
        self.secrets.from_calls
    }

    /// Returns the place where the store looks for a secret. `None` if there is no store.
    pub fn location(&self, id: &str) -> Option<String> {
        self.secrets.store.as_ref().map(|store| store.location(id))
    }

    /// Says how to give a secret a value.
    pub(crate) fn advice(&self, id: &str) -> String {
        match (&self.secrets.file, self.location(id)) {
            (Some(file), _) => format!("for example {id}=… in {}", file.display()),
            (None, Some(location)) => format!("it is read from {location}"),
            (None, None) => "this server has no store of secrets".to_owned(),
        }
    }

    /// Reads secrets within the store's time limit, or half of `left` if that is shorter. The
    /// results are in the order of `ids`.
    pub async fn read(self: &Arc<Self>, ids: &[&str], left: Option<Duration>) -> Vec<ReadResult> {
        self.read_counted(ids, left, &mut CacheUse::default()).await
    }

    /// Does the same as [`Self::read`], and counts cache hits and misses. Secrets from a local
    /// store are neither.
    pub async fn read_counted(
        self: &Arc<Self>,
        ids: &[&str],
        left: Option<Duration>,
        cache: &mut CacheUse,
    ) -> Vec<ReadResult> {
        if self.is_local() {
            let ids: Vec<_> = ids.iter().map(|&id| id.to_owned()).collect();
            return self.read_store(&ids).await;
        }
        let now = self.clock.instant();
        let mut due = BTreeSet::new();
        for &id in ids {
            if self.is_due(id, now) {
                cache.misses += 1;
                due.insert(id.to_owned());
            } else {
                cache.hits += 1;
            }
        }
        let limit = left.map_or(TIMEOUT, |left| TIMEOUT.min(left / 2));
        if !due.is_empty() {
            // In a task, so that a cancelled call does not cancel a read that others wait for.
            let refresh = tokio::spawn(Arc::clone(self).refresh(due, now));
            let _ = timeout(limit, refresh).await;
        }
        let result_of = |id: &&str| self.cached(id, now, limit);
        ids.iter().map(result_of).collect()
    }

    /// Reads all declared secrets before the first call, but not those `of_callers` in a local store:
    /// one of several is enough. Errors are only logged: their causes may be fixed by the time of a
    /// call.
    pub async fn warm_up(self: &Arc<Self>, of_callers: &[&str]) {
        let ids = self.declared.iter().map(String::as_str);
        let ids: Vec<_> = ids
            .filter(|id| !self.is_local() || !of_callers.contains(id))
            .collect();
        for (id, result) in ids.iter().zip(self.read(&ids, None).await) {
            match result {
                Ok(Some(_)) => {}
                Ok(None) => {
                    let location = self.location(id).unwrap_or_default();
                    tracing::warn!(secret = id, location, "a secret is missing from the store");
                }
                Err(error) => tracing::warn!(secret = id, %error, "a secret could not be read"),
            }
        }
    }

    /// Returns all declared secrets that the store has, with their ids.
    pub async fn declared_values(self: &Arc<Self>) -> Vec<(String, Secret)> {
        let ids: Vec<_> = self.declared.iter().map(String::as_str).collect();
        let results = self.declared.iter().zip(self.read(&ids, None).await);
        let values = results.filter_map(|(id, result)| Some((id.clone(), result.ok()??)));
        values.collect()
    }

    /// Reads a secret again after the API it belongs to rejected its value. Returns `None` if the
    /// store has no other value.
    async fn reread(
        self: &Arc<Self>,
        id: &str,
        rejected: &Secret,
        left: Duration,
    ) -> Option<Secret> {
        self.expire(id, rejected);
        let value = self.read(&[id], Some(left)).await.pop()?.ok()??;
        (!value.is(rejected)).then_some(value)
    }

    /// Returns the function with which the context of a call reads a rejected secret again.
    pub fn rereads(self: &Arc<Self>) -> Reread {
        let cache = Arc::clone(self);
        Box::new(move |id, rejected, left| {
            let cache = Arc::clone(&cache);
            Box::pin(async move { cache.reread(&id, &rejected, left).await })
        })
    }

    /// Makes all secrets due once a value is rejected: related ones may have been rotated together.
    fn expire(&self, id: &str, rejected: &Secret) {
        let now = self.clock.instant();
        let mut snapshot = self.lock();
        let entry = snapshot.get_mut(id);
        if entry.is_some_and(|entry| entry.is_newly_rejected(rejected, now)) {
            for entry in snapshot.values_mut() {
                entry.due = now;
            }
        }
    }

    /// Reads the given secrets that are due, together with all declared secrets that are due: all
    /// batches concurrently.
    async fn refresh(self: Arc<Self>, mut ids: BTreeSet<String>, now: Instant) {
        let _one_at_a_time = self.refreshing.lock().await;
        ids.retain(|id| self.is_due(id, now));
        if !ids.is_empty() {
            let others = self.declared.iter().filter(|id| self.is_due(id, now));
            ids.extend(others.cloned());
        }
        let ids = Vec::from_iter(ids);
        let mut batches = JoinSet::new();
        for batch in ids.chunks(self.batch_size()) {
            batches.spawn(Arc::clone(&self).fetch_batch(batch.to_vec()));
        }
        batches.join_all().await;
    }

    /// Reads a batch from the store, and caches the results.
    async fn fetch_batch(self: Arc<Self>, ids: Vec<String>) {
        let results = self.read_store(&ids).await;
        let now = self.clock.instant();
        let mut snapshot = self.lock();
        for (id, result) in ids.into_iter().zip(results) {
            let entry = CacheEntry::after(snapshot.get(&id), &id, result, now);
            snapshot.insert(id, entry);
        }
    }

    /// Reads from the store, bypassing the cache.
    async fn read_store(&self, ids: &[String]) -> Vec<ReadResult> {
        let Some(store) = &self.secrets.store else {
            return vec![Ok(None); ids.len()];
        };
        let read = Box::pin(async { Ok(store.read(ids).await) });
        let results = within(TIMEOUT, read).await;
        let mut results = results.unwrap_or_else(|error| vec![Err(error); ids.len()]);
        let missing = StoreError::unavailable("the store returned no result for it");
        results.resize(ids.len(), Err(missing));
        // A value from the store may appear in any text, not only in the texts of calls whose tools
        // declared it.
        for secret in results.iter().flatten().flatten() {
            stored::remember(secret);
        }
        results
    }

    fn is_due(&self, id: &str, now: Instant) -> bool {
        self.lock().get(id).is_none_or(|entry| entry.due <= now)
    }

    /// Returns the cached result if it is valid for a read that began at `start`, or the last good
    /// value.
    fn cached(&self, id: &str, start: Instant, limit: Duration) -> ReadResult {
        let snapshot = self.lock();
        let entry = snapshot.get(id);
        if let Some(entry) = entry.filter(|entry| entry.due > start) {
            return entry.result.clone();
        }
        let good = entry.and_then(|entry| entry.last_good(self.clock.instant()));
        let (secret, _) = good.ok_or_else(|| StoreError::timed_out(limit))?;
        let text = "the store is slow; using the last good value";
        tracing::warn!(secret = id, "{text}");
        Ok(Some(secret.clone()))
    }

    /// Returns `true` if reading takes no time: the store is local, or there is none.
    fn is_local(&self) -> bool {
        let store = self.secrets.store.as_ref();
        store.is_none_or(|store| store.is_local())
    }

    fn batch_size(&self) -> usize {
        let store = self.secrets.store.as_ref();
        store.map_or(1, |store| store.batch_size().max(1))
    }

    /// Locks the snapshot. A poisoned lock is harmless: a panic elsewhere leaves the snapshot
    /// consistent.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, CacheEntry>> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The result to return until the next read is due.
struct CacheEntry {
    result: ReadResult,
    due: Instant,
    /// The last value that the store returned, and the time at which it did.
    good: Option<(Secret, Instant)>,
    /// The time at which a value of the secret was last rejected.
    rejected_at: Option<Instant>,
}

impl CacheEntry {
    /// Returns the entry after a read: the store's result, or the last good value after a temporary
    /// error.
    fn after(before: Option<&Self>, id: &str, result: ReadResult, now: Instant) -> Self {
        let rejected_at = before.and_then(|before| before.rejected_at);
        let (result, wait, good) = match result {
            Ok(Some(secret)) => {
                let good = (secret.clone(), now);
                (Ok(Some(secret)), TTL, Some(good))
            }
            Err(error) if error.is_temporary() => {
                let good = before.and_then(|before| before.last_good(now));
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
    fn last_good(&self, now: Instant) -> Option<&(Secret, Instant)> {
        let good = self.good.as_ref();
        good.filter(|(_, at)| now.saturating_duration_since(*at) < TTL + STALE_TTL)
    }

    /// Returns `true` if the rejected value is the cached one and no value of this secret was
    /// rejected shortly before; in that case, it also records the rejection.
    fn is_newly_rejected(&mut self, rejected: &Secret, now: Instant) -> bool {
        let is_recent = |at| now.saturating_duration_since(at) < NEGATIVE_TTL;
        let is_cached = matches!(&self.result, Ok(Some(value)) if value.is(rejected));
        let is_new = is_cached && !self.rejected_at.is_some_and(is_recent);
        if is_new {
            self.rejected_at = Some(now);
        }
        is_new
    }
}

#[cfg(test)]
mod tests;
