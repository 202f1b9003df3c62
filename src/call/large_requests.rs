//! Work on large requests: beside the workers, one at a time.
//!
//! Decoding and checking a megabyte takes milliseconds to seconds, in which a worker would serve
//! nobody else, and many times its size in memory, which each thread that allocates keeps for itself
//! once it is freed. So a large request has its turn from its decoding to the end of its check, and
//! the others wait.

use std::{sync::Arc, time::Duration};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::rejection::Rejection;

/// From how many bytes on a request is large.
pub(crate) const LARGE: usize = 32 * 1024;

/// Where large requests wait for their turn.
#[derive(Clone)]
pub(crate) struct LargeRequests(Arc<Semaphore>);

/// The turn of one large request, until it is dropped.
pub(crate) struct LargeRequestPermit {
    _permit: OwnedSemaphorePermit,
}

impl Default for LargeRequests {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

impl LargeRequests {
    /// Waits for a turn, for no longer than this.
    pub(crate) async fn turn(&self, limit: Duration) -> Result<LargeRequestPermit, Rejection> {
        let permit = Arc::clone(&self.0).acquire_owned();
        match tokio::time::timeout(limit, permit).await {
            Ok(Ok(permit)) => Ok(LargeRequestPermit { _permit: permit }),
            Ok(Err(_)) | Err(_) => Err(Rejection::Busy),
        }
    }
}

impl LargeRequestPermit {
    /// Does work of this turn, within this time. Work that is late goes on until it is done, and its
    /// turn with it.
    pub(crate) async fn work<T: Send + 'static>(
        self,
        limit: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(T, Self), Rejection> {
        let span = tracing::Span::current();
        let work = move || (span.in_scope(work), self);
        match tokio::time::timeout(limit, tokio::task::spawn_blocking(work)).await {
            Ok(Ok(done)) => Ok(done),
            // The runtime stops: panics of tools are caught in the work itself.
            Ok(Err(_)) => Err(Rejection::Unavailable),
            Err(_) => Err(Rejection::CheckTimedOut { limit }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn waiting_for_a_turn_is_told_from_working_for_too_long() {
        let heavy = LargeRequests::default();
        let (short, long) = (Duration::from_millis(50), Duration::from_secs(5));
        let slow = || std::thread::sleep(Duration::from_millis(300));
        let turn = heavy.turn(short).await.unwrap();
        let late = turn.work(short, slow).await;
        assert!(matches!(late, Err(Rejection::CheckTimedOut { .. })));
        // The work goes on, and others wait for it.
        let busy = heavy.turn(short).await.err().expect("another has its turn");
        assert!(matches!(busy, Rejection::Busy) && busy.is_temporary());
        let turn = heavy.turn(long).await.unwrap();
        let (two, turn) = turn.work(long, || 2).await.ok().unwrap();
        assert_eq!(two, 2);
        assert!(heavy.turn(short).await.is_err(), "until it is dropped");
        drop(turn);
        assert!(heavy.turn(short).await.is_ok());
    }
}
