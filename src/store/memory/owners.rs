//! Each owner's use of the memory, and the records and fields that may be evicted.
//!
//! Every write relies on indexes: it must not take longer because there are many records. The owner
//! with the most records or bytes is searched for only when the memory is full.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::{Record, RecordId};

#[derive(Default)]
pub(super) struct Owners {
    by_name: HashMap<Arc<str>, Owner>,
    records: usize,
    bytes: usize,
}

#[derive(Default)]
struct Owner {
    records: usize,
    bytes: usize,
    /// By record number: the oldest first.
    forgettable: BTreeMap<u64, RecordId>,
    droppable: BTreeMap<u64, RecordId>,
}

impl Owners {
    pub(super) fn add(&mut self, id: &RecordId, number: u64, record: &Record) {
        let Some(eviction) = &record.eviction else {
            return;
        };
        let name = &*eviction.owner;
        if !self.by_name.contains_key(name) {
            self.by_name.insert(name.into(), Owner::default());
        }
        let Some(owner) = self.by_name.get_mut(name) else {
            return;
        };
        let size = record.droppable_bytes();
        self.records += 1;
        self.bytes += size;
        owner.records += 1;
        owner.bytes += size;
        if eviction.is_forgettable {
            owner.forgettable.insert(number, Arc::clone(id));
        }
        if size > 0 {
            owner.droppable.insert(number, Arc::clone(id));
        }
    }

    pub(super) fn remove(&mut self, number: u64, record: &Record) {
        let Some(eviction) = &record.eviction else {
            return;
        };
        let Some(owner) = self.by_name.get_mut(&*eviction.owner) else {
            return;
        };
        let size = record.droppable_bytes();
        self.records -= 1;
        self.bytes -= size;
        owner.records -= 1;
        owner.bytes -= size;
        owner.forgettable.remove(&number);
        owner.droppable.remove(&number);
        if owner.records == 0 {
            self.by_name.remove(&*eviction.owner);
        }
    }

    /// The number of records that count towards an owner's share.
    pub(super) fn records(&self) -> usize {
        self.records
    }

    /// The size of all droppable fields.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn records_of(&self, owner: &str) -> usize {
        self.by_name.get(owner).map_or(0, |owner| owner.records)
    }

    pub(super) fn oldest_forgettable_of(&self, owner: &str) -> Option<RecordId> {
        oldest(&self.by_name.get(owner)?.forgettable)
    }

    /// The oldest forgettable record of the owner with the most records, among the owners who have
    /// a forgettable one.
    pub(super) fn oldest_forgettable(&self) -> Option<RecordId> {
        let owners = self.by_name.values();
        let owners = owners.filter(|owner| !owner.forgettable.is_empty());
        oldest(&owners.max_by_key(|owner| owner.records)?.forgettable)
    }

    /// The oldest record with a droppable field, of the owner with the most droppable bytes.
    pub(super) fn oldest_droppable(&self) -> Option<RecordId> {
        let owners = self.by_name.values();
        oldest(&owners.max_by_key(|owner| owner.bytes)?.droppable)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

fn oldest(ids: &BTreeMap<u64, RecordId>) -> Option<RecordId> {
    let (_, id) = ids.first_key_value()?;
    Some(Arc::clone(id))
}
