//! Records in the memory of this process.
//!
//! The memory is limited. A record that may not be forgotten stays until it expires; rather than
//! forget one, the memory rejects new records.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap},
    future::ready,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use super::{Field, PutOutcome, Record, Store, StoreFuture, Write};
use crate::StoreError;

/// A full memory forgets a record with each write, so it warns of that only after this time.
const PAUSE: Duration = Duration::from_mins(1);

/// The capacity of a [`Memory`].
#[derive(Clone, Copy)]
pub(crate) struct MemoryLimits {
    /// A plural noun for the records, for messages.
    pub(crate) what: &'static str,
    /// The maximum number of records, and of the bytes in all fields of that type.
    pub(crate) records: usize,
    pub(crate) bytes: usize,
    /// Returns true for the id and the record of what a full memory may forget before it expires.
    pub(crate) may_forget: fn(&str, &Record) -> bool,
    /// Returns true for the id of what anyone can write: all of these together have half of the memory.
    pub(crate) is_anyones: fn(&str) -> bool,
    /// The log message for forgotten records.
    pub(crate) forgotten: &'static str,
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
    /// The ids of the records that may be forgotten, the oldest first.
    forgettable: BTreeMap<u64, RecordId>,
    bytes: usize,
    /// The bytes of the records that may not be forgotten.
    kept_bytes: usize,
    /// The number and the bytes of those that anyone can write.
    anyones: (usize, usize),
    /// The number of records written so far.
    written: u64,
    warned_at: Option<Instant>,
}

struct HeldRecord {
    /// Its position in the order of writes.
    number: u64,
    record: Record,
    is_anyones: bool,
}

impl Store for Memory {
    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Record>> {
        let current = self.records().by_id.get(id).map(|it| it.record.clone());
        Box::pin(ready(Ok(current)))
    }

    fn put<'a>(&'a self, write: Write<'a>) -> StoreFuture<'a, PutOutcome> {
        let mut forgets = false;
        let mut records = self.records();
        let outcome = records.put(&self.limits, write, &mut forgets);
        let warns = forgets && records.may_warn();
        drop(records);
        if warns {
            tracing::warn!("{}", self.limits.forgotten);
        }
        Box::pin(ready(outcome))
    }

    fn delete<'a>(&'a self, id: &'a str, version: u64) -> StoreFuture<'a, ()> {
        let mut records = self.records();
        let current = records.by_id.get(id);
        if current.is_some_and(|held| held.record.version == version) {
            records.take(id);
        }
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

    /// Locks the records. A poisoned lock is harmless: nothing panics halfway while it is held.
    fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Records {
    fn put(
        &mut self,
        limits: &MemoryLimits,
        write: Write<'_>,
        forgets: &mut bool,
    ) -> Result<PutOutcome, StoreError> {
        let (id, record) = (write.id, write.record);
        let current = self.by_id.get(id).map(|held| &held.record);
        if !write.may_replace(current) {
            return Ok(PutOutcome::Conflict(current.cloned()));
        }
        let current = self.take(id);
        let is_new_of_anyone = current.is_none() && (limits.is_anyones)(id);
        let new = (bytes_of(record), is_new_of_anyone);
        let room = self.make_room(limits, new, write.now, forgets);
        if room.is_err() {
            if let Some(HeldRecord { number, record, .. }) = current {
                self.insert(limits, id.into(), number, record);
            }
            return room.map(|()| PutOutcome::Written);
        }
        self.written += 1;
        self.insert(limits, id.into(), self.written, record.clone());
        Ok(PutOutcome::Written)
    }

    fn insert(&mut self, limits: &MemoryLimits, id: RecordId, number: u64, record: Record) {
        let free_at = record.free_at.unwrap_or(record.expires_at);
        self.by_free_at.insert((free_at, number), Arc::clone(&id));
        if (limits.may_forget)(&id, &record) {
            self.forgettable.insert(number, Arc::clone(&id));
        } else {
            self.kept_bytes += bytes_of(&record);
        }
        self.bytes += bytes_of(&record);
        let is_anyones = (limits.is_anyones)(&id);
        if is_anyones {
            self.anyones.0 += 1;
            self.anyones.1 += bytes_of(&record);
        }
        let held = HeldRecord {
            number,
            record,
            is_anyones,
        };
        self.by_id.insert(id, held);
    }

    fn take(&mut self, id: &str) -> Option<HeldRecord> {
        let held = self.by_id.remove(id)?;
        let free_at = held.record.free_at.unwrap_or(held.record.expires_at);
        self.by_free_at.remove(&(free_at, held.number));
        if self.forgettable.remove(&held.number).is_none() {
            self.kept_bytes -= bytes_of(&held.record);
        }
        self.bytes -= bytes_of(&held.record);
        if held.is_anyones {
            self.anyones.0 -= 1;
            self.anyones.1 -= bytes_of(&held.record);
        }
        Some(held)
    }

    /// Makes room for a record with this number of bytes. One that anyone can write must find room in
    /// their half of the memory.
    fn make_room(
        &mut self,
        limits: &MemoryLimits,
        (bytes, is_anyones): (usize, bool),
        now: SystemTime,
        forgets: &mut bool,
    ) -> Result<(), StoreError> {
        let is_full =
            |it: &Self| it.by_id.len() >= limits.records || it.bytes + bytes > limits.bytes;
        self.drop_while(|record| record.expires_at <= now);
        if is_full(self) {
            self.drop_while(|record| record.is_free(now));
        }
        // Nothing is forgotten if that would not make enough room.
        let kept = self.by_id.len() - self.forgettable.len();
        let (count, held) = self.anyones;
        let is_crowded = count >= limits.records / 2 || held + bytes > limits.bytes / 2;
        let is_kept_full = kept >= limits.records || self.kept_bytes + bytes > limits.bytes;
        if is_kept_full || is_anyones && is_crowded {
            return Err(StoreError::full(format!(
                "there are too many {}, and none of them may be forgotten yet",
                limits.what
            )));
        }
        while is_full(self)
            && let Some((_, id)) = self.forgettable.first_key_value()
        {
            let id = Arc::clone(id);
            self.take(&id);
            *forgets = true;
        }
        Ok(())
    }

    /// Drops records in the order in which they become free, for as long as `may_drop` allows it.
    fn drop_while(&mut self, may_drop: impl Fn(&Record) -> bool) {
        while let Some((_, id)) = self.by_free_at.first_key_value()
            && self
                .by_id
                .get(id)
                .is_some_and(|held| may_drop(&held.record))
        {
            let id = Arc::clone(id);
            self.take(&id);
        }
    }

    fn may_warn(&mut self) -> bool {
        let is_due = self.warned_at.is_none_or(|at| at.elapsed() >= PAUSE);
        if is_due {
            self.warned_at = Some(Instant::now());
        }
        is_due
    }
}

fn bytes_of(record: &Record) -> usize {
    let fields = record.fields.iter();
    let sizes = fields.map(|(_, field)| match field {
        Field::Bytes(bytes) => bytes.len(),
        _ => 0,
    });
    sizes.sum()
}
