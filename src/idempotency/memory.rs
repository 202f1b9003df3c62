//! Calls remembered in this process.
//!
//! The room is limited, and shared by owner: whoever fills it loses what is their own. A call that
//! must not run twice is never forgotten before it expires; rather than that nothing new runs.

mod owners;
#[cfg(test)]
mod tests;
mod warnings;

use std::{
    collections::{BTreeMap, HashMap},
    future::ready,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use super::{CallStore, Doing, Record, State};
use crate::StoreError;
use owners::Owners;
use warnings::Warnings;

/// How many calls of one owner are remembered, how many of all, and how many bytes of outcomes.
const MOST_OF_ONE: usize = 10_000;
const MOST_CALLS: usize = 50_000;
const MOST_BYTES: usize = 16 << 20;

/// A map that forgets the oldest finished calls when it is full.
#[derive(Default)]
pub(super) struct Memory(Mutex<Calls>);

type Key = Arc<str>;

#[derive(Default)]
struct Calls {
    records: HashMap<Key, Held>,
    /// When records become free: from then on they say nothing any more.
    free: BTreeMap<(SystemTime, u64), Key>,
    owners: Owners,
    /// How many records have been written.
    written: u64,
    /// The time of the last claim.
    now: Option<SystemTime>,
    warnings: Warnings,
}

struct Held {
    /// Which record it was, in the order in which they were written.
    number: u64,
    record: Record,
}

impl CallStore for Memory {
    fn claim<'a>(
        &'a self,
        key: &'a str,
        record: &'a Record,
        now: SystemTime,
    ) -> Doing<'a, Option<Record>> {
        Box::pin(ready(self.change(|calls| calls.claim(key, record, now))))
    }

    fn finish<'a>(&'a self, key: &'a str, record: &'a Record) -> Doing<'a, bool> {
        Box::pin(ready(Ok(self.change(|calls| calls.finish(key, record)))))
    }

    fn release<'a>(&'a self, key: &'a str, claim: &'a str) -> Doing<'a, ()> {
        self.change(|calls| {
            if calls.has_claim(key, claim) {
                calls.take(key);
            }
        });
        Box::pin(ready(Ok(())))
    }

    fn largest_outcome(&self) -> usize {
        MOST_BYTES / 4
    }
}

impl Memory {
    /// Nothing between locking and unlocking panics halfway, and the log is told afterwards.
    fn change<T>(&self, change: impl FnOnce(&mut Calls) -> T) -> T {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut calls);
        let warnings = calls.warnings.take();
        drop(calls);
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        changed
    }
}

impl Calls {
    fn claim(
        &mut self,
        key: &str,
        record: &Record,
        now: SystemTime,
    ) -> Result<Option<Record>, StoreError> {
        if let Some(Held { record, .. }) = self.records.get(key)
            && record.free_at > now
        {
            return Ok(Some(record.clone()));
        }
        self.now = Some(now);
        self.take(key);
        self.make_room_for_a_call_of(&record.owner)?;
        self.write(key.into(), record.clone());
        Ok(None)
    }

    fn finish(&mut self, key: &str, record: &Record) -> bool {
        if !self.has_claim(key, &record.claim) {
            return false;
        }
        self.take(key);
        self.write(key.into(), record.clone());
        self.make_room_for_outcomes();
        true
    }

    fn has_claim(&self, key: &str, claim: &str) -> bool {
        let held = self.records.get(key);
        held.is_some_and(|held| held.record.claim == claim)
    }

    fn write(&mut self, key: Key, record: Record) {
        self.written += 1;
        self.put(key, self.written, record);
    }

    fn put(&mut self, key: Key, number: u64, record: Record) {
        self.free.insert((record.free_at, number), Arc::clone(&key));
        self.owners.add(&key, number, &record);
        self.records.insert(key, Held { number, record });
    }

    fn take(&mut self, key: &str) -> Option<Held> {
        let held = self.records.remove(key)?;
        self.free.remove(&(held.record.free_at, held.number));
        self.owners.remove(held.number, &held.record);
        Some(held)
    }

    fn make_room_for_a_call_of(&mut self, owner: &str) -> Result<(), StoreError> {
        if self.has_room_for_a_call_of(owner) {
            return Ok(());
        }
        self.drop_free();
        if self.owners.records_of(owner) >= MOST_OF_ONE {
            let oldest = self.owners.oldest_forgettable_of(owner);
            self.forget(&oldest.ok_or_else(|| full(MOST_OF_ONE, "this caller"))?);
        }
        if self.records.len() >= MOST_CALLS {
            let oldest = self.owners.oldest_forgettable();
            self.forget(&oldest.ok_or_else(|| full(MOST_CALLS, "all callers"))?);
        }
        Ok(())
    }

    fn has_room_for_a_call_of(&self, owner: &str) -> bool {
        self.records.len() < MOST_CALLS && self.owners.records_of(owner) < MOST_OF_ONE
    }

    fn make_room_for_outcomes(&mut self) {
        if self.owners.bytes() > MOST_BYTES {
            self.drop_free();
        }
        while self.owners.bytes() > MOST_BYTES {
            let Some(key) = self.owners.oldest_outcome() else {
                break;
            };
            if let Some(Held { number, record }) = self.take(&key) {
                let state = State::Ran;
                self.put(key, number, Record { state, ..record });
            }
            self.warnings.no_outcome();
        }
    }

    /// Drops what any call may take the place of.
    fn drop_free(&mut self) {
        while let Some(((free_at, _), key)) = self.free.first_key_value()
            && self.now.is_some_and(|now| *free_at <= now)
        {
            let key = Arc::clone(key);
            self.take(&key);
        }
    }

    fn forget(&mut self, key: &str) {
        self.take(key);
        self.warnings.forgotten();
    }
}

fn full(calls: usize, of: &str) -> StoreError {
    StoreError::full(format!(
        "{calls} calls of {of} are remembered, and none of them may be forgotten yet"
    ))
}
