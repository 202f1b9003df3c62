//! The recorded events of the whole repository.

use std::{collections::BTreeSet, path::PathBuf};

use lambda_tools::testing;

use events::{Stub, server_of};
use test_support::files_below;

#[tokio::test]
async fn every_event_is_answered_as_its_expected_file_says() {
    let stub = Stub::start().await;
    for folder in folders() {
        testing::replay(&folder, server_of(&folder, &stub)).await;
    }
}

/// Returns the folders that hold events. Each has a `server.toml`, or the replay fails.
fn folders() -> BTreeSet<PathBuf> {
    let files = files_below("events").into_iter();
    let events = files.filter(|path| path.extension().is_some_and(|it| it == "json"));
    events
        .map(|path| path.parent().unwrap().to_owned())
        .collect()
}
