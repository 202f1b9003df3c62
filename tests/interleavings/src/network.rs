//! The store that the processes share, and the requests that are on their way.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{Hash, Hasher},
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use lambda_tools::store::{Over, PutOutcome, Record, Store, StoreError, StoreFuture, Write};
use tokio::sync::oneshot;

use crate::process::WallClock;

/// A value that the processes of a search share.
#[derive(Default)]
pub(crate) struct Shared<T>(Arc<Mutex<T>>);

impl<T> Shared<T> {
    pub(crate) fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut value = self.0.lock().expect("nothing panics inside a change");
        change(&mut value)
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// A request, by its process and its place among the requests of the process.
type Identity = (usize, usize);

/// A request of a process.
pub(crate) enum Request {
    Get(String),
    /// Writes a record, or deletes the current one: over nothing, or over a version.
    Write(String, Option<Record>, Over, SystemTime),
    /// A request to a service other than the store.
    Service(String),
}

/// The response to a request.
pub(crate) enum Response {
    /// The current record; to a write, if it was not carried out.
    Current(Option<Record>),
    Written,
    Served(String),
    Failed,
}

/// A request that was sent.
pub(crate) struct Sent {
    pub(crate) from: Identity,
    pub(crate) request: Request,
    pub(crate) reply: oneshot::Sender<Response>,
}

impl Sent {
    /// Returns true if the process waits for the response.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.reply.is_closed()
    }

    /// Returns the operation, and the id or the text.
    pub(crate) fn parts(&self) -> (&'static str, &str) {
        match &self.request {
            Request::Get(id) => ("get", id),
            Request::Write(id, None, ..) => ("delete", id),
            Request::Write(id, _, Over::Nothing, _) => ("create", id),
            Request::Write(id, ..) => ("replace", id),
            Request::Service(text) => ("send", text),
        }
    }
}

/// The store, the requests that are on their way to it or to other services, and what has happened
/// to the processes.
#[derive(Default)]
pub(crate) struct Network {
    /// The records, and the requests that wrote them.
    pub(crate) records: BTreeMap<String, (Record, Identity)>,
    pub(crate) sent: Vec<Sent>,
    /// The time since the beginning.
    pub(crate) now: Duration,
    /// The clocks of the processes.
    pub(crate) clocks: BTreeMap<usize, WallClock>,
    /// The number of requests that each process has sent.
    counts: BTreeMap<usize, usize>,
    /// The processes that are suspended.
    pub(crate) suspended: BTreeSet<usize>,
    /// The processes that failed, or of which a request failed or got no response for some time.
    pub(crate) disturbed: BTreeSet<usize>,
    /// The processes that have crashed, and were perhaps started again.
    pub(crate) crashed: BTreeSet<usize>,
    /// The calls that have ended, or whose process has crashed.
    pub(crate) ended: BTreeSet<usize>,
    /// The first rule that does not hold.
    pub(crate) violation: Option<String>,
}

/// The connection of a process to the others, which is also the store that they share.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) network: Shared<Network>,
    pub(crate) process: usize,
}

impl Connection {
    /// Sends a request, and waits for the response.
    async fn send(&self, request: Request) -> Response {
        let (reply, response) = oneshot::channel();
        self.network.with(|network| {
            let count = network.counts.entry(self.process).or_default();
            *count += 1;
            let from = (self.process, *count);
            network.sent.push(Sent {
                from,
                request,
                reply,
            });
        });
        response.await.unwrap_or(Response::Failed)
    }

    /// Sends a request to a service other than the store. `None` if it failed.
    pub(crate) async fn request(&self, text: String) -> Option<String> {
        match self.send(Request::Service(text)).await {
            Response::Served(text) => Some(text),
            _ => None,
        }
    }

    /// Returns true if the process or one of its requests has failed, or had no response for some
    /// time.
    pub(crate) fn is_disturbed(&self) -> bool {
        let (network, process) = (&self.network, self.process);
        network.with(|it| it.disturbed.contains(&process))
    }

    /// Returns the time of day by the clock of the process.
    pub(crate) fn wall(&self) -> SystemTime {
        let clock = self.network.with(|network| network.clocks[&self.process]);
        clock.now()
    }
}

fn lost<T>() -> Result<T, StoreError> {
    Err(StoreError::unavailable("the connection broke"))
}

impl Store for Connection {
    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Record>> {
        Box::pin(async move {
            match self.send(Request::Get(id.to_owned())).await {
                Response::Current(record) => Ok(record),
                _ => lost(),
            }
        })
    }

    fn put<'a>(&'a self, write: Write<'a>) -> StoreFuture<'a, PutOutcome> {
        Box::pin(async move {
            let (id, record) = (write.id.to_owned(), write.record.clone());
            let write = Request::Write(id, Some(record), write.over, write.now);
            match self.send(write).await {
                Response::Written => Ok(PutOutcome::Written),
                Response::Current(record) => Ok(PutOutcome::Conflict(record)),
                _ => lost(),
            }
        })
    }

    fn delete<'a>(&'a self, id: &'a str, version: u64) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let over = Over::Version(version);
            let delete = Request::Write(id.to_owned(), None, over, SystemTime::now());
            match self.send(delete).await {
                Response::Written | Response::Current(_) => Ok(()),
                _ => lost(),
            }
        })
    }
}

impl Shared<Network> {
    /// Notes that a rule does not hold.
    pub(crate) fn violate(&self, rule: impl Into<String>) {
        self.with(|network| {
            network.violation.get_or_insert(rule.into());
        });
    }

    /// Notes the rule that does not hold, if there is one.
    pub(crate) fn check(&self, kept: Result<(), String>) {
        if let Err(rule) = kept {
            self.violate(rule);
        }
    }
}

impl Network {
    /// Returns the processes that wait for a service other than the store, except suspended ones, and
    /// their requests.
    pub(crate) fn served(&self) -> impl Iterator<Item = (usize, &str)> {
        let sent = self.sent.iter().filter(|it| it.is_awaited());
        let sent = sent.filter(|it| !self.suspended.contains(&it.from.0));
        sent.filter_map(|sent| match &sent.request {
            Request::Service(text) => Some((sent.from.0, &**text)),
            _ => None,
        })
    }

    /// Carries out a request to the store.
    pub(crate) fn carry_out(&mut self, sent: &Sent) -> Response {
        let (_, id) = sent.parts();
        let current = self.records.get(id).map(|(record, _)| record.clone());
        match &sent.request {
            Request::Write(id, record, over, now) => {
                let is_met = match over {
                    Over::Version(version) => {
                        current.as_ref().is_some_and(|it| it.version == *version)
                    }
                    Over::Nothing => current.as_ref().is_none_or(|it| it.is_free(*now)),
                };
                if !is_met {
                    return Response::Current(current);
                }
                match record.clone() {
                    Some(record) => self.records.insert(id.clone(), (record, sent.from)),
                    None => self.records.remove(id),
                };
                Response::Written
            }
            _ => Response::Current(current),
        }
    }

    /// Adds everything to a digest that processes may observe later.
    pub(crate) fn hash(&self, state: &mut impl Hasher) {
        for (id, (_, writer)) in &self.records {
            (id, writer).hash(state);
        }
        for sent in &self.sent {
            let (operation, text) = sent.parts();
            let text = if operation == "send" { text } else { "" };
            (sent.from, sent.is_awaited(), text).hash(state);
        }
        (self.now, &self.suspended, &self.disturbed).hash(state);
        (&self.crashed, &self.ended).hash(state);
    }
}
