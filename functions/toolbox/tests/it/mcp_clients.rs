//! Published MCP clients that call the toolbox.
//!
//! They come from PyPI and npm. `tests/all` installs them and runs these tests; a plain `cargo test`
//! lists them as ignored. The client for Rust is tested in `tests/peers`.

use std::process::Command;

use serde_json::{Value, json};
use test_support::{
    documents::blocks,
    mcp::{KEY, LEGACY, MODERN, Peer, WRONG_KEY, calls},
};

use crate::{
    clients::{json_of, node_script, python},
    support::{repository, toolbox},
};

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
    let page = std::fs::read_to_string(repository("docs/mcp.md")).unwrap();
    let is_request = |mark: &str| mark.contains("with the types of");
    let blocks = blocks("docs/mcp.md", &page).into_iter();
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

/// Tests that take too long for every change: `.ci/long` installs what they need, and runs them.
mod long {
    use super::*;
    use crate::clients::{limited, stdout_of};
    use lambda_tools::{Server, Toolkit};
    use lambda_tools_openapi::OpenApi;
    use test_support::Served;

    /// Lets a framework list the tools of a server. It fails if it has fewer than the server lists.
    fn list(framework: &str, served: &Served) {
        let mut command = limited(repository("target/venv-agents/bin/python"));
        command.arg(repository("functions/toolbox/tests/agent_frameworks.py"));
        command.args([framework, &format!("{}/mcp", served.url)]);
        stdout_of(&tokio::task::block_in_place(|| command.output()).unwrap());
    }

    /// Each lost the whole list to one keyword.
    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs AutoGen and Semantic Kernel; run .ci/long"]
    async fn agent_frameworks_list_the_tools_of_whole_documents() {
        for name in ["figma", "github"] {
            let text = std::fs::read(repository(&format!("target/openapi-documents/{name}.json")))
                .unwrap();
            let api = OpenApi::new(serde_json::from_slice(&text).unwrap()).unwrap();
            let api = api.include_all().list_all().base_url("https://api.example");
            let toolkit = Toolkit::new(api.tools().unwrap()).unwrap();
            let served = Served::start(Server::new(toolkit).into_router().unwrap()).await;
            for framework in ["autogen", "semantic-kernel"] {
                list(framework, &served);
            }
        }
    }
}
