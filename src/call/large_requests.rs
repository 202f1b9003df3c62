//! Work on large requests: off the worker threads, one request at a time.
//!
//! Decoding and checking a megabyte takes milliseconds to seconds, during which a worker could
//! serve no other request. It also takes many times the request's size in memory, and freed memory
//! stays reserved for the thread that allocated it. So large requests take turns: a turn lasts from
//! decoding to the end of the check, and the others wait.

use std::{borrow::Borrow, sync::Arc, time::Duration};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Engine, rejection::Rejection};
use crate::{DEFAULT_TIMEOUT, arrival::Arrival};

/// A request is large if it has more bytes than this.
const LARGE: usize = 32 * 1024;

/// The queue of large requests.
#[derive(Clone)]
pub(crate) struct LargeRequests(Arc<Semaphore>);

/// The turn of one large request, which ends when this is dropped.
pub(crate) struct LargeRequestPermit {
    _permit: OwnedSemaphorePermit,
}

impl Default for LargeRequests {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

impl LargeRequests {
    /// Waits for a turn, no longer than `limit`.
    async fn acquire(&self, limit: Duration) -> Result<LargeRequestPermit, Rejection> {
        let permit = Arc::clone(&self.0).acquire_owned();
        match tokio::time::timeout(limit, permit).await {
            Ok(Ok(permit)) => Ok(LargeRequestPermit { _permit: permit }),
            Ok(Err(_)) | Err(_) => Err(Rejection::Busy),
        }
    }
}

impl LargeRequestPermit {
    /// Does work during this turn, and waits for it no longer than `limit`. Late work still runs to
    /// completion, and the turn lasts until then.
    pub(super) async fn work<T: Send + 'static>(
        self,
        limit: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(T, Self), Rejection> {
        let span = tracing::Span::current();
        let work = move || (span.in_scope(work), self);
        match tokio::time::timeout(limit, tokio::task::spawn_blocking(work)).await {
            Ok(Ok(result)) => Ok(result),
            // The runtime is stopping; panics of tools are caught in the work itself.
            Ok(Err(_)) => Err(Rejection::Unavailable),
            Err(_) => Err(Rejection::CheckTimedOut { limit }),
        }
    }
}

impl Engine {
    /// Decodes a request with a body of `size` bytes: a large one in its turn, on a blocking
    /// thread.
    pub(crate) async fn decode<R, T>(
        &self,
        size: usize,
        arrival: &Arrival,
        request: &R,
        decode: impl FnOnce(&R) -> T + Send + 'static,
    ) -> Result<(T, Option<LargeRequestPermit>), Rejection>
    where
        R: ToOwned<Owned: Send + 'static> + ?Sized,
        T: Send + 'static,
    {
        if size <= LARGE {
            return Ok((decode(request), None));
        }
        let time_left = || {
            let left = arrival.invocation.time_left(self.clock.now());
            left.unwrap_or(DEFAULT_TIMEOUT)
        };
        let permit = self.large_requests.acquire(time_left()).await?;
        let request = request.to_owned();
        let decode = move || decode(request.borrow());
        let (decoded, permit) = permit.work(time_left(), decode).await?;
        Ok((decoded, Some(permit)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn waiting_too_long_is_distinguished_from_working_too_long() {
        let requests = LargeRequests::default();
        let (short, long) = (Duration::from_millis(50), Duration::from_secs(5));
        let slow = || std::thread::sleep(Duration::from_millis(300));
        let turn = requests.acquire(short).await.unwrap();
        let late = turn.work(short, slow).await;
        assert!(matches!(late, Err(Rejection::CheckTimedOut { .. })));
        // The work continues, and others wait for it.
        let busy = requests.acquire(short).await.err();
        let busy = busy.expect("another request has the turn");
        assert!(matches!(busy, Rejection::Busy) && busy.is_temporary());
        let turn = requests.acquire(long).await.unwrap();
        let (two, turn) = turn.work(long, || 2).await.ok().unwrap();
        assert_eq!(two, 2);
        assert!(
            requests.acquire(short).await.is_err(),
            "the turn lasts until it is dropped"
        );
        drop(turn);
        assert!(requests.acquire(short).await.is_ok());
    }
}
