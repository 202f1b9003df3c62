//! What was read, kept for a while: the store is asked once, not by every call.
//!
//! Concurrent calls share one request; a request that has room left takes along what other tools
//! declare; a store that is down or throttles is bridged with the last good values, for a while.
//! Absence and refusals are kept briefly, so that a bad deployment does not hammer the store.
//!
//! Written here because the caches that exist do less: `aws_secretsmanager_caching` reads one
//! secret a request, one after the other, and knows neither absence nor shared requests; `moka`
//! shares the loading of one key, not of a batch, and forgets a value when it has expired.

mod entry;
mod flight;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::watch;

use super::{Read, SecretStore, Secrets};
use crate::{Secret, StoreError, clock::Host};
use entry::{BRIEFLY, Entry, Held, Known};
use flight::{Flight, asked, landed};

/// Secrets that came from the store's cache, and those that had to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CacheUse {
    pub(crate) hits: u32,
    pub(crate) misses: u32,
}

/// A store with its cache.
pub(crate) struct SecretCache {
    secrets: Secrets,
    /// All ids that the tools and the server's own authentication declare.
    declared: Vec<String>,
    host: Host,
    entries: Mutex<HashMap<String, Entry>>,
}

impl SecretCache {
    pub(crate) fn new(secrets: Secrets, declared: Vec<String>, host: Host) -> Arc<Self> {
        Arc::new(Self {
            secrets,
            declared,
            host,
            entries: Mutex::default(),
        })
    }

    pub(crate) fn may_come_from_calls(&self) -> bool {
        self.secrets.may_come_from_calls()
    }

    /// Where the store looks for a secret. None where there is no store.
    pub(crate) fn place(&self, id: &str) -> Option<String> {
        self.secrets.store.as_ref().map(|store| store.place(id))
    }

    /// Reads secrets, in the order of their ids, within the store's time or half of `left`.
    pub(crate) async fn read(self: &Arc<Self>, ids: &[&str], left: Option<Duration>) -> Vec<Read> {
        self.counted(ids, left, &mut CacheUse::default()).await
    }

    /// The same, and counts which of them were known. Those in the environment always are, and are
    /// not counted.
    pub(crate) async fn counted(
        self: &Arc<Self>,
        ids: &[&str],
        left: Option<Duration>,
        cache: &mut CacheUse,
    ) -> Vec<Read> {
        let Some(store) = &self.secrets.store else {
            return ids.iter().map(|_| Ok(None)).collect();
        };
        if store.is_local() {
            let ids: Vec<_> = ids.iter().map(|&id| id.to_owned()).collect();
            return asked(&**store, &ids, self.secrets.timeout).await;
        }
        let known = self.known(store, ids);
        let limit = left.map_or(self.secrets.timeout, |left| {
            self.secrets.timeout.min(left / 2)
        });
        let ends = tokio::time::Instant::now() + limit;
        let mut reads = Vec::with_capacity(ids.len());
        for (id, known) in ids.iter().zip(known) {
            reads.push(match known {
                Known::Read(read) => {
                    cache.hits += 1;
                    read
                }
                Known::Flight(flight) => {
                    cache.misses += 1;
                    match tokio::time::timeout_at(ends, landed(flight, id)).await {
                        Ok(read) => read,
                        Err(_) => self.late(id, limit),
                    }
                }
            });
        }
        reads
    }

    /// Reads everything that is declared, so that the first call finds it. What is wrong is
    /// logged: it may be right by the time of a call.
    pub(crate) async fn warm(self: &Arc<Self>) {
        let is_local = |store: &Arc<dyn SecretStore>| store.is_local();
        if !self.keeps() || self.secrets.store.as_ref().is_none_or(is_local) {
            return;
        }
        let ids: Vec<_> = self.declared.iter().map(String::as_str).collect();
        for (id, read) in ids.iter().zip(self.read(&ids, None).await) {
            match read {
                Ok(Some(_)) => {}
                Ok(None) => {
                    let place = self.place(id).unwrap_or_default();
                    tracing::warn!(secret = id, place, "there is no such secret in the store");
                }
                Err(error) => tracing::warn!(secret = id, %error, "a secret cannot be read"),
            }
        }
    }

    /// All declared secrets that the store has, with their ids.
    pub(crate) async fn held(self: &Arc<Self>) -> Vec<(String, Secret)> {
        let ids: Vec<_> = self.declared.iter().map(String::as_str).collect();
        let reads = self.read(&ids, None).await.into_iter();
        let pairs = self.declared.iter().cloned().zip(reads);
        pairs
            .filter_map(|(id, read)| Some((id, read.ok()??)))
            .collect()
    }

