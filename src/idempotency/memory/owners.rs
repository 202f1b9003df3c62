//! Who holds how much of the memory, and what of it may go.
//!
//! What every call asks is answered from an index: a claim must not take longer because many calls
//! are remembered. Who holds most is looked for among the owners once the memory is full, because
//! until then nobody asks.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::{Key, Record, State};

#[derive(Default)]
pub(super) struct Owners {
    all: HashMap<Arc<str>, Owner>,
    bytes: usize,
}

#[derive(Default)]
struct Owner {
    records: usize,
    bytes: usize,
    /// By the numbers of the records: the oldest first.
    forgettable: BTreeMap<u64, Key>,
    outcomes: BTreeMap<u64, Key>,
}

impl Owners {
    pub(super) fn add(&mut self, key: &Key, number: u64, record: &Record) {
        let size = record.size();
        self.bytes += size;
        if !self.all.contains_key(&*record.owner) {
            self.all.insert((&*record.owner).into(), Owner::default());
        }
        let Some(owner) = self.all.get_mut(&*record.owner) else {
            return;
        };
        owner.records += 1;
        owner.bytes += size;
        if is_forgettable(record) {
            owner.forgettable.insert(number, Arc::clone(key));
        }
        if size > 0 {
            owner.outcomes.insert(number, Arc::clone(key));
        }
    }

    pub(super) fn remove(&mut self, number: u64, record: &Record) {
        let size = record.size();
        let Some(owner) = self.all.get_mut(&*record.owner) else {
            return;
        };
        self.bytes -= size;
        owner.records -= 1;
        owner.bytes -= size;
        owner.forgettable.remove(&number);
        owner.outcomes.remove(&number);
        if owner.records == 0 {
            self.all.remove(&*record.owner);
        }
    }

    /// How many bytes of outcomes there are.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn records_of(&self, owner: &str) -> usize {
        self.all.get(owner).map_or(0, |owner| owner.records)
    }

    pub(super) fn oldest_forgettable_of(&self, owner: &str) -> Option<Key> {
        oldest(&self.all.get(owner)?.forgettable)
    }

    /// Of the owner with the most records, among those who have one that may be forgotten.
    pub(super) fn oldest_forgettable(&self) -> Option<Key> {
        let owners = self.all.values();
        let owners = owners.filter(|owner| !owner.forgettable.is_empty());
        oldest(&owners.max_by_key(|owner| owner.records)?.forgettable)
    }

    /// Of the owner with the most bytes.
    pub(super) fn oldest_outcome(&self) -> Option<Key> {
        let owners = self.all.values();
        oldest(&owners.max_by_key(|owner| owner.bytes)?.outcomes)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

/// Forgetting a call lets it run again: never one that runs, nor one that must not run twice.
fn is_forgettable(record: &Record) -> bool {
    !record.at_most_once && !matches!(record.state, State::Running { .. })
}

fn oldest(keys: &BTreeMap<u64, Key>) -> Option<Key> {
    let (_, key) = keys.first_key_value()?;
    Some(Arc::clone(key))
}
