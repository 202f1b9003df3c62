//! Stores are others' code, and the network: they may fail, panic, or never answer.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::Poll,
    time::Duration,
};

use crate::StoreError;

/// What a store does, within a time: its own code may panic or never return.
pub(crate) async fn within<T>(
    limit: Duration,
    mut doing: Pin<Box<dyn Future<Output = T> + Send + '_>>,
) -> Result<T, StoreError> {
    let caught = std::future::poll_fn(|context| {
        match catch_unwind(AssertUnwindSafe(|| doing.as_mut().poll(context))) {
            Ok(polled) => polled.map(Ok),
            Err(_) => Poll::Ready(Err(StoreError::unavailable(
                "the store stopped because of an error in it",
            ))),
        }
    });
    let done = tokio::time::timeout(limit, caught).await;
    done.unwrap_or_else(|_| Err(StoreError::no_answer(limit)))
}
