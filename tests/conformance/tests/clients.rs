//! Published clients of MCP that read resources and get prompts, in both eras.

use std::{
    process::{Command, Output},
    sync::{Arc, Mutex},
};

use lambda_tools::axum::Router;
use serde_json::{Value, json};
use test_support::{
    Running, Served, answer, claude_code::ClaudeCode, installed, isolated, limited, node,
    repository,
};

fn server() -> (Running, String) {
    let (running, url) = Running::serving(&mut isolated(Command::new(env!(
        "CARGO_BIN_EXE_conformance"
    ))));
    (running, format!("{url}/mcp"))
}

fn output_of(command: &mut Command) -> Output {
    tokio::task::block_in_place(|| command.output()).unwrap()
}

/// Checks what a program has seen. The TypeScript client has one code for unknown resources.
fn assert_seen(command: &mut Command, code: &str) {
    let output = output_of(command);
    let seen: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!(
        seen["resources"],
        json!(["test://static-text", "test://static-binary"])
    );
    assert_eq!(seen["templates"], json!(["test://template/{id}/data"]));
    assert_eq!(seen["prompts"].as_array().unwrap().len(), 5);
    assert_eq!(
        seen["static"],
        "This is the content of the static text resource."
    );
    let template = r#"{"id":"7","templateTest":true,"data":"Data for ID: 7"}"#;
    assert_eq!(seen["template"], template);
    assert_eq!(
        seen["unknown"],
        format!("{code}: There is no resource with this URI.")
    );
    assert_eq!(seen["prompt"], "Prompt with arguments: arg1='x', arg2='y'");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs clients of PyPI and npm; run tests/all"]
async fn python_fastmcp_and_typescript_read_resources_and_get_prompts() {
    let (_running, url) = server();
    for (mode, code) in [("legacy", "-32002"), ("2026-07-28", "-32602")] {
        for client in ["mcp", "fastmcp"] {
            let mut python = limited(installed("python"));
            python
                .arg(repository("tests/conformance/read.py"))
                .arg(&url);
            assert_seen(python.args(["--client", client, "--mode", mode]), code);
        }
    }
    for era in ["legacy", "modern"] {
        let mut script = limited(node());
        script
            .arg(repository("target/conformance/read.mjs"))
            .arg(&url);
        assert_seen(script.args(["--era", era]), "-32602");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's Inspector; run tests/all"]
async fn the_inspector_reads_a_resource() {
    let (_running, url) = server();
    let inspector = "target/conformance/node_modules/.bin/inspector";
    for era in ["legacy", "modern"] {
        let mut command = limited(node());
        command
            .arg(repository(inspector))
            .args(["--cli", &url, "--transport", "http"]);
        command.args(["--protocol-era", era, "--method", "resources/read"]);
        let output = output_of(command.args(["--uri", "test://static-text"]));
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            text.contains("This is the content of the static text resource."),
            "{output:?}"
        );
    }
}

/// Claude Code fills the prompt in by itself. Its model, which refuses to answer, is asked with it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's Claude Code; run tests/all"]
async fn claude_code_has_a_prompt_as_a_command() {
    let (_running, url) = server();
    let claude = ClaudeCode::new("prompts");
    claude.run(&format!("claude mcp add --transport http tools {url}"));
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let requests = Arc::clone(&asked);
    let refuse = async move |body: String| {
        requests.lock().unwrap().push(body);
        answer(400, &[], "")
    };
    let model = Served::start(Router::new().fallback(refuse)).await;
    let prompt = "/mcp__tools__test_prompt_with_arguments x y";
    claude.run(&format!(
        "ANTHROPIC_BASE_URL={} ANTHROPIC_API_KEY=any claude -p '{prompt}' </dev/null; true",
        model.url
    ));
    let asked = asked.lock().unwrap();
    let text = "Prompt with arguments: arg1='x', arg2='y'";
    assert!(asked.iter().any(|it| it.contains(text)), "{asked:?}");
}
