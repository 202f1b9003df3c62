//! A snapshot of the declared secrets: the store is asked once, not by every call.
//!
//! The ids are known at the start. Whoever finds one of them due reads all that are, and the others
//! wait for that. A store that is down or throttles is bridged with the last good values, for a
//! while. Absence and refusals are kept briefly, so that a bad deployment does not hammer the store.
//!
//! Written here because the caches that exist do less: `aws_secretsmanager_caching` reads one
//! secret a request, one after the other, and knows neither absence nor shared requests; `moka`
//! shares the loading of one key, not of a batch, and forgets a value when it has expired.

mod entry;

use std::{
    collections::{BTreeSet, HashMap},
    iter::once,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::{task::JoinSet, time::timeout};

use super::{ReadResult, Secrets, recent::remember_stored};
use crate::{Secret, StoreError, clock::Clock, store::within};
use entry::CacheEntry;

/// A store with its cache.
pub(crate) struct SecretCache {
    secrets: Secrets,
    /// All ids that the tools and the server's own authentication declare.
    declared: Vec<String>,
    clock: Clock,
    snapshot: Mutex<HashMap<String, CacheEntry>>,
    /// Locked while the store is read for the snapshot.
    refreshing: tokio::sync::Mutex<()>,
}

/// Secrets that came from the store's cache, and those that had to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CacheUse {
    pub(crate) hits: u32,
    pub(crate) misses: u32,
}

