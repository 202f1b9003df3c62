//! One store of versioned records, for all that outlives a call.
//!
//! What is remembered of calls and what users have allowed has to be right among all processes of a
//! function. Therefore nothing is written blindly: a write says which version it replaces, and of
//! two at once one wins. What records mean is up to the layers above:
//! [`idempotency`](crate::idempotency), and `authorization` with the cargo feature `oauth`.

#[cfg(feature = "dynamodb")]
mod dynamodb;
pub(crate) mod memory;
#[cfg(feature = "oauth")]
mod update;
mod within;

use std::{
    borrow::Cow,
    future::{Future, ready},
    pin::Pin,
    time::{Duration, SystemTime},
};

use uuid::Uuid;

pub use crate::error::StoreError;
#[cfg(feature = "dynamodb")]
pub use dynamodb::DynamoDb;
#[cfg(feature = "oauth")]
pub(crate) use update::Change;
#[cfg(feature = "oauth")]
pub(crate) use update::update;
pub(crate) use within::within;

/// Where records are kept.
///
/// Each operation is atomic, among all processes that share the store. Ids are ASCII: 64
/// hexadecimal digits for a call; a word, `#` and 32 hexadecimal digits for a challenge, a grant or
/// a lease.
///
/// ```
/// use std::{collections::HashMap, future::ready, sync::Mutex, time::SystemTime};
/// use lambda_tools::store::{StoreFuture, PutOutcome, Record, Store};
///
/// /// Forgets nothing.
/// #[derive(Default)]
/// struct Endless(Mutex<HashMap<String, Record>>);
///
/// impl Store for Endless {
///     fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Record>> {
///         Box::pin(ready(Ok(self.0.lock().unwrap().get(id).cloned())))
///     }
///
///     fn put<'a>(
///         &'a self,
///         id: &'a str,
///         record: &'a Record,
///         over: Option<u64>,
///         now: SystemTime,
///     ) -> StoreFuture<'a, PutOutcome> {
///         let mut records = self.0.lock().unwrap();
///         let held = records.get(id);
///         let may_write = match over {
///             Some(version) => held.is_some_and(|held| held.version == version),
///             None => held.is_none_or(|held| held.is_free(now)),
///         };
///         let put = if may_write {
///             records.insert(id.to_owned(), record.clone());
///             PutOutcome::Written
///         } else {
///             PutOutcome::Conflict(held.cloned())
///         };
///         Box::pin(ready(Ok(put)))
///     }
///
///     fn delete<'a>(&'a self, id: &'a str, version: u64) -> StoreFuture<'a, ()> {
///         let mut records = self.0.lock().unwrap();
///         if records.get(id).is_some_and(|held| held.version == version) {
///             records.remove(id);
///         }
///         Box::pin(ready(Ok(())))
///     }
/// }
///
/// use lambda_tools::idempotency::Idempotency;
/// let remembered = Idempotency::in_store(Endless::default());
/// ```
pub trait Store: Send + Sync {
    /// Reads a record as it was last written. One that has expired may be there or not.
    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Record>>;

    /// Writes a record, on a condition:
    ///
    /// - over `None`: if there is none with this id, or if the one that is there is
    ///   [free](Record::is_free) at `now`;
    /// - over a version: if the record that is there has it, free or not.
    ///
    /// Otherwise it writes nothing and returns the record that is there. A write may be carried out
    /// twice, because the answer to it was lost and a client has sent it again: the second one may
    /// be answered with the first one's record, and is then taken for written.
    ///
    /// A store that has no room may forget what its [share](Record::share) says, and nothing else.
    /// Where that is not enough it returns an error.
    fn put<'a>(
        &'a self,
        id: &'a str,
        record: &'a Record,
        over: Option<u64>,
        now: SystemTime,
    ) -> StoreFuture<'a, PutOutcome>;

    /// Deletes the record if it has this version; otherwise there is nothing to do.
    fn delete<'a>(&'a self, id: &'a str, version: u64) -> StoreFuture<'a, ()>;

    /// Gets ready for the first call, such as by opening a connection. An error is logged.
    fn warm_up(&self) -> StoreFuture<'_, ()> {
        Box::pin(ready(Ok(())))
    }

    /// How many bytes one [field](Record::fields) may have. The outcome of a call that has more is
    /// not kept: only that the call ran.
    fn largest_field(&self) -> usize {
        usize::MAX
    }
}

