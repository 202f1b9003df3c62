//! The recorded events of the whole repository.

use std::path::PathBuf;

use lambda_tools::testing;

use events::{Stub, server_of};
use test_support::repository;

#[tokio::test]
async fn every_event_is_answered_as_its_expected_file_says() {
    let stub = Stub::start().await;
    for folder in folders() {
        testing::replay(&folder, server_of(&folder, &stub)).await;
    }
}

/// Returns the folders that hold events. Each has a `server.toml`, or the replay fails.
fn folders() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![repository("events")];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).unwrap();
        let paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        if paths
            .iter()
            .any(|path| path.extension().is_some_and(|it| it == "json"))
        {
            found.push(folder);
        }
        folders.extend(paths.into_iter().filter(|path| path.is_dir()));
    }
    found
}
