//! Stores run third-party code and depend on the network: they may fail, panic, or never respond.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::Poll,
    time::Duration,
};

use crate::StoreError;

/// Runs a store's operation within a time limit, and turns a panic in it into an error.
pub(crate) async fn within<T>(
    limit: Duration,
    mut operation: Pin<Box<dyn Future<Output = T> + Send + '_>>,
) -> Result<T, StoreError> {
    let caught = std::future::poll_fn(|context| {
        match catch_unwind(AssertUnwindSafe(|| operation.as_mut().poll(context))) {
            Ok(polled) => polled.map(Ok),
            Err(_) => Poll::Ready(Err(StoreError::unavailable("the store panicked"))),
        }
    });
    let result = tokio::time::timeout(limit, caught).await;
    result.unwrap_or_else(|_| Err(StoreError::timed_out(limit)))
}