/// What the operations of a [`Store`] return.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// What came of [`Store::put`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    /// The record is written.
    Written,
    /// Nothing is written, because of this record, or because there is none.
    Conflict(Option<Record>),
}

/// What a store keeps under an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Which write it is from: a random number below 2^62, so that it does not come twice.
    pub version: u64,
    /// What it says, each name once: names in `snake_case`, and never `id`, `version`, `claim`,
    /// `free_at` or `expires_at`.
    pub fields: Vec<(Cow<'static, str>, Field)>,
    /// For stores whose room is limited; others need not keep it. None for what takes nobody's
    /// share, and is never forgotten before it expires.
    pub eviction: Option<Eviction>,
    /// From then on another record may take its place, to the millisecond: without it when it
    /// expires.
    pub free_at: Option<SystemTime>,
    /// From then on it may be deleted, to the second, rounded up. Never before `free_at`.
    pub expires_at: SystemTime,
}

/// What is written in a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// Any text.
    Text(String),
    /// A whole number, such as milliseconds since 1970.
    Number(u64),
    /// Yes or no.
    Flag(bool),
    /// Bytes, in a form of the library's own.
    Bytes(Vec<u8>),
}

/// Whose room a record takes, and what may go where there is none left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Eviction {
    /// Who calls, such as `key PARTNER_KEY`; empty where nobody is known.
    pub owner: String,
    /// Whether the record may be forgotten before it expires.
    pub is_forgettable: bool,
    /// The field that may be dropped before the record is, whose bytes are counted.
    pub droppable: Option<&'static str>,
}

impl Record {
    /// Whether another record may take its place.
    #[must_use]
    pub fn is_free(&self, now: SystemTime) -> bool {
        self.free_at.unwrap_or(self.expires_at) <= now
    }

    /// Takes a field out.
    pub(crate) fn take(&mut self, name: &str) -> Option<Field> {
        let place = self.fields.iter().position(|(it, _)| it == name)?;
        Some(self.fields.swap_remove(place).1)
    }

    pub(crate) fn take_text(&mut self, name: &str) -> Option<String> {
        match self.take(name)? {
            Field::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn take_bytes(&mut self, name: &str) -> Option<Vec<u8>> {
        match self.take(name)? {
            Field::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// How many bytes may be dropped.
    fn droppable_bytes(&self) -> usize {
        let name = self
            .eviction
            .as_ref()
            .and_then(|eviction| eviction.droppable);
        let field = name.and_then(|name| self.fields.iter().find(|(it, _)| it == name));
        match field {
            Some((_, Field::Bytes(bytes))) => bytes.len(),
            _ => 0,
        }
    }
}

/// A version for a record. Not one of the host's ids, which a replay fixes: two writes must never
/// look the same.
pub(crate) fn new_version() -> u64 {
    Uuid::new_v4().as_u64_pair().1 >> 2
}

/// Writes a record within a time, and recognizes its own write.
pub(crate) async fn put(
    store: &dyn Store,
    limit: Duration,
    (id, record): (&str, &Record),
    over: Option<u64>,
    now: SystemTime,
) -> Result<PutOutcome, StoreError> {
    let put = within(limit, store.put(id, record, over, now)).await;
    Ok(match put.flatten()? {
        // Sent twice, because the answer to the first was lost.
        PutOutcome::Conflict(Some(held)) if held.version == record.version => PutOutcome::Written,
        put => put,
    })
}
