//! A task that another thread can take over between two polls.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A future that the thread that polls it does not own.
pub(crate) struct Movable<T>(Mutex<Option<BoxFuture<T>>>);

/// The reason why a task has no output here.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Another thread has taken it over.
    Moved,
    Panicked,
}

impl<T> Movable<T> {
    pub(crate) fn new(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self(Mutex::new(Some(Box::pin(future))))
    }

    /// The same task under a new owner, if no thread is polling it. The old owner cannot poll it
    /// any more.
    pub(crate) fn moved(&self) -> Option<Arc<Self>> {
        let future = self.0.try_lock().ok()?.take()?;
        Some(Arc::new(Self(Mutex::new(Some(future)))))
    }

    /// Polls the task until it ends.
    pub(crate) async fn wait(&self) -> Result<T, Ended> {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<Result<T, Ended>> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(future) = slot.as_mut() else {
            return Poll::Ready(Err(Ended::Moved));
        };
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        let result = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(_) => Err(Ended::Panicked),
        };
        *slot = None;
        Poll::Ready(result)
    }
}
