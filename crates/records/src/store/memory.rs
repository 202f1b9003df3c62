//! Records in the memory of this process.
//!
//! The memory is limited. A record that may not be forgotten stays until it expires; rather than
//! forget one, the memory rejects new records.

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    future::ready,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use super::{Field, PutOutcome, Record, Store, StoreFuture, Write};
use crate::StoreError;

/// The time between two warnings.
const PAUSE: Duration = Duration::from_mins(1);

/// The capacity of a [`Memory`].
#[derive(Clone, Copy)]
pub struct MemoryLimits {
    /// A plural noun for the records, for messages.
    pub what: &'static str,
    /// The maximum number of records.
    pub records: usize,
    /// The maximum size of all fields with bytes together.
    pub bytes: usize,
    /// Returns true for the id and the record of what a full memory may forget before it expires.
    pub may_forget: fn(&str, &Record) -> bool,
    /// Returns true for the id of what anyone can write: all of these together have half of the memory.
    pub is_anyones: fn(&str) -> bool,
    /// The log message for forgotten records.
    pub forgotten: &'static str,
}

/// A map that forgets the oldest records when it is full.
pub struct Memory {
    limits: MemoryLimits,
    records: Mutex<Records>,
}

#[derive(Default)]
struct Records {
    /// Each record, with its position in the order of writes.
    by_id: HashMap<String, (u64, Record)>,
    /// The bytes of all records.
    bytes: usize,
    /// The number of records written so far.
    written: u64,
    /// The time of the last warning of forgotten records.
    warned_at: Option<Instant>,
}

impl Store for Memory {
    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Record>> {
        let current = self.records().by_id.get(id).map(|(_, it)| it.clone());
        Box::pin(ready(Ok(current)))
    }

    fn put<'a>(&'a self, write: Write<'a>) -> StoreFuture<'a, PutOutcome> {
        let outcome = self.records().put(&self.limits, write);
        Box::pin(ready(outcome))
    }

    fn delete<'a>(&'a self, id: &'a str, version: u64) -> StoreFuture<'a, ()> {
        let mut records = self.records();
        let current = records.by_id.get(id);
        if current.is_some_and(|(_, it)| it.version == version) {
            records.take(id);
        }
        Box::pin(ready(Ok(())))
    }

    fn largest_field(&self) -> usize {
        self.limits.bytes / 4
    }
}

impl Memory {
    /// Creates an empty memory.
    pub fn new(limits: MemoryLimits) -> Self {
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
    fn put(&mut self, limits: &MemoryLimits, write: Write<'_>) -> Result<PutOutcome, StoreError> {
        let (id, record) = (write.id, write.record);
        let current = self.by_id.get(id).map(|(_, it)| it);
        if !write.may_replace(current) {
            return Ok(PutOutcome::Conflict(current.cloned()));
        }
        let current = self.take(id);
        let is_new_of_anyone = current.is_none() && (limits.is_anyones)(id);
        let room = self.make_room(limits, bytes_of(record), is_new_of_anyone, write.now);
        if let Err(error) = room {
            if let Some((number, record)) = current {
                self.insert(id, number, record);
            }
            return Err(error);
        }
        self.written += 1;
        self.insert(id, self.written, record.clone());
        Ok(PutOutcome::Written)
    }

    fn insert(&mut self, id: &str, number: u64, record: Record) {
        self.bytes += bytes_of(&record);
        self.by_id.insert(id.to_owned(), (number, record));
    }

    fn take(&mut self, id: &str) -> Option<(u64, Record)> {
        let taken = self.by_id.remove(id)?;
        self.bytes -= bytes_of(&taken.1);
        Some(taken)
    }

    /// Makes room for a record with this number of bytes. One that anyone can write must find room in
    /// their half of the memory.
    fn make_room(
        &mut self,
        limits: &MemoryLimits,
        bytes: usize,
        is_anyones: bool,
        now: SystemTime,
    ) -> Result<(), StoreError> {
        let fits = |(count, held): (usize, usize), share: usize| {
            count < limits.records / share && held + bytes <= limits.bytes / share
        };
        if fits(self.size(), 1 + usize::from(is_anyones)) {
            return Ok(());
        }
        self.by_id.retain(|_, (_, it)| !it.is_free(now));
        self.bytes = self.by_id.values().map(|(_, it)| bytes_of(it)).sum();
        // Nothing is forgotten if that would not make enough room.
        let kept = self.size_of(|id, it| !(limits.may_forget)(id, it));
        let of_anyone = self.size_of(|id, _| (limits.is_anyones)(id));
        if !fits(kept, 1) || is_anyones && !fits(of_anyone, 2) {
            return Err(StoreError::full(format!(
                "there are too many {}, and none of them may be forgotten yet",
                limits.what
            )));
        }
        if fits(self.size(), 1) {
            return Ok(());
        }
        if self.warned_at.is_none_or(|it| it.elapsed() >= PAUSE) {
            self.warned_at = Some(Instant::now());
            tracing::warn!("{}", limits.forgotten);
        }
        let forgettable = self.by_id.iter();
        let forgettable = forgettable.filter(|(id, (_, it))| (limits.may_forget)(id, it));
        let numbered = forgettable.map(|(id, (number, _))| (*number, id.clone()));
        let mut oldest: Vec<_> = numbered.collect();
        oldest.sort_unstable();
        // A twentieth at least, because this search takes a while.
        let share = oldest.len() / 20;
        for (index, (_, id)) in oldest.iter().enumerate() {
            if index >= share && fits(self.size(), 1) {
                break;
            }
            self.take(id);
        }
        Ok(())
    }

    /// Returns the number and the bytes of all records.
    fn size(&self) -> (usize, usize) {
        (self.by_id.len(), self.bytes)
    }

    /// Returns the number and the bytes of some records.
    fn size_of(&self, is_counted: impl Fn(&str, &Record) -> bool) -> (usize, usize) {
        let records = self.by_id.iter();
        let counted = records.filter(|(id, (_, it))| is_counted(id, it));
        counted.fold((0, 0), |(count, bytes), (_, (_, it))| {
            (count + 1, bytes + bytes_of(it))
        })
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
