//! A store of records that every input finds empty, so that a finding is reproducible from its input
//! alone. The stores of the library cannot go back to an earlier state.

use std::{
    collections::HashMap,
    future::ready,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use lambda_tools::store::{PutOutcome, Record, Store, StoreFuture, Write};

#[derive(Clone, Default)]
pub(crate) struct ResettableStore(Arc<Mutex<HashMap<String, Record>>>);

impl ResettableStore {
    fn records(&self) -> MutexGuard<'_, HashMap<String, Record>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deletes all records.
    pub(crate) fn reset(&self) {
        self.records().clear();
    }
}

impl Store for ResettableStore {
    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Record>> {
        let record = self.records().get(id).cloned();
        Box::pin(ready(Ok(record)))
    }

    fn put<'a>(&'a self, write: Write<'a>) -> StoreFuture<'a, PutOutcome> {
        let mut records = self.records();
        let current = records.get(write.id);
        let outcome = if write.may_replace(current) {
            records.insert(write.id.to_owned(), write.record.clone());
            PutOutcome::Written
        } else {
            PutOutcome::Conflict(current.cloned())
        };
        Box::pin(ready(Ok(outcome)))
    }

    fn delete<'a>(&'a self, id: &'a str, version: u64) -> StoreFuture<'a, ()> {
        let mut records = self.records();
        if records.get(id).is_some_and(|it| it.version == version) {
            records.remove(id);
        }
        Box::pin(ready(Ok(())))
    }
}
