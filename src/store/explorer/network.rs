//! Requests on their way, and the records that they reach.

use std::{cell::RefCell, collections::BTreeMap, time::SystemTime};

use tokio::sync::oneshot;

use super::process::current_process;
use crate::store::{PutOutcome, Record};

/// A request, by its process and its place among the requests of the process.
pub(crate) type Identity = (usize, usize);

/// A request of a process.
#[derive(Clone, Debug)]
pub(super) enum Request {
    Get(String),
    Put {
        id: String,
        record: Record,
        over: Option<u64>,
        now: SystemTime,
    },
    Delete {
        id: String,
        version: u64,
    },
    /// A request to a service other than the store.
    Service(String),
}

/// The response to a request.
pub(super) enum Response {
    Got(Option<Record>),
    Put(PutOutcome),
    Deleted,
    Served(String),
    Failed,
}

/// A request that was sent.
pub(super) struct Sent {
    pub(super) from: Identity,
    pub(super) request: Request,
    /// `None` if the response is not awaited.
    pub(super) reply: Option<oneshot::Sender<Response>>,
}

impl Sent {
    /// True if the process waits for the response.
    pub(super) fn is_awaited(&self) -> bool {
        self.reply.as_ref().is_some_and(|reply| !reply.is_closed())
    }
}

/// A record, and the request that wrote it.
pub(super) struct Stored {
    pub(super) record: Record,
    pub(super) writer: Identity,
}

/// The store, and the requests that are on their way to it or to other services.
#[derive(Default)]
pub(super) struct Network {
    pub(super) records: BTreeMap<String, Stored>,
    pub(super) sent: Vec<Sent>,
    /// The number of requests that each process has sent.
    counts: BTreeMap<usize, usize>,
}

thread_local! {
    static NETWORK: RefCell<Network> = RefCell::default();
}

pub(super) fn with_network<T>(change: impl FnOnce(&mut Network) -> T) -> T {
    NETWORK.with_borrow_mut(change)
}

/// Sends a request, and waits for the response.
pub(super) async fn send(request: Request) -> Response {
    let (reply, response) = oneshot::channel();
    with_network(|network| {
        let process = current_process();
        let count = network.counts.entry(process).or_default();
        *count += 1;
        let from = (process, *count);
        let reply = Some(reply);
        network.sent.push(Sent {
            from,
            request,
            reply,
        });
    });
    response.await.unwrap_or(Response::Failed)
}

/// Sends a request to a service other than the store. `None` if it failed.
pub(crate) async fn request(text: String) -> Option<String> {
    match send(Request::Service(text)).await {
        Response::Served(text) => Some(text),
        _ => None,
    }
}

/// The requests to services other than the store: their senders, their texts, and whether the
/// senders wait for the responses.
#[cfg(feature = "oauth")]
pub(crate) fn service_requests() -> Vec<(Identity, String, bool)> {
    with_network(|network| {
        let sent = network.sent.iter();
        let services = sent.filter_map(|sent| match &sent.request {
            Request::Service(text) => Some((sent.from, text.clone(), sent.is_awaited())),
            _ => None,
        });
        services.collect()
    })
}

/// The process that wrote the record whose id begins with a word.
#[cfg(feature = "oauth")]
pub(crate) fn writer_of(kind: &str) -> Option<usize> {
    with_network(|network| {
        let mut records = network.records.iter();
        let stored = records.find(|(id, _)| id.starts_with(kind));
        stored.map(|(_, stored)| stored.writer.0)
    })
}

/// Puts a record into the store before the processes start.
#[cfg(feature = "oauth")]
pub(crate) fn seed(id: &str, record: Record) {
    let writer = (usize::MAX, 0);
    let stored = Stored { record, writer };
    with_network(|network| network.records.insert(id.to_owned(), stored));
}
