//! Records in the memory of this process.
//!
//! The capacity is limited, and shared among owners: an owner who fills it loses their own records.
//! A record that may not be forgotten stays until it expires; rather than forget one, the memory
//! rejects new records.

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

/// The capacity of a [`Memory`].
#[derive(Clone, Copy)]
pub(crate) struct MemoryLimits {
    /// A plural noun for the records, for messages.
    pub(crate) what: &'static str,
    /// The maximum number of records of one owner, and of all owners.
    pub(crate) per_owner: usize,
    pub(crate) total: usize,
    /// The maximum size of all droppable fields together.
    pub(crate) bytes: usize,
    /// The log messages for forgotten records, and for dropped fields.
    pub(crate) forgotten: &'static str,
    pub(crate) dropped: &'static str,
}

/// A map that forgets the oldest records when it is full.
pub(crate) struct Memory {
    limits: MemoryLimits,
    records: Mutex<Records>,
}

type RecordId = Arc<str>;

#[derive(Default)]
struct Records {
    by_id: HashMap<RecordId, HeldRecord>,
    /// The ids by the time at which their records become free and no longer matter.
    by_free_at: BTreeMap<(SystemTime, u64), RecordId>,
    owners: Owners,
    /// The number of records written so far.
    written: u64,
    warnings: Warnings,
}

struct HeldRecord {
    /// Its position in the order of writes.
    number: u64,
    record: Record,
}

impl Store for Memory {
    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Record>> {
        let current = self.change(|records| records.by_id.get(id).map(|held| held.record.clone()));
        Box::pin(ready(Ok(current)))
    }

    fn put<'a>(
        &'a self,
        id: &'a str,
        record: &'a Record,
        over: Option<u64>,
        now: SystemTime,
    ) -> StoreFuture<'a, PutOutcome> {
        let outcome = self.change(|records| records.put(&self.limits, id, record, over, now));
        Box::pin(ready(outcome))
    }

    fn delete<'a>(&'a self, id: &'a str, version: u64) -> StoreFuture<'a, ()> {
        self.change(|records| {
            let current = records.by_id.get(id);
            if current.is_some_and(|held| held.record.version == version) {
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

    /// Changes the records. A poisoned lock is harmless: nothing panics halfway while it is held.
    /// Warnings are logged after the lock is released.
    fn change<T>(&self, change: impl FnOnce(&mut Records) -> T) -> T {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut records);
        let warnings = records.warnings.take();
        drop(records);
        for warning in warnings {
            warning.log();
        }
        result
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
        let current = self.by_id.get(id).map(|held| &held.record);
        let may_write = match over {
            Some(version) => current.is_some_and(|current| current.version == version),
            None => current.is_none_or(|current| current.is_free(now)),
        };
        if !may_write {
            return Ok(PutOutcome::Conflict(current.cloned()));
        }
        self.take(id);
        self.drop_while(|record| record.expires_at <= now);
        if let Some(eviction) = &record.eviction {
            self.make_room_for_record_of(&eviction.owner, limits, now)?;
        }
        self.written += 1;
        self.insert(id.into(), self.written, record.clone());
        self.make_room_for_bytes(limits, now);
        Ok(PutOutcome::Written)
    }

    fn insert(&mut self, id: RecordId, number: u64, record: Record) {
        self.by_free_at
            .insert((free_at(&record), number), Arc::clone(&id));
        self.owners.add(&id, number, &record);
        self.by_id.insert(id, HeldRecord { number, record });
    }

    fn take(&mut self, id: &str) -> Option<HeldRecord> {
        let held = self.by_id.remove(id)?;
        self.by_free_at
            .remove(&(free_at(&held.record), held.number));
        self.owners.remove(held.number, &held.record);
        Some(held)
    }

    fn make_room_for_record_of(
        &mut self,
        owner: &str,
        limits: &MemoryLimits,
        now: SystemTime,
    ) -> Result<(), StoreError> {
        if self.has_room_for_record_of(owner, limits) {
            return Ok(());
        }
        self.drop_while(|record| record.is_free(now));
        if self.owners.records_of(owner) >= limits.per_owner {
            let oldest = self.owners.oldest_forgettable_of(owner);
            self.forget(oldest, (limits.per_owner, "this caller"), limits)?;
        }
        if self.owners.records() >= limits.total {
            let oldest = self.owners.oldest_forgettable();
            self.forget(oldest, (limits.total, "all callers"), limits)?;
        }
        Ok(())
    }

    fn has_room_for_record_of(&self, owner: &str, limits: &MemoryLimits) -> bool {
        self.owners.records() < limits.total && self.owners.records_of(owner) < limits.per_owner
    }

    fn make_room_for_bytes(&mut self, limits: &MemoryLimits, now: SystemTime) {
        if self.owners.bytes() > limits.bytes {
            self.drop_while(|record| record.is_free(now));
        }
        while self.owners.bytes() > limits.bytes {
            let oldest = self
                .owners
                .oldest_droppable()
                .map(|id| (self.take(&id), id));
            let Some((Some(HeldRecord { number, mut record }), id)) = oldest else {
                break;
            };
            if let Some(eviction) = &record.eviction {
                self.warnings.dropped(limits.dropped, &eviction.owner);
                eviction.droppable.and_then(|name| record.take(name));
            }
            self.insert(id, number, record);
        }
    }

    /// Drops records in the order in which they become free, for as long as `may_drop` allows it.
    fn drop_while(&mut self, may_drop: impl Fn(&Record) -> bool) {
        while let Some(id) = self
            .by_free_at
            .first_key_value()
            .map(|(_, id)| Arc::clone(id))
            && self
                .by_id
                .get(&id)
                .is_some_and(|held| may_drop(&held.record))
        {
            self.take(&id);
        }
    }

    fn forget(
        &mut self,
        oldest: Option<RecordId>,
        (maximum, owners): (usize, &str),
        limits: &MemoryLimits,
    ) -> Result<(), StoreError> {
        let Some(HeldRecord { record, .. }) = oldest.and_then(|id| self.take(&id)) else {
            let what = limits.what;
            return Err(StoreError::full(format!(
                "{maximum} {what} of {owners} are remembered, and none of them may be forgotten yet"
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
