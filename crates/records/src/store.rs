//! A store of versioned records, for everything that outlives a call.
//!
//! The records of calls, challenges and grants must be consistent across all instances of a
//! function. So every write is conditional: it names the version that it replaces, and of two
//! concurrent writes only one succeeds. The layers above give records their meaning:
//! [`idempotency`](crate::idempotency), [`quotas`](crate::quotas), and users' grants.

#[cfg(feature = "dynamodb")]
mod dynamodb;
pub mod memory;
#[cfg(test)]
mod tests;

use std::{
    borrow::Cow,
    future::{Future, poll_fn, ready},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::Poll,
    time::{Duration, SystemTime},
};

use sha2::{Digest, Sha256};
use uuid::Uuid;

pub use crate::error::StoreError;
#[cfg(feature = "dynamodb")]
pub use dynamodb::DynamoDb;

/// A store of records.
///
/// Each operation is atomic across all processes that share the store. Ids are ASCII: 64
/// hexadecimal digits for a call; a word, `#` and 32 hexadecimal digits for a challenge, a grant,
/// a lease or a count.
///
/// ```
/// # use lambda_tools_records as lambda_tools;
/// use std::{collections::HashMap, future::ready, sync::Mutex};
/// use lambda_tools::store::{PutOutcome, Record, Store, StoreFuture, Write};
///
/// /// Never forgets a record.
/// #[derive(Default)]
/// struct Endless(Mutex<HashMap<String, Record>>);
///
/// impl Store for Endless {
///     fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Record>> {
///         Box::pin(ready(Ok(self.0.lock().unwrap().get(id).cloned())))
///     }
///
///     fn put<'a>(&'a self, write: Write<'a>) -> StoreFuture<'a, PutOutcome> {
///         let mut records = self.0.lock().unwrap();
///         let current = records.get(write.id);
///         let outcome = if write.may_replace(current) {
///             records.insert(write.id.to_owned(), write.record.clone());
///             PutOutcome::Written
///         } else {
///             PutOutcome::Conflict(current.cloned())
///         };
///         Box::pin(ready(Ok(outcome)))
///     }
///
///     fn delete<'a>(&'a self, id: &'a str, version: u64) -> StoreFuture<'a, ()> {
///         let mut records = self.0.lock().unwrap();
///         if records.get(id).is_some_and(|it| it.version == version) {
///             records.remove(id);
///         }
///         Box::pin(ready(Ok(())))
///     }
/// }
///
/// use lambda_tools::idempotency::Idempotency;
/// let idempotency = Idempotency::in_store(Endless::default());
/// ```
pub trait Store: Send + Sync {
    /// Reads a record as it was last written. An expired record may or may not be returned.
    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Record>>;

    /// Writes a record if it [may replace](Write::may_replace) the current one. Otherwise writes
    /// nothing and returns the current record. A full store returns an error: it forgets no record
    /// before it expires. (Only the memory that is used without a store forgets calls.)
    ///
    /// A write may be carried out twice, if its response was lost and a client sent it again. The
    /// second attempt may then return the record that the first one wrote; this counts as written.
    fn put<'a>(&'a self, write: Write<'a>) -> StoreFuture<'a, PutOutcome>;

    /// Deletes the record if it has this version; otherwise does nothing.
    fn delete<'a>(&'a self, id: &'a str, version: u64) -> StoreFuture<'a, ()>;

    /// Counts one more under an id, unless its number has reached the limit; returns `true` if it
    /// did. By default, a record holds the number, which costs [`get`](Self::get) and
    /// [`put`](Self::put), once more for each conflict. A store that can do it in one request should:
    /// that of every call with a [quota](crate::quotas).
    fn count<'a>(&'a self, count: Count<'a>) -> StoreFuture<'a, bool> {
        let next = move |current: Option<Record>| match count.next(current.as_ref()) {
            None => Change::Leave(false),
            Some(record) => Change::Write(record, true),
        };
        Box::pin(update(self, count.id, count.now, Duration::MAX, next))
    }

