//! One call, one effect: `call_id` as an idempotency key.
//!
//! OXP 1.0, Call Tool: `call_id` identifies a repeated call.

pub mod deduplication;
mod fingerprint;
mod record;

use std::{sync::Arc, time::Duration};

#[cfg(feature = "dynamodb")]
pub use crate::store::DynamoDb;
use crate::store::{Store, memory::Memory};
pub use fingerprint::{CallIdentity, digest_of, fingerprint_of, owner_of};
use record::{CallRecord, CallState, LIMITS};

/// The settings for deduplication: the store that remembers calls, and its time limits.
///
/// ```
/// use std::time::Duration;
/// # use lambda_tools_records as lambda_tools;
/// use lambda_tools::idempotency::Idempotency;
///
/// // For `Server::idempotency`.
/// let remembered = Idempotency::in_memory().expire_after(Duration::from_hours(24));
/// ```
#[derive(Clone)]
pub struct Idempotency {
    store: Option<Arc<dyn Store>>,
    /// True if all instances of a function use the same store.
    is_shared: bool,
    expire_after: Duration,
    wait_for: Duration,
    timeout: Duration,
}

/// The maximum for each time limit: longer than any call is retried. Adding a much longer time to a
/// `SystemTime` would overflow.
const LONGEST: Duration = Duration::from_hours(365 * 24);

impl Idempotency {
    /// Remembers calls in your own store, or in [`DynamoDb`].
    #[must_use]
    pub fn in_store<S: Store + 'static>(store: S) -> Self {
        Self {
            store: Some(Arc::new(store)),
            is_shared: true,
            ..Self::none()
        }
    }

    /// Remembers no calls: every call runs.
    #[must_use]
    pub fn none() -> Self {
        Self {
            store: None,
            is_shared: false,
            expire_after: Duration::from_hours(1),
            wait_for: Duration::from_secs(5),
            timeout: Duration::from_secs(3),
        }
    }

    /// Remembers calls in the memory of this process, for local use and for functions that never
    /// have more than one instance.
    ///
    /// There is room for 50,000 calls, and for 16 MiB of outcomes, at most 4 MiB per outcome.
    /// Expired calls are removed first, and then the oldest finished ones, which run again if they
    /// are repeated; the log warns of that. Running calls, and calls of tools with
    /// [`run_at_most_once`](lambda_tools_core::Tool::run_at_most_once), are never forgotten before they expire:
    /// if nothing else can be removed, new calls are rejected as if the store were unreachable.
    #[must_use]
    pub fn in_memory() -> Self {
        Self {
            is_shared: false,
            ..Self::in_store(Memory::new(LIMITS))
        }
    }

    /// Sets how long a call is remembered: by default, an hour.
    #[must_use]
    pub fn expire_after(mut self, time: Duration) -> Self {
        self.expire_after = time.min(LONGEST);
        self
    }

    /// Sets how long a call waits for a running one with the same key: by default, 5 seconds, but
    /// never longer than half the time it has left.
    #[must_use]
    pub fn wait_for(mut self, time: Duration) -> Self {
        self.wait_for = time.min(LONGEST);
        self
    }

    /// Sets how long the store may take to respond: by default, 3 seconds.
    #[must_use]
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = time.min(LONGEST);
        self
    }

    /// Returns the store, unless it is the memory of this process, which may forget records.
    pub fn shared_store(&self) -> Option<Arc<dyn Store>> {
        self.store.clone().filter(|_| self.is_shared)
    }
}
