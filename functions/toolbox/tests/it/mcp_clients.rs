//! Published MCP clients that call the toolbox.
//!
//! They come from PyPI and npm. `tests/all` installs them and runs these tests; a plain `cargo test`
//! lists them as ignored.

use std::{ffi::OsStr, process::Command};

use serde_json::{Value, json};
use test_support::mcp::{KEY, LEGACY, MODERN, Peer, WRONG_KEY, calls};

use crate::{
    clients::stdout_of,
    support::{installed, repository, toolbox},
};

/// Part of the server's error for an unknown tool.
const DID_YOU_MEAN: &str = "did you mean Calculator_Add?";

/// A program that is stopped if it does not end by itself.
fn limited(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "60"]).arg(program);
    command
}

/// Lets a program make the calls of all MCP peers; returns what it prints.
fn answers_of(command: &mut Command, url: &str, mode: Option<&str>) -> Value {
    let calls = json!(calls()).to_string();
    command.args([url, KEY, WRONG_KEY, &calls]).args(mode);
    let stdout = stdout_of(&tokio::task::block_in_place(|| command.output()).unwrap());
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"))
}

/// In each mode: revision 2026-07-28 if the server has it, always `initialize`, and pinned.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Python client mcp; run tests/all"]
async fn the_published_mcp_client_works_in_both_eras() {
    for (mode, revision) in [("auto", MODERN), ("legacy", LEGACY), (MODERN, MODERN)] {
        let peer = Peer {
            name: mode,
            revision,
            unknown_tool: DID_YOU_MEAN,
            // The client does not say which status it got.
            unauthorized: ["MCPError"; 2],
        };
        let client = async |url: String| {
            let mut command = limited(installed("python"));
            command.arg(repository("functions/toolbox/tests/mcp_client.py"));
            answers_of(&mut command, &url, Some(mode))
        };
        peer.verify(toolbox, client).await;
    }
}

/// The line of the client before 2.0, which knows no revision without `initialize`, and an agent
/// framework that uses it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Python client mcp 1.30 and openai-agents; run tests/all"]
async fn the_previous_mcp_client_and_an_agent_framework_work() {
    for script in ["mcp1_client.py", "openai_agents.py"] {
        let peer = Peer {
            name: script,
            revision: LEGACY,
            unknown_tool: DID_YOU_MEAN,
            unauthorized: ["401"; 2],
        };
        let client = async |url: String| {
            let mut command = limited(repository("target/venv-mcp1/bin/python"));
            command.arg(repository("functions/toolbox/tests").join(script));
            answers_of(&mut command, &url, None)
        };
        peer.verify(toolbox, client).await;
    }
}

/// Version 2 in each of its modes, and the SDK before it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's MCP clients; run tests/all"]
async fn the_published_typescript_clients_work() {
    for (name, revision) in [
        ("legacy", LEGACY),
        ("auto", MODERN),
        ("pinned", MODERN),
        ("sdk", LEGACY),
    ] {
        let peer = Peer {
            name,
            revision,
            unknown_tool: DID_YOU_MEAN,
            unauthorized: ["401"; 2],
        };
        let client = async |url: String| {
            let mut command = limited("node");
            command.arg(repository("target/conformance/mcp_clients.mjs"));
            answers_of(&mut command, &url, Some(name))
        };
        peer.verify(toolbox, client).await;
    }
}