    /// Does work of the first call in advance, such as opening a connection. An error is logged.
    fn warm_up(&self) -> StoreFuture<'_, ()> {
        Box::pin(ready(Ok(())))
    }

    /// Returns the maximum size of one [field](Record::fields), in bytes. Of a call with a larger
    /// outcome, only the fact that it ran is kept.
    fn largest_field(&self) -> usize {
        usize::MAX
    }
}

/// The future that an operation of a [`Store`] returns.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// A record to write, and what it may replace.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// The id of the record.
    pub id: &'a str,
    /// The new record.
    pub record: &'a Record,
    /// The condition of the write.
    pub over: Over,
    /// The time of the write.
    pub now: SystemTime,
}

impl Write<'_> {
    /// Returns `true` if this write may replace the current record, which is `None` if no record
    /// has the id.
    #[must_use]
    pub fn may_replace(&self, current: Option<&Record>) -> bool {
        match self.over {
            Over::Nothing => current.is_none_or(|it| it.is_free(self.now)),
            Over::Version(version) => current.is_some_and(|it| it.version == version),
        }
    }
}

/// The condition of a [`Write`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// No record has the id, or the current one is [free](Record::is_free).
    Nothing,
    /// The current record has this version, whether it is free or not.
    Version(u64),
}

/// The result of [`Store::put`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    /// The record was written.
    Written,
    /// Nothing was written. Holds the current record, if there is one.
    Conflict(Option<Record>),
}

/// A number to raise by one, unless it has reached its limit.
#[derive(Clone, Copy, Debug)]
pub struct Count<'a> {
    /// The id of the number, which begins at zero.
    pub id: &'a str,
    /// The largest number.
    pub limit: u64,
    /// The time at which nobody counts under this id any more, by the clock of this process.
    pub free_at: SystemTime,
    /// The time at which the number may be deleted: later, because clocks differ.
    pub expires_at: SystemTime,
    /// The time of the count.
    pub now: SystemTime,
}

impl Count<'_> {
    /// The field with the number.
    pub(crate) const FIELD: &'static str = "count";

    /// Returns the record after this count; `None` if the number has reached the limit.
    fn next(&self, current: Option<&Record>) -> Option<Record> {
        let mut fields = current.iter().flat_map(|it| &it.fields);
        let number = fields.find_map(|(name, field)| match field {
            Field::Number(number) if name == Self::FIELD => Some(*number),
            _ => None,
        });
        let number = number.unwrap_or(0);
        (number < self.limit).then(|| Record {
            version: new_version(),
            fields: vec![(Self::FIELD.into(), Field::Number(number + 1))],
            free_at: Some(self.free_at),
            expires_at: self.expires_at,
        })
    }
}

/// The data that a store keeps under an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The id of the write: a random number below 2^62. Only the two writes of one call share it.
    pub version: u64,
    /// The content. Each name occurs once, is in `snake_case`, and is never `id`, `version`,
    /// `free_at` or `expires_at`.
    pub fields: Vec<(Cow<'static, str>, Field)>,
    /// The time at which another record may replace this one, to the millisecond. `None` means
    /// `expires_at`.
    pub free_at: Option<SystemTime>,
    /// The time at which the record may be deleted, to the second, rounded up. Never before
    /// `free_at`.
    pub expires_at: SystemTime,
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// Any text.
    Text(String),
    /// A whole number, such as milliseconds since 1970.
    Number(u64),
    /// Bytes, in a format internal to the library.
    Bytes(Vec<u8>),
}

impl Record {
    /// Returns `true` if another record may replace this one.
    #[must_use]
    pub fn is_free(&self, now: SystemTime) -> bool {
        self.free_at.unwrap_or(self.expires_at) <= now
    }

    /// Removes a field and returns it.
    pub(crate) fn take(&mut self, name: &str) -> Option<Field> {
        let index = self.fields.iter().position(|(it, _)| it == name)?;
        Some(self.fields.swap_remove(index).1)
    }

