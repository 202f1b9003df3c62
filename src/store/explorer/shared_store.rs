//! The store that the processes share.

use std::time::SystemTime;

use super::network::{Identity, Network, Request, Response, Stored, send};
use crate::{
    StoreError,
    store::{PutOutcome, Record, Store, StoreFuture},
};

/// The conditions of writes that a store respects. A store must respect all of them; a search of
/// one that does not must find a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conditions {
    All,
    /// A write over nothing replaces a record that is not free.
    WithoutAbsence,
    /// A write over a version replaces any other, too.
    WithoutVersion,
    /// A deletion of a version deletes any other, too.
    WithoutVersionOfDeletion,
    /// A write over nothing never replaces a record, whether it is free or not.
    WithoutExpiry,
    /// A conflict returns the current record without its version, so that no process recognizes
    /// its own write.
    WithoutVersionInConflict,
}

/// The store that the processes share.
pub(crate) struct SharedStore;

fn lost<T>() -> Result<T, StoreError> {
    Err(StoreError::unavailable("the connection broke"))
}

impl Store for SharedStore {
    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Record>> {
        Box::pin(async move {
            match send(Request::Get(id.to_owned())).await {
                Response::Got(record) => Ok(record),
                _ => lost(),
            }
        })
    }

    fn put<'a>(
        &'a self,
        id: &'a str,
        record: &'a Record,
        over: Option<u64>,
        now: SystemTime,
    ) -> StoreFuture<'a, PutOutcome> {
        Box::pin(async move {
            let (id, record) = (id.to_owned(), record.clone());
            let put = Request::Put {
                id,
                record,
                over,
                now,
            };
            match send(put).await {
                Response::Put(outcome) => Ok(outcome),
                _ => lost(),
            }
        })
    }

    fn delete<'a>(&'a self, id: &'a str, version: u64) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let id = id.to_owned();
            match send(Request::Delete { id, version }).await {
                Response::Deleted => Ok(()),
                _ => lost(),
            }
        })
    }
}

impl Network {
    /// Carries out a request to the store.
    pub(super) fn carry_out(
        &mut self,
        conditions: Conditions,
        from: Identity,
        request: &Request,
    ) -> Response {
        match request {
            Request::Get(id) => Response::Got(self.records.get(id).map(|it| it.record.clone())),
            Request::Put {
                id,
                record,
                over,
                now,
            } => {
                let current = self.records.get(id).map(|it| &it.record);
                let may_write = match over {
                    Some(version) => {
                        conditions == Conditions::WithoutVersion
                            || current.is_some_and(|it| it.version == *version)
                    }
                    None => match conditions {
                        Conditions::WithoutAbsence => true,
                        Conditions::WithoutExpiry => current.is_none(),
                        _ => current.is_none_or(|it| it.is_free(*now)),
                    },
                };
                if !may_write {
                    let mut current = current.cloned();
                    if conditions == Conditions::WithoutVersionInConflict
                        && let Some(current) = &mut current
                    {
                        current.version = 0;
                    }
                    return Response::Put(PutOutcome::Conflict(current));
                }
                let (record, writer) = (record.clone(), from);
                self.records.insert(id.clone(), Stored { record, writer });
                Response::Put(PutOutcome::Written)
            }
            Request::Delete { id, version } => {
                let current = self.records.get(id);
                let ignores = conditions == Conditions::WithoutVersionOfDeletion;
                if current.is_some_and(|it| ignores || it.record.version == *version) {
                    self.records.remove(id);
                }
                Response::Deleted
            }
            Request::Service(_) => Response::Failed,
        }
    }
}
