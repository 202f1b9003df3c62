//! Records in the memory of this process.
//!
//! The room is limited, and shared by owner: whoever fills it loses what is their own. What may not
//! be forgotten stays until it expires; rather than forget it, the memory takes nothing new.

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

use super::{PutOutcome, Record, Store, StoreFuture};
use crate::StoreError;
use owners::Owners;
use warnings::Warnings;

/// How much there is room for.
#[derive(Clone, Copy)]
pub(crate) struct MemoryLimits {
    /// What the records are, for messages.
    pub(crate) what: &'static str,
    /// How many records of one owner, and of all owners.
    pub(crate) of_one: usize,
    pub(crate) of_all: usize,
    /// How many bytes of what may be dropped.
    pub(crate) bytes: usize,
    /// What the log says when records are forgotten, and when parts of them are dropped.
    pub(crate) forgotten: &'static str,
    pub(crate) dropped: &'static str,
}

/// A map that forgets the oldest records when it is full.
pub(crate) struct Memory {
    limits: MemoryLimits,
    records: Mutex<Records>,
}

type EvictionKey = Arc<str>;

#[derive(Default)]
struct Records {
    held: HashMap<EvictionKey, HeldRecord>,
    /// When records become free: from then on they say nothing any more.
    free: BTreeMap<(SystemTime, u64), EvictionKey>,
    owners: Owners,
    /// How many records have been written.
    written: u64,
    warnings: Warnings,
}

struct HeldRecord {
    /// Which record it was, in the order in which they were written.
    number: u64,
    record: Record,
}

impl Store for Memory {
    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Record>> {
        let held = self.change(|records| records.held.get(id).map(|held| held.record.clone()));
        Box::pin(ready(Ok(held)))
    }

    fn put<'a>(
        &'a self,
        id: &'a str,
        record: &'a Record,
        over: Option<u64>,
        now: SystemTime,
    ) -> StoreFuture<'a, PutOutcome> {
        let put = self.change(|records| records.put(&self.limits, id, record, over, now));
        Box::pin(ready(put))
    }

    fn delete<'a>(&'a self, id: &'a str, version: u64) -> StoreFuture<'a, ()> {
        self.change(|records| {
            let held = records.held.get(id);
            if held.is_some_and(|held| held.record.version == version) {
                records.take(id);
            }
        });
        Box::pin(ready(Ok(())))
    }

    fn largest_field(&self) -> usize {
        self.limits.bytes / 4
    }
}

impl Memory {
    pub(crate) fn new(limits: MemoryLimits) -> Self {
        Self {
            limits,
            records: Mutex::default(),
        }
    }

    /// Nothing between locking and unlocking panics halfway, and the log is told afterwards.
    fn change<T>(&self, change: impl FnOnce(&mut Records) -> T) -> T {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut records);
        let warnings = records.warnings.take();
        drop(records);
        for warning in warnings {
            warning.log();
        }
        changed
    }
}

impl Records {
    fn put(
        &mut self,
        limits: &MemoryLimits,
        id: &str,
        record: &Record,
        over: Option<u64>,
        now: SystemTime,
    ) -> Result<PutOutcome, StoreError> {
        let held = self.held.get(id).map(|held| &held.record);
        let may_write = match over {
            Some(version) => held.is_some_and(|held| held.version == version),
            None => held.is_none_or(|held| held.is_free(now)),
        };
        if !may_write {
            return Ok(PutOutcome::Conflict(held.cloned()));
        }
        self.take(id);
        self.drop_while(|held| held.expires_at <= now);
        if let Some(eviction) = &record.eviction {
            self.make_room_for_one_of(&eviction.owner, limits, now)?;
        }
        self.written += 1;
        self.insert(id.into(), self.written, record.clone());
        self.make_room_for_bytes(limits, now);
        Ok(PutOutcome::Written)
    }

    fn insert(&mut self, key: EvictionKey, number: u64, record: Record) {
        self.free
            .insert((free_at(&record), number), Arc::clone(&key));
        self.owners.add(&key, number, &record);
        self.held.insert(key, HeldRecord { number, record });
    }

    fn take(&mut self, id: &str) -> Option<HeldRecord> {
        let held = self.held.remove(id)?;
        self.free.remove(&(free_at(&held.record), held.number));
        self.owners.remove(held.number, &held.record);
        Some(held)
    }

    fn make_room_for_one_of(
        &mut self,
        owner: &str,
        limits: &MemoryLimits,
        now: SystemTime,
    ) -> Result<(), StoreError> {
        if self.has_room_for_one_of(owner, limits) {
            return Ok(());
        }
        self.drop_while(|held| held.is_free(now));
        if self.owners.records_of(owner) >= limits.of_one {
            let oldest = self.owners.oldest_forgettable_of(owner);
            self.forget(oldest, (limits.of_one, "this caller"), limits)?;
        }
        if self.owners.records() >= limits.of_all {
            let oldest = self.owners.oldest_forgettable();
            self.forget(oldest, (limits.of_all, "all callers"), limits)?;
        }
        Ok(())
    }

    fn has_room_for_one_of(&self, owner: &str, limits: &MemoryLimits) -> bool {
        self.owners.records() < limits.of_all && self.owners.records_of(owner) < limits.of_one
    }

    fn make_room_for_bytes(&mut self, limits: &MemoryLimits, now: SystemTime) {
        if self.owners.bytes() > limits.bytes {
            self.drop_while(|held| held.is_free(now));
        }
        while self.owners.bytes() > limits.bytes {
            let held = self
                .owners
                .oldest_droppable()
                .map(|key| (self.take(&key), key));
            let Some((Some(HeldRecord { number, mut record }), key)) = held else {
                break;
            };
            if let Some(eviction) = &record.eviction {
                self.warnings.dropped(limits.dropped, &eviction.owner);
                eviction.droppable.and_then(|name| record.take(name));
            }
            self.insert(key, number, record);
        }
    }

    /// In the order in which records become free.
    fn drop_while(&mut self, is_over: impl Fn(&Record) -> bool) {
        while let Some(key) = self.free.first_key_value().map(|(_, key)| Arc::clone(key))
            && self
                .held
                .get(&key)
                .is_some_and(|held| is_over(&held.record))
        {
            self.take(&key);
        }
    }

    fn forget(
        &mut self,
        oldest: Option<EvictionKey>,
        (most, of): (usize, &str),
        limits: &MemoryLimits,
    ) -> Result<(), StoreError> {
        let Some(HeldRecord { record, .. }) = oldest.and_then(|key| self.take(&key)) else {
            let what = limits.what;
            return Err(StoreError::full(format!(
                "{most} {what} of {of} are remembered, and none of them may be forgotten yet"
            )));
        };
        let owner = record
            .eviction
            .map(|eviction| eviction.owner)
            .unwrap_or_default();
        self.warnings.forgotten(limits.forgotten, &owner);
        Ok(())
    }
}

fn free_at(record: &Record) -> SystemTime {
    record.free_at.unwrap_or(record.expires_at)
}