    /// Reads a secret again whose value was refused where it belongs. None where the store has no
    /// other one.
    pub(crate) async fn reread(
        self: &Arc<Self>,
        id: &str,
        refused: &Secret,
        left: Duration,
    ) -> Option<Secret> {
        let store = self.secrets.store.as_ref()?;
        if store.is_local() {
            let value = self.read(&[id], None).await.remove(0).ok()??;
            return (!value.is(refused)).then_some(value);
        }
        let now = self.host.instant();
        let flight = {
            let mut entries = self.lock();
            let entry = entries.entry(id.to_owned()).or_default();
            if let Some(newer) = entry.value().filter(|value| !value.is(refused)) {
                // Another call has read it already.
                return Some(newer.clone());
            }
            let recently =
                |at: Instant| self.keeps() && now.saturating_duration_since(at) < BRIEFLY;
            match &entry.flight {
                Some(flight) => flight.clone(),
                None if entry.reread_at.is_some_and(recently) => return None,
                None => {
                    entry.reread_at = Some(now);
                    // What belongs together may have been rotated together.
                    let mut ids = vec![id.to_owned()];
                    self.fill(&mut ids, store, |other| {
                        entries
                            .get(other)
                            .is_none_or(|entry| entry.flight.is_none())
                    });
                    self.start(&mut entries, store, ids)
                }
            }
        };
        let limit = self.secrets.timeout.min(left / 2);
        let read = tokio::time::timeout(limit, landed(flight, id)).await;
        let value = read.ok()?.ok()??;
        (!value.is(refused)).then_some(value)
    }

    /// What is known of each secret; what is not is asked for.
    fn known(self: &Arc<Self>, store: &Arc<dyn SecretStore>, ids: &[&str]) -> Vec<Known> {
        let now = self.host.instant();
        let mut entries = self.lock();
        let is_wanted = |entries: &HashMap<String, Entry>, id: &str| {
            entries.get(id).is_none_or(|entry| entry.is_wanted(now))
        };
        let mut wanted: Vec<String> = Vec::new();
        for id in ids {
            if is_wanted(&entries, id) && !wanted.iter().any(|it| it == id) {
                wanted.push((*id).to_owned());
            }
        }
        if !wanted.is_empty() {
            self.fill(&mut wanted, store, |id| is_wanted(&entries, id));
            for batch in wanted.chunks(store.batch_size().max(1)) {
                self.start(&mut entries, store, batch.to_vec());
            }
        }
        let known = |id: &&str| entries[*id].known(now);
        ids.iter().map(known).collect()
    }

    /// Adds other declared ids, as far as the request that is made anyway has room for them.
    fn fill(
        &self,
        ids: &mut Vec<String>,
        store: &Arc<dyn SecretStore>,
        may: impl Fn(&str) -> bool,
    ) {
        if !self.keeps() {
            return;
        }
        let full = ids
            .len()
            .checked_next_multiple_of(store.batch_size().max(1));
        let room = full.unwrap_or(usize::MAX) - ids.len();
        let others = self
            .declared
            .iter()
            .filter(|id| may(id) && !ids.contains(id));
        let others: Vec<_> = others.take(room).cloned().collect();
        ids.extend(others);
    }

    /// Whether values are kept at all.
    fn keeps(&self) -> bool {
        !self.secrets.cache_for.is_zero()
    }

    /// Asks the store. A task of its own, so that a call that is cut off does not take what others
    /// wait for with it.
    fn start(
        self: &Arc<Self>,
        entries: &mut HashMap<String, Entry>,
        store: &Arc<dyn SecretStore>,
        ids: Vec<String>,
    ) -> Flight {
        let (land, flight) = watch::channel(None);
        for id in &ids {
            entries.entry(id.clone()).or_default().flight = Some(flight.clone());
        }
        let (cache, store) = (Arc::clone(self), Arc::clone(store));
        tokio::spawn(async move {
            let reads = asked(&*store, &ids, cache.secrets.timeout).await;
            land.send_replace(Some(Arc::new(cache.land(ids, reads))));
        });
        flight
    }

    /// Keeps what came of a request; returns what its callers get.
    fn land(&self, ids: Vec<String>, reads: Vec<Read>) -> HashMap<String, Read> {
        let now = self.host.instant();
        let missing = || {
            Err(StoreError::unavailable(
                "the store left it out of its answer",
            ))
        };
        let reads = reads.into_iter().chain(std::iter::repeat_with(missing));
        let mut entries = self.lock();
        let mut landed = HashMap::with_capacity(ids.len());
        for (id, read) in ids.into_iter().zip(reads) {
            let entry = entries.entry(id.clone()).or_default();
            entry.flight = None;
            let held = Held::after(entry.held.take(), &id, read, &self.secrets, now);
            landed.insert(id, held.read.clone());
            // Where nothing is cached, a bad time and an absence are remembered all the same.
            let is_value = matches!(held.read, Ok(Some(_)));
            entry.held = (self.keeps() || !is_value).then_some(held);
        }
        landed
    }

    /// The answer for a call that cannot wait any longer.
    fn late(&self, id: &str, limit: Duration) -> Read {
        let now = self.host.instant();
        let entries = self.lock();
        let held = entries.get(id).and_then(|entry| entry.held.as_ref());
        match held.and_then(|held| held.good(&self.secrets, now)) {
            Some(secret) => {
                tracing::warn!(
                    secret = id,
                    "the store is slow; the last good value is used"
                );
                Ok(Some(secret.clone()))
            }
            None => Err(StoreError::no_answer(limit)),
        }
    }

    /// A panic elsewhere leaves the entries as they were between two reads.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
