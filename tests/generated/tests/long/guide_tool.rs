//! From a Rust function to an agent that calls it on Lambda, by the commands of docs/guide-tool.md.

use std::fs;

use axum::{
    Router,
    http::{HeaderMap, Uri},
    routing::get,
};
use serde_json::json;
use test_support::{Served, documents::blocks, repository};

use super::{
    Project,
    deployment::{self, Account},
    parent_without,
};
use crate::terminal::Terminal;

const PAGE: &str = "docs/guide-tool.md";

/// Starts a server that plays NASA's API, for the key `DEMO_KEY`.
async fn played_nasa() -> Served {
    let picture = async |headers: HeaderMap, uri: Uri| {
        assert_eq!(headers["x-api-key"], "DEMO_KEY");
        assert_eq!(uri.query(), Some("date=2024-05-05"));
        let picture = json!({
            "title": "A Galaxy", "explanation": "It has stars.", "media_type": "image",
        });
        picture.to_string()
    };
    Served::start(Router::new().route("/planetary/apod", get(picture))).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs cargo-lambda, moto, the AWS CLI, Claude Code and five minutes; run .ci/long"]
async fn the_commands_of_the_guide_end_in_an_agent_that_reaches_the_deployed_tool() {
    let nasa = played_nasa().await;
    let parent = parent_without("my-tools");
    let mut terminal = Terminal::open(&parent.join("lambda_tools"), "");
    terminal.set("NASA_URL", &nasa.url);
    let account = Account::open(&mut terminal).await;
    let page = fs::read_to_string(repository(PAGE)).unwrap();
    let blocks = blocks(PAGE, &page);
    let deploys = |text: &str| text.contains("sam deploy");
    let deploy = blocks.iter().position(|it| deploys(&it.text)).unwrap();
    let reads_log = |text: &str| text.contains("aws logs filter");
    let read = blocks.iter().position(|it| reads_log(&it.text)).unwrap();

    terminal.type_blocks(&blocks[..deploy]);
    let test = "src/tests.rs";
    let project = parent.join("my-tools");
    let tests = fs::read_to_string(project.join(test)).unwrap();
    assert!(
        tests.contains(r#"("NASA_KEY", "VALUE_OF_NASA_KEY")"#),
        "{tests}"
    );
    let recorded = "events/0001-post-tools-call-Nasa-FindPicture.expected.json";
    let recorded = fs::read_to_string(project.join(recorded)).unwrap();
    assert!(recorded.contains("A Black Hole"), "{recorded}");

    let others = [("NASA_URL", &*nasa.url)];
    let mut program = Project::at(project).program();
    let function = account.deploy(&mut terminal, &mut program, &[], &others);
    let function = function.await;
    terminal.type_blocks(&blocks[deploy + 1..read]);
    let line = function.line_with(r#""tool":"Nasa.FindPicture""#, 5).await;
    deployment::log(&mut terminal, &line);
    terminal.type_blocks(&blocks[read..]);
}
