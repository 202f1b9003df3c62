//! Who holds how much of the memory, and what of it may go.
//!
//! What every write asks is answered from an index: it must not take longer because there are many
//! records. Who holds most is looked for among the owners once the memory is full, because until
//! then nobody asks.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::{EvictionKey, Record};

#[derive(Default)]
pub(super) struct Owners {
    all: HashMap<Arc<str>, Owner>,
    records: usize,
    bytes: usize,
}

#[derive(Default)]
struct Owner {
    records: usize,
    bytes: usize,
    /// By the numbers of the records: the oldest first.
    forgettable: BTreeMap<u64, EvictionKey>,
    droppable: BTreeMap<u64, EvictionKey>,
}

impl Owners {
    pub(super) fn add(&mut self, key: &EvictionKey, number: u64, record: &Record) {
        let Some(share) = &record.eviction else {
            return;
        };
        if !self.all.contains_key(&*share.owner) {
            self.all.insert((&*share.owner).into(), Owner::default());
        }
        let Some(owner) = self.all.get_mut(&*share.owner) else {
            return;
        };
        let size = record.droppable_bytes();
        self.records += 1;
        self.bytes += size;
        owner.records += 1;
        owner.bytes += size;
        if share.is_forgettable {
            owner.forgettable.insert(number, Arc::clone(key));
        }
        if size > 0 {
            owner.droppable.insert(number, Arc::clone(key));
        }
    }

    pub(super) fn remove(&mut self, number: u64, record: &Record) {
        let Some(share) = &record.eviction else {
            return;
        };
        let Some(owner) = self.all.get_mut(&*share.owner) else {
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
            self.all.remove(&*share.owner);
        }
    }

    /// How many records there are that take somebody's share.
    pub(super) fn records(&self) -> usize {
        self.records
    }

    /// How many bytes may be dropped.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn records_of(&self, owner: &str) -> usize {
        self.all.get(owner).map_or(0, |owner| owner.records)
    }

    pub(super) fn oldest_forgettable_of(&self, owner: &str) -> Option<EvictionKey> {
        oldest(&self.all.get(owner)?.forgettable)
    }

    /// Of the owner with the most records, among those who have one that may be forgotten.
    pub(super) fn oldest_forgettable(&self) -> Option<EvictionKey> {
        let owners = self.all.values();
        let owners = owners.filter(|owner| !owner.forgettable.is_empty());
        oldest(&owners.max_by_key(|owner| owner.records)?.forgettable)
    }

    /// The oldest record with bytes to drop of the owner with the most of them.
    pub(super) fn oldest_droppable(&self) -> Option<EvictionKey> {
        let owners = self.all.values();
        oldest(&owners.max_by_key(|owner| owner.bytes)?.droppable)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

fn oldest(keys: &BTreeMap<u64, EvictionKey>) -> Option<EvictionKey> {
    let (_, key) = keys.first_key_value()?;
    Some(Arc::clone(key))
}
