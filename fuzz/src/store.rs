//! A store of records that every input finds in the same state, so that a finding is reproducible
//! from its input alone. The stores of the library cannot go back to an earlier state.

use std::{
    collections::HashMap,
    future::ready,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use lambda_tools::store::{PutOutcome, Record, Store, StoreFuture, Write};

#[derive(Clone, Default)]
pub(crate) struct ResettableStore(Arc<Mutex<Records>>);

#[derive(Default)]
struct Records {
    current: HashMap<String, Record>,
    initial: HashMap<String, Record>,
}

impl ResettableStore {
    fn records(&self) -> MutexGuard<'_, Records> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the current state the one to return to.
    pub(crate) fn keep(&self) {
        let mut records = self.records();
        records.initial = records.current.clone();
    }

    /// Returns to the state that was kept, or to the empty one.
    pub(crate) fn reset(&self) {
        let mut records = self.records();
        if !records.current.is_empty() || !records.initial.is_empty() {
            records.current = records.initial.clone();
        }
    }
}

impl Store for ResettableStore {
    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Record>> {
        let record = self.records().current.get(id).cloned();
        Box::pin(ready(Ok(record)))
    }

    fn put<'a>(&'a self, write: Write<'a>) -> StoreFuture<'a, PutOutcome> {
        let mut records = self.records();
        let current = records.current.get(write.id);
        let outcome = if write.may_replace(current) {
            let (id, record) = (write.id.to_owned(), write.record.clone());
            records.current.insert(id, record);
            PutOutcome::Written
        } else {
            PutOutcome::Conflict(current.cloned())
        };
        Box::pin(ready(Ok(outcome)))
    }

    fn delete<'a>(&'a self, id: &'a str, version: u64) -> StoreFuture<'a, ()> {
        let mut records = self.records();
        if records
            .current
            .get(id)
            .is_some_and(|it| it.version == version)
        {
            records.current.remove(id);
        }
        Box::pin(ready(Ok(())))
    }
}
