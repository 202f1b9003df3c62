//! From an empty folder to the answer of an agent, by the commands that the README shows. Claude Code is
//! the published program. Its model is played, and so are the APIs.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use axum::{Router, routing::get};
use serde_json::json;
use test_support::{
    Running, Served,
    claude_code::ClaudeCode,
    documents::{ADDRESS, blocks},
    programs::Prism,
    repository,
};

use super::serve::fastapi;

/// Returns the line of the README's commands with this text.
fn shown(text: &str) -> String {
    let readme = fs::read_to_string(repository("README.md")).unwrap();
    let blocks = blocks("README.md", &readme);
    let mut lines = blocks.iter().flat_map(|it| it.text.lines());
    lines.find(|it| it.contains(text)).unwrap().to_owned()
}

/// Serves a document that its API's owner publishes, and plays the API.
async fn published(name: &str) -> (Served, Prism) {
    let file = repository(&format!("target/openapi-documents/{name}.json"));
    let document = fs::read_to_string(file).unwrap();
    let router = Router::new().route("/openapi.json", get(async || document));
    (Served::start(router).await, Prism::start(name).await)
}

/// By two commands. If a document has too many operations to serve all, the first one lists what can
/// be chosen, and the next one is typed as it is printed.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's Claude Code and Prism; run .ci/long"]
async fn within_a_minute_an_agent_answers_from_a_document() {
    let orders = fastapi().await;
    let (figma, figma_api) = published("figma").await;
    let (github, github_api) = published("github").await;
    let programs = Path::new(env!("CARGO_BIN_EXE_lambda-tools")).parent();
    let programs = programs.unwrap().display();
    for (document, api, secret, tool, input, expected) in [
        (
            &orders,
            None,
            "ORDERS_HTTPBEARER=token-of-orders",
            "Orders_ReadOrder",
            json!({"order_id": 7}),
            r#""item":"tea""#,
        ),
        (
            &figma,
            Some(&figma_api.url),
            "FIGMA_PERSONAL_ACCESS_TOKEN=figd_token",
            "Figma_GetWebhook",
            json!({"webhook_id": "7"}),
            r#""event_type":"PING""#,
        ),
        (
            &github,
            Some(&github_api.url),
            "",
            "GitHubSOfficialSpec_AppsGetBySlug",
            json!({"app_slug": "octoapp"}),
            r#""name":"Octocat App""#,
        ),
    ] {
        let claude = ClaudeCode::new("minute");
        let typed = |line: &str| format!("PATH='{programs}':$PATH; exec env {line}");
        let command = format!("lambda-tools serve {}/openapi.json", document.url);
        let line = format!("{secret} {}", shown("lambda-tools serve api.yaml"));
        // The README says to drop it.
        let dropped = if api.is_some() {
            " --include-method get"
        } else {
            ""
        };
        let line = line.replace(dropped, "");
        let mut line = line.replace("lambda-tools serve api.yaml", &command);
        let start = Instant::now();
        if api.is_some() {
            let listed = claude.run(&typed(&line));
            line = line.replace(&command, listed.lines().last().unwrap().trim());
        }
        let mut shell = claude.shell(Command::new("sh"), &typed(&line));
        shell.env("PORT", "0").envs(api.map(|it| ("API_URL", it)));
        let (running, url) = Running::serving(&mut shell);
        let add = shown("claude mcp add --transport http tools ").replace(ADDRESS, &url);
        assert_eq!(running.line_with("claude mcp add", 5).trim(), add);
        claude.run(&add);
        let said = claude.ask(tool, input).await;
        let elapsed = start.elapsed();
        assert!(said.contains(expected), "{line}: {said}");
        assert!(elapsed <= Duration::from_mins(1), "{line}: {elapsed:?}");
    }
}
