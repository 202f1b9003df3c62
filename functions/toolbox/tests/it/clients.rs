//! Published clients that call the function, of OXP and of MCP.
//!
//! They come from PyPI and npm. `tests/all` installs them and runs these tests; a plain `cargo test`
//! lists them as ignored. MCP's client for Rust is tested in `tests/peers`.

use std::process::Command;

use lambda_tools::{ApiKeys, Auth, secrets::Secrets};
use serde_json::{Value, json};
use test_support::{
    Served,
    documents::blocks,
    mcp::{KEY, LEGACY, MODERN, Peer, WRONG_KEY, calls},
    node,
};
pub(crate) use test_support::{limited, stdout_of};
use toolbox::Endpoints;

use crate::support::{installed, repository, server, toolbox};

/// Serves the toolbox from this process.
async fn serve(auth: impl Into<Auth>, secrets: Secrets) -> Served {
    let server = server(toolbox::tools(Endpoints::default()));
    let server = server.auth(auth).secrets(secrets);
    Served::start(server.into_router().unwrap()).await
}

/// Returns the JSON that a program prints.
pub(crate) fn json_of(command: &mut Command) -> Value {
    let output = tokio::task::block_in_place(|| command.output());
    let stdout = stdout_of(&output.unwrap());
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"))
}

/// Returns a script in Python, limited in the same way.
pub(crate) fn python(script: &str) -> Command {
    let mut command = limited(installed("python"));
    command.arg(repository(script));
    command
}

/// Returns a script for Node beside the packages of npm, limited in the same way.
pub(crate) fn node_script(name: &str) -> Command {
    let mut command = limited(node());
    command.arg(repository("target/conformance").join(name));
    command
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Python client oxp; run tests/all"]
async fn the_published_python_client_works() {
    let open = serve(Auth::none(), Secrets::none()).await;
    let key = Secrets::fixed([("KEY", "right-0123456789")]);
    let closed = serve(ApiKeys::with_ids(["KEY"]), key).await;
    let mut client = python("functions/toolbox/tests/oxp_client.py");
    client.args([&open.url, &closed.url]);
    let stdout = stdout_of(&tokio::task::block_in_place(|| client.output()).unwrap());
    assert!(stdout.ends_with("11 checks passed\n"), "{stdout}");
}

/// Part of the server's error for an unknown tool.
const DID_YOU_MEAN: &str = "did you mean Calculator_Add?";

/// Lets a program make the calls of all MCP peers; returns what it prints.
fn answers_of(command: &mut Command, url: &str, mode: &str) -> Value {
    let calls = json!(calls()).to_string();
    json_of(command.args([url, KEY, WRONG_KEY, &calls]).arg(mode))
}

#[test]
#[ignore = "needs the SDKs of OpenAI and AWS; run tests/all"]
fn the_sdks_accept_the_requests_in_the_page() {
    let page = std::fs::read_to_string(repository("docs/clients.md")).unwrap();
    let is_request = |mark: &str| mark.contains("with the types of");
    let blocks = blocks("docs/clients.md", &page).into_iter();
    let requests = blocks.filter(|block| block.mark.as_deref().is_some_and(is_request));
    let requests: Vec<_> = requests.map(|block| block.text).collect();
    // Of OpenAI and AWS; each with another name of a field is not accepted.
    assert_eq!(requests.len(), 2);
    for request in requests {
        let is_accepted = |request: &str| {
            let mut command = python("functions/toolbox/tests/requests.py");
            command.arg(request).status().unwrap().success()
        };
        assert!(is_accepted(&request), "{request}");
        let wrong = request.replace("_url", "_uri").replace("endpoint", "url");
        assert!(!is_accepted(&wrong), "{wrong}");
    }
}

/// In both modes: revision 2026-07-28 if the server has it, and always `initialize`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Python client mcp; run tests/all"]
async fn the_published_mcp_client_works_in_both_eras() {
    for (mode, revision) in [("auto", MODERN), ("legacy", LEGACY)] {
        let peer = Peer {
            name: mode,
            revision,
            unknown_tool: DID_YOU_MEAN,
            // The client does not say which status it got.
            unauthorized: ["MCPError"; 2],
        };
        let client = async |url: String| {
            let mut command = python("functions/toolbox/tests/mcp_client.py");
            answers_of(&mut command, &url, mode)
        };
        peer.verify(toolbox, client).await;
    }
}

/// Version 2 in both modes, and the SDK before it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's MCP clients; run tests/all"]
async fn the_published_typescript_clients_work() {
    for (name, revision) in [("legacy", LEGACY), ("auto", MODERN), ("sdk", LEGACY)] {
        let peer = Peer {
            name,
            revision,
            unknown_tool: DID_YOU_MEAN,
            unauthorized: ["401"; 2],
        };
        let client =
            async |url: String| answers_of(&mut node_script("mcp_clients.mjs"), &url, name);
        peer.verify(toolbox, client).await;
    }
}
