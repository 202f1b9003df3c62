//! The responses and times that a process has observed.
//!
//! A process is deterministic: the responses that it has received, and the times at which it has
//! received them, determine its state. Versions are random, but the requests that carried them are
//! not.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::network::{Identity, Network, Response, with_network};
use crate::store::{PutOutcome, Record};

/// A digest of everything that a process has experienced.
#[derive(Clone, Copy, Default, Hash)]
pub(super) struct History(u64);

impl History {
    pub(super) fn add(&mut self, event: impl Hash) {
        let mut hasher = DefaultHasher::new();
        (self.0, event).hash(&mut hasher);
        self.0 = hasher.finish();
    }
}

impl Network {
    /// The request that wrote a record that the store holds.
    fn writer_of(&self, record: &Record) -> Option<Identity> {
        let mut stored = self.records.values();
        let is_same = |version: u64| version == record.version;
        stored
            .find(|it| is_same(it.record.version))
            .map(|it| it.writer)
    }
}

/// The content of a response without random numbers. A response is sent when it is made, so the
/// store still holds the record in it.
pub(super) fn content_of(response: &Response) -> impl Hash + use<> {
    let writer = |record: &Option<Record>| {
        let record = record.as_ref()?;
        with_network(|network| network.writer_of(record))
    };
    match response {
        Response::Got(record) => (0, writer(record), None),
        Response::Put(PutOutcome::Written) => (1, None, None),
        Response::Put(PutOutcome::Conflict(record)) => (2, writer(record), None),
        Response::Deleted => (3, None, None),
        Response::Served(text) => (4, None, Some(text.clone())),
        Response::Failed => (5, None, None),
    }
}
