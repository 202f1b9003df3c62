//! One request to the store, which any number of calls wait for.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::sync::watch;

use crate::{
    StoreError,
    secrets::{Read, SecretStore},
};

/// A request under way, and what came of it.
pub(super) type Flight = watch::Receiver<Option<Arc<HashMap<String, Read>>>>;

/// Waits for what a request says of one secret.
pub(super) async fn landed(mut flight: Flight, id: &str) -> Read {
    let lost = || StoreError::unavailable("the server is stopping");
    let reads = flight.wait_for(Option::is_some).await.map_err(|_| lost())?;
    let read = reads.as_ref().and_then(|reads| reads.get(id));
    read.cloned().unwrap_or_else(|| Err(lost()))
}

/// The store's own code may panic or never return.
pub(super) async fn asked(
    store: Arc<dyn SecretStore>,
    ids: Vec<String>,
    limit: Duration,
) -> Vec<Read> {
    let all = |count: usize, error: StoreError| vec![Err(error); count];
    let count = ids.len();
    let asking = tokio::spawn(async move { store.read(&ids).await });
    let stop = asking.abort_handle();
    match tokio::time::timeout(limit, asking).await {
        Ok(Ok(reads)) => reads,
        Ok(Err(_)) => all(
            count,
            StoreError::unavailable("the store stopped because of an error in it"),
        ),
        Err(_) => {
            stop.abort();
            all(count, no_answer(limit))
        }
    }
}

pub(super) fn no_answer(limit: Duration) -> StoreError {
    let ms = limit.as_millis();
    StoreError::unavailable(format!("no answer within {ms} ms"))
}
