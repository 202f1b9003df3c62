//! One request to the store, which any number of calls wait for.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::sync::watch;

use crate::{
    StoreError,
    secrets::{Read, SecretStore, recent::remember_stored},
    store_error::within,
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

/// Asks the store, whatever comes of it.
pub(super) async fn asked(store: &dyn SecretStore, ids: &[String], limit: Duration) -> Vec<Read> {
    let reads = within(limit, store.read(ids)).await;
    let reads = reads.unwrap_or_else(|error| vec![Err(error); ids.len()]);
    // What is read here may show up anywhere, not only in the calls that have declared it.
    for secret in reads.iter().flatten().flatten() {
        remember_stored(secret);
    }
    reads
}
