//! The interface of a store of calls: three operations, each one conditional write.

use std::{future::Future, pin::Pin, time::SystemTime};

use super::Record;
use crate::StoreError;

/// Where calls are remembered.
///
/// Keys are 64 hexadecimal digits. Each operation has to be atomic, among all processes that share
/// the store, and has to be right if it is carried out twice: a client may send a write again when
/// the answer to it was lost.
pub trait CallStore: Send + Sync {
    /// Writes `record`, unless there is one that is not free yet: whose `free_at` lies after `now`.
    /// Returns that one. A record that has the same `claim` as the new one is this very write.
    ///
    /// A store without room may forget calls that have finished, but no
    /// [`at_most_once`](Record::at_most_once) ones: rather it fails.
    fn claim<'a>(
        &'a self,
        key: &'a str,
        record: &'a Record,
        now: SystemTime,
    ) -> Doing<'a, Option<Record>>;

    /// Writes `record` in the place of the one with the same `claim`. Says whether that one was
    /// there.
    fn finish<'a>(&'a self, key: &'a str, record: &'a Record) -> Doing<'a, bool>;

    /// Deletes the record, if it has this `claim`.
    fn release<'a>(&'a self, key: &'a str, claim: &'a str) -> Doing<'a, ()>;

    /// Gets ready for the first call: opens a connection. What goes wrong is logged.
    fn warm_up(&self) -> Doing<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// How many bytes of an outcome can be kept. What is larger is kept as [`State::Ran`].
    ///
    /// [`State::Ran`]: super::State::Ran
    fn largest_outcome(&self) -> usize {
        usize::MAX
    }
}

/// What the operations of [`CallStore`] return.
pub type Doing<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;
