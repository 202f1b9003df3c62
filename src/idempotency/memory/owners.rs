//! Who holds how much of the memory, and what of it may go.
//!
//! Every question is answered from an index: a claim must not take longer because many calls are
//! remembered.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use super::{Key, Record, State};

#[derive(Default)]
pub(super) struct Owners {
    all: HashMap<Arc<str>, Owner>,
    /// Owners of records that may be forgotten, by how many records they hold.
    by_records: BTreeSet<(usize, Arc<str>)>,
    /// Owners of outcomes, by how many bytes they hold.
    by_bytes: BTreeSet<(usize, Arc<str>)>,
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
        self.change(&record.owner, |owner| {
            owner.records += 1;
            owner.bytes += record.size();
            if is_forgettable(record) {
                owner.forgettable.insert(number, Arc::clone(key));
            }
            if record.size() > 0 {
                owner.outcomes.insert(number, Arc::clone(key));
            }
        });
    }

    pub(super) fn remove(&mut self, number: u64, record: &Record) {
        self.change(&record.owner, |owner| {
            owner.records -= 1;
            owner.bytes -= record.size();
            owner.forgettable.remove(&number);
            owner.outcomes.remove(&number);
        });
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
        let (_, owner) = self.by_records.last()?;
        self.oldest_forgettable_of(owner)
    }

    /// Of the owner with the most bytes.
    pub(super) fn oldest_outcome(&self) -> Option<Key> {
        let (_, owner) = self.by_bytes.last()?;
        oldest(&self.all.get(owner)?.outcomes)
    }

    fn change(&mut self, name: &str, change: impl FnOnce(&mut Owner)) {
        let entry = self.all.remove_entry(name);
        let (name, mut owner) = entry.unwrap_or_else(|| (name.into(), Owner::default()));
        self.by_records.remove(&(owner.records, Arc::clone(&name)));
        self.by_bytes.remove(&(owner.bytes, Arc::clone(&name)));
        self.bytes -= owner.bytes;
        change(&mut owner);
        self.bytes += owner.bytes;
        if !owner.forgettable.is_empty() {
            self.by_records.insert((owner.records, Arc::clone(&name)));
        }
        if owner.bytes > 0 {
            self.by_bytes.insert((owner.bytes, Arc::clone(&name)));
        }
        if owner.records > 0 {
            self.all.insert(name, owner);
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty() && self.by_records.is_empty() && self.by_bytes.is_empty()
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
