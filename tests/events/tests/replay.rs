//! The recorded events of the whole repository.

use std::path::PathBuf;

use lambda_tools::{Toolkit, testing};

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

#[tokio::test]
async fn an_orphan_on_either_side_fails() {
    let folder = std::env::temp_dir().join(format!("orphans-{}", std::process::id()));
    for (name, says) in [
        ("a.json", "a.expected.json is missing"),
        ("b.expected.json", "but no event"),
    ] {
        std::fs::create_dir_all(&folder).unwrap();
        let from = repository(&format!("events/paths/health{}", &name[1..]));
        std::fs::copy(from, folder.join(name)).unwrap();
        let report = replay_report(folder.clone()).await;
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(report.contains(says), "{report}");
    }
}

#[tokio::test]
async fn an_answer_that_differs_fails_and_says_where() {
    let folder = std::env::temp_dir().join(format!("differs-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(
        repository("events/paths/health.json"),
        folder.join("h.json"),
    )
    .unwrap();
    let expected = r#"{"status": 503, "headers": {"oxp-version": "2"}, "body": {"a": 1}}"#;
    std::fs::write(folder.join("h.expected.json"), expected).unwrap();
    let report = replay_report(folder.clone()).await;
    std::fs::remove_dir_all(&folder).unwrap();
    for said in [
        "1 of 1 events",
        "expected: 503",
        "actual:   200",
        "header oxp-version",
        "body",
    ] {
        assert!(report.contains(said), "{report}");
    }
}

/// Returns what a replay that fails says.
async fn replay_report(folder: std::path::PathBuf) -> String {
    let replay = testing::replay(folder, Toolkit::new([]).unwrap());
    let panic = tokio::spawn(replay).await.unwrap_err().into_panic();
    *panic.downcast::<String>().unwrap()
}
