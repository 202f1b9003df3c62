//! Work on large requests: beside the workers, one at a time.
//!
//! Decoding and checking a megabyte takes milliseconds to seconds, in which a worker would serve
//! nobody else. One at a time, because each thread that allocates keeps what it has freed for itself:
//! on many threads at once, requests of a kind that comes once a day would hold memory for good.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::Semaphore;

use crate::rejection::Rejection;

/// From how many bytes on a request is large.
pub(crate) const LARGE: usize = 32 * 1024;

/// Where large requests wait for their turn.
#[derive(Clone)]
pub(crate) struct Heavy(Arc<Semaphore>);

impl Default for Heavy {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

impl Heavy {
    /// Does the work, waiting for its turn included, within this time. Work that is late goes on
    /// until it is done, and its turn with it.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Rejection> {
        let turns = Arc::clone(&self.0);
        let span = tracing::Span::current();
        let has_begun = Arc::new(AtomicBool::new(false));
        let begins = Arc::clone(&has_begun);
        let done = async move {
            let turn = turns.acquire_owned().await.ok()?;
            begins.store(true, Ordering::Relaxed);
            let work = move || {
                let _turn = turn;
                span.in_scope(work)
            };
            tokio::task::spawn_blocking(work).await.ok()
        };
        match tokio::time::timeout(limit, done).await {
            Ok(Some(result)) => Ok(result),
            // The runtime stops: panics of tools are caught in the work itself.
            Ok(None) => Err(Rejection::Unavailable),
            Err(_) if has_begun.load(Ordering::Relaxed) => Err(Rejection::CheckTimedOut { limit }),
            Err(_) => Err(Rejection::Busy),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn waiting_for_a_turn_is_told_from_working_for_too_long() {
        let heavy = Heavy::default();
        let (short, long) = (Duration::from_millis(50), Duration::from_secs(5));
        let slow = || std::thread::sleep(Duration::from_millis(300));
        let late = heavy.run(short, slow).await;
        assert!(matches!(late, Err(Rejection::CheckTimedOut { .. })));
        // The work goes on, and others wait for it.
        let waiting = heavy.run(short, || 1).await;
        assert!(matches!(&waiting, Err(Rejection::Busy)));
        assert!(waiting.unwrap_err().is_temporary());
        assert_eq!(heavy.run(long, || 2).await.unwrap(), 2);
    }
}