impl SecretCache {
    pub(crate) fn new(secrets: Secrets, declared: Vec<String>, clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            secrets,
            declared,
            clock,
            snapshot: Mutex::default(),
            refreshing: tokio::sync::Mutex::default(),
        })
    }

    pub(crate) fn may_come_from_calls(&self) -> bool {
        self.secrets.may_come_from_calls()
    }

    /// Where the store looks for a secret. None where there is no store.
    pub(crate) fn location(&self, id: &str) -> Option<String> {
        self.secrets.store.as_ref().map(|store| store.location(id))
    }

    /// Reads secrets, in the order of their ids, within the store's time or half of `left`.
    pub(crate) async fn read(
        self: &Arc<Self>,
        ids: &[&str],
        left: Option<Duration>,
    ) -> Vec<ReadResult> {
        self.counted(ids, left, &mut CacheUse::default()).await
    }

    /// The same, and counts which of them were known. Those in the environment always are, and are
    /// not counted.
    pub(crate) async fn counted(
        self: &Arc<Self>,
        ids: &[&str],
        left: Option<Duration>,
        cache: &mut CacheUse,
    ) -> Vec<ReadResult> {
        if self.is_local() {
            let ids: Vec<_> = ids.iter().map(|&id| id.to_owned()).collect();
            return self.ask(&ids).await;
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
        let limit = self.secrets.timeout;
        let limit = left.map_or(limit, |left| limit.min(left / 2));
        let fresh = self.refreshed(due, now, limit).await;
        let answer = |&id: &&str| match fresh.get(id) {
            Some(read) => read.clone(),
            None => self.answer(id, now, limit),
        };
        ids.iter().map(answer).collect()
    }

    /// Reads everything that is declared, so that the first call finds it. What is wrong is
    /// logged: it may be right by the time of a call.
    pub(crate) async fn warm(self: &Arc<Self>) {
        if self.is_local() || !self.keeps() {
            return;
        }
        let ids: Vec<_> = self.declared.iter().map(String::as_str).collect();
        for (id, read) in ids.iter().zip(self.read(&ids, None).await) {
            match read {
                Ok(Some(_)) => {}
                Ok(None) => {
                    let location = self.location(id).unwrap_or_default();
                    tracing::warn!(
                        secret = id,
                        location,
                        "there is no such secret in the store"
                    );
                }
                Err(error) => tracing::warn!(secret = id, %error, "a secret cannot be read"),
            }
        }
    }

    /// All declared secrets that the store has, with their ids.
    pub(crate) async fn held(self: &Arc<Self>) -> Vec<(String, Secret)> {
        let ids: Vec<_> = self.declared.iter().map(String::as_str).collect();
        let reads = self.declared.iter().zip(self.read(&ids, None).await);
        let held = reads.filter_map(|(id, read)| Some((id.clone(), read.ok()??)));
        held.collect()
    }

    /// Reads a secret again whose value was refused where it belongs. None where the store has no
    /// other one.
    pub(crate) async fn reread(
        self: &Arc<Self>,
        id: &str,
        refused: &Secret,
        left: Duration,
    ) -> Option<Secret> {
        self.expire(id, refused);
        let value = self.read(&[id], Some(left)).await.pop()?.ok()??;
        (!value.is(refused)).then_some(value)
    }

    /// Makes a refused value due, and as many others as one request takes: what belongs together
    /// may have been rotated together.
    fn expire(&self, id: &str, refused: &Secret) {
        let now = self.clock.instant();
        let mut snapshot = self.lock();
        let entry = snapshot.get_mut(id);
        if entry.is_some_and(|entry| entry.is_newly_refused(refused, now)) {
            let others = self.declared.iter().map(String::as_str);
            let ids = once(id).chain(others.filter(|other| *other != id));
            for id in ids.take(self.batch_size()) {
                if let Some(entry) = snapshot.get_mut(id) {
                    entry.due = now;
                }
            }
        }
    }

    /// Waits for what is due. It is read in a task, so that a call that is cut off does not take
    /// what others wait for with it.
    async fn refreshed(
        self: &Arc<Self>,
        due: BTreeSet<String>,
        now: Instant,
        limit: Duration,
    ) -> HashMap<String, ReadResult> {
        if due.is_empty() {
            return HashMap::new();
        }
        let refresh = tokio::spawn(Arc::clone(self).refresh(due, now));
        let fresh = timeout(limit, refresh).await;
        fresh.ok().and_then(Result::ok).unwrap_or_default()
    }

    /// Reads what is due of these and, with it, everything that is declared and due.
    async fn refresh(
        self: Arc<Self>,
        mut ids: BTreeSet<String>,
        now: Instant,
    ) -> HashMap<String, ReadResult> {
        if !self.keeps() {
            // There is nothing to share.
            return self.fetch(ids).await;
        }
        let _one_at_a_time = self.refreshing.lock().await;
        ids.retain(|id| self.is_due(id, now));
        if !ids.is_empty() {
            let others = self.declared.iter().filter(|id| self.is_due(id, now));
            ids.extend(others.cloned());
        }
        self.fetch(ids).await
    }

    /// Asks the store, all batches at once, and keeps what it says.
    async fn fetch(self: &Arc<Self>, ids: BTreeSet<String>) -> HashMap<String, ReadResult> {
        let ids = Vec::from_iter(ids);
        let mut batches = JoinSet::new();
        for batch in ids.chunks(self.batch_size()) {
            batches.spawn(Arc::clone(self).fetch_batch(batch.to_vec()));
        }
        batches.join_all().await.into_iter().flatten().collect()
    }

    async fn fetch_batch(self: Arc<Self>, ids: Vec<String>) -> Vec<(String, ReadResult)> {
        let reads = self.ask(&ids).await;
        let now = self.clock.instant();
        let mut snapshot = self.lock();
        let keep = |(id, read): (String, ReadResult)| {
            let entry = CacheEntry::after(snapshot.get(&id), &id, read, &self.secrets, now);
            let read = entry.read.clone();
            // Where nothing is cached, a bad time and an absence are remembered all the same.
            if self.keeps() || !matches!(read, Ok(Some(_))) {
                snapshot.insert(id.clone(), entry);
            }
            (id, read)
        };
        ids.into_iter().zip(reads).map(keep).collect()
    }

    /// Asks the store, whatever comes of it.
    async fn ask(&self, ids: &[String]) -> Vec<ReadResult> {
        let Some(store) = &self.secrets.store else {
            return vec![Ok(None); ids.len()];
        };
        let reads = within(self.secrets.timeout, store.read(ids)).await;
        let mut reads = reads.unwrap_or_else(|error| vec![Err(error); ids.len()]);
        let missing = StoreError::unavailable("the store left it out of its answer");
        reads.resize(ids.len(), Err(missing));
        // What is read here may show up anywhere, not only in the calls that have declared it.
        for secret in reads.iter().flatten().flatten() {
            remember_stored(secret);
        }
        reads
    }

    fn is_due(&self, id: &str, now: Instant) -> bool {
        self.lock().get(id).is_none_or(|entry| entry.due <= now)
    }

    /// What is known, for a call that began `then` and has waited, if need be.
    fn answer(&self, id: &str, then: Instant, limit: Duration) -> ReadResult {
        let snapshot = self.lock();
        let entry = snapshot.get(id);
        if let Some(entry) = entry.filter(|entry| entry.due > then) {
            return entry.read.clone();
        }
        let good = entry.and_then(|entry| entry.last_good(&self.secrets, self.clock.instant()));
        let (secret, _) = good.ok_or_else(|| StoreError::no_answer(limit))?;
        let text = "the store is slow; the last good value is used";
        tracing::warn!(secret = id, "{text}");
        Ok(Some(secret.clone()))
    }

    /// Whether there is nothing that would take time.
    fn is_local(&self) -> bool {
        let store = self.secrets.store.as_ref();
        store.is_none_or(|store| store.is_local())
    }

    /// Whether values are kept at all.
    fn keeps(&self) -> bool {
        !self.secrets.cache_for.is_zero()
    }

    fn batch_size(&self) -> usize {
        let store = self.secrets.store.as_ref();
        store.map_or(1, |store| store.batch_size().max(1))
    }

    /// A panic elsewhere leaves the snapshot as it was between two reads.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, CacheEntry>> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
