//! One call, one effect: `call_id` as an idempotency key.
//!
//! Clients try again by themselves, gateways give up after the tool has run, and platforms deliver
//! twice. OXP 1.0, Call Tool, makes `call_id` the key by which a repeated call is recognized: it
//! gets the outcome of the first one instead of a second effect.
//!
//! A call takes part if its `call_id` came from the client and its tool is not
//! [`idempotent`](crate::Tool::idempotent) by itself. Before the tool runs, the call is claimed in
//! the [store](Store) by one conditional write; afterwards the outcome is recorded with it, or
//! the claim released:
//!
//! | what came of the call | what is kept | what the same call gets later |
//! | --- | --- | --- |
//! | a value | the outcome | the same outcome, byte for byte, with `Idempotent-Replay: true` |
//! | a failure that may not be retried | the outcome | the same |
//! | a failure with `can_retry`, a panic, a timeout | nothing | it runs |
//! | the same of [`run_at_most_once`](crate::Tool::run_at_most_once) | after a panic or a timeout the failure | the failure, which may then not be retried |
//! | the process died | the claim, until two seconds after the call's deadline | it waits, then runs |
//! | the same of `run_at_most_once` | the claim, until it expires | a failure that may not be retried |
//! | an outcome too large for the store | that it ran | a failure that may not be retried |
//! | it is still running | the claim | its outcome, or after a while a failure that may be retried |
//! | an outcome while the store is down | the claim, as if the process had died | it waits, then runs; of `run_at_most_once` a failure that may not be retried |
//! | it was refused because the store did not answer | nothing, if its claim can be taken back; else the claim, as if the process had died | it runs; with the claim it waits, then runs, or fails if `run_at_most_once` |
//!
//! A call whose client has left goes on, so that its outcome can be had. A tool that is stopped
//! ends at its next `await`; one that blocks its thread keeps its claim until the deadline, and what
//! it has handed to `spawn_blocking` or to a task of its own goes on unseen.
//!
//! Processes that share a store need clocks that agree within two seconds, as those of Lambda do: by
//! a clock that is ahead a call is over while it still runs elsewhere. Therefore claims are free,
//! and calls are taken for cut off, two seconds after the deadline of their call.
//!
//! The key is made of who calls, the tool without its version, and `call_id`. The version, the input,
//! the user, and the tokens and secrets that the call brings for its tool belong to the call as well:
//! with others the same key is a 400, and nothing runs. Where a known caller names the user, the user
//! counts instead of what the call brings, so that a token may be refreshed between two tries.

pub(crate) mod deduplication;
mod fingerprint;
mod outcome;
mod record;

use std::{fmt, sync::Arc, time::Duration};

#[cfg(feature = "dynamodb")]
pub use crate::store::DynamoDb;
use crate::store::{Store, memory::Memory};
pub(crate) use fingerprint::{CallIdentity, fingerprint_of};
use record::{CallRecord, CallState, LIMITS};

/// Where calls are remembered, and for how long.
///
/// ```
/// use std::time::Duration;
/// use lambda_tools::{Server, Toolkit, idempotency::Idempotency};
///
/// let remembered = Idempotency::in_memory().expire_after(Duration::from_hours(24));
/// let server = Server::new(Toolkit::new([])?).idempotency(remembered);
/// # Ok::<(), lambda_tools::BuildError>(())
/// ```
#[derive(Clone)]
pub struct Idempotency {
    store: Option<Arc<dyn Store>>,
    expire_after: Duration,
    wait_for: Duration,
    timeout: Duration,
    runs_unprotected: bool,
}

/// Longer than any call is tried again; much more would not be a point in time.
const LONGEST: Duration = Duration::from_hours(365 * 24);

impl Idempotency {
    /// In a store of one's own, or in [`DynamoDb`].
    #[must_use]
    pub fn in_store(store: impl Store + 'static) -> Self {
        Self {
            store: Some(Arc::new(store)),
            ..Self::none()
        }
    }

    /// Not at all: every call runs.
    #[must_use]
    pub fn none() -> Self {
        Self {
            store: None,
            expire_after: Duration::from_hours(1),
            wait_for: Duration::from_secs(5),
            timeout: Duration::from_secs(3),
            runs_unprotected: false,
        }
    }

    /// In the memory of this process: for local use, and for functions that never have more than
    /// one instance.
    ///
    /// There is room for 10,000 calls of each API key, signer of JWTs or principal, for 50,000 calls
    /// in all, and for 16 MiB of outcomes, an outcome of at most 4 MiB. What has expired goes first.
    /// Then
    ///
    /// - a caller who makes more calls loses the oldest of their own that have finished, and with
    ///   too many calls in all the caller who has most of them: these run when they are repeated;
    /// - the caller whose outcomes take most room loses the oldest ones: these calls do not run when
    ///   they are repeated, and fail, because their outcome can no longer be told.
    ///
    /// The log warns of both, at most once a minute. Calls that run and calls of
    /// [`run_at_most_once`](crate::Tool::run_at_most_once) are never forgotten before they expire:
    /// where no other call can go, new ones are refused as if the store could not be reached.
    ///
    /// Whoever calls without credentials is one caller.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::in_store(Memory::new(LIMITS))
    }

    /// Sets how long a call is remembered: an hour, unless this says otherwise.
    #[must_use]
    pub fn expire_after(mut self, time: Duration) -> Self {
        self.expire_after = time.min(LONGEST);
        self
    }

    /// Sets how long a call waits for one with the same key that is still running: 5 seconds,
    /// unless this says otherwise, and never longer than half of the time it has left.
    #[must_use]
    pub fn wait_for(mut self, time: Duration) -> Self {
        self.wait_for = time.min(LONGEST);
        self
    }

    /// Sets how long the store may take to answer: 3 seconds, unless this says otherwise.
    #[must_use]
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = time.min(LONGEST);
        self
    }

    /// Runs calls without protection, and says so in the log, while the store cannot be reached.
    /// Without it they are refused, and nothing runs.
    #[must_use]
    pub fn best_effort(mut self) -> Self {
        self.runs_unprotected = true;
        self
    }
}

impl fmt::Debug for Idempotency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idempotency")
            .field("has_store", &self.store.is_some())
            .field("expire_after", &self.expire_after)
            .field("wait_for", &self.wait_for)
            .field("timeout", &self.timeout)
            .field("runs_unprotected", &self.runs_unprotected)
            .finish()
    }
}