    /// Removes a field with a text, and returns that.
    pub fn take_text(&mut self, name: &str) -> Option<String> {
        match self.take(name)? {
            Field::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Removes a field with bytes, and returns these.
    pub fn take_bytes(&mut self, name: &str) -> Option<Vec<u8>> {
        match self.take(name)? {
            Field::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// Returns a version for a new write. It is not one of the clock's ids, which are fixed during a
/// replay: no two writes may look the same.
pub fn new_version() -> u64 {
    Uuid::new_v4().as_u64_pair().1 >> 2
}

/// Runs a store's operation within a time limit, and turns a panic in it into an error: stores run
/// third-party code and depend on the network, so they may fail, panic, or never respond.
pub async fn within<T>(
    limit: Duration,
    mut operation: StoreFuture<'_, T>,
) -> Result<T, StoreError> {
    let caught = poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| operation.as_mut().poll(context)));
        polled.unwrap_or_else(|_| Poll::Ready(Err(StoreError::unavailable("the store panicked"))))
    });
    let result = tokio::time::timeout(limit, caught).await;
    result.unwrap_or_else(|_| Err(StoreError::timed_out(limit)))
}

/// Writes a record within a time limit, and recognizes a conflict with its own write.
pub async fn put<S: Store + ?Sized>(
    store: &S,
    limit: Duration,
    write: Write<'_>,
) -> Result<PutOutcome, StoreError> {
    Ok(match within(limit, store.put(write)).await? {
        // The write was sent twice, because the first response was lost.
        PutOutcome::Conflict(Some(current)) if current.version == write.record.version => {
            PutOutcome::Written
        }
        outcome => outcome,
    })
}

/// A decision in [`update`]: leave or replace the record, and the value to return.
pub enum Change<R, T> {
    /// Leaves the record, and returns the value.
    Leave(T),
    /// Writes this record, and returns the value.
    Write(R, T),
}

/// The attempts to write a record that others write, too. Each conflict means that one of them has
/// written it.
const ATTEMPTS: usize = 1000;

/// Lets `decide` make a decision on a record, and saves the new record if the old one is unchanged;
/// otherwise it tries again with the record that the store returned.
///
/// `timeout` is the time limit of each operation of the store. A write that may have been carried out is
/// repeated once, which shows whether it was.
pub async fn update<S: Store + ?Sized, T>(
    store: &S,
    id: &str,
    now: SystemTime,
    timeout: Duration,
    mut decide: impl FnMut(Option<Record>) -> Change<Record, T>,
) -> Result<T, StoreError> {
    let mut current = within(timeout, store.get(id)).await?;
    for _ in 0..ATTEMPTS {
        let over = current
            .as_ref()
            .map_or(Over::Nothing, |it| Over::Version(it.version));
        let (record, value) = match decide(current) {
            Change::Leave(value) => return Ok(value),
            Change::Write(record, value) => (record, value),
        };
        let write = Write {
            id,
            record: &record,
            over,
            now,
        };
        let outcome = match put(store, timeout, write).await {
            Err(error) if error.is_temporary() => put(store, timeout, write).await,
            outcome => outcome,
        };
        match outcome? {
            PutOutcome::Written => return Ok(value),
            PutOutcome::Conflict(newer) => current = newer,
        }
    }
    Err(StoreError::throttled(
        "too many calls write the same record",
    ))
}

/// Returns the SHA-256 of texts, each with its length, so that consecutive ones cannot be confused.
pub(crate) fn hash_of(texts: &[Option<&str>]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        match text {
            None => hash.update([0]),
            Some(text) => {
                hash.update([1]);
                // No text is larger than an event.
                let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
                hash.update(length.to_le_bytes());
                hash.update(text);
            }
        }
    }
    crate::text::hex(&hash.finalize())
}

/// Returns half of the SHA-256 of texts, in hexadecimal digits, for ids. Each is hashed with its length,
/// so that different lists never have the same bytes.
pub fn hash_of_texts<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.as_ref().len() as u64).to_be_bytes());
        hash.update(text.as_ref());
    }
    crate::text::hex(&hash.finalize()[..16])
}
