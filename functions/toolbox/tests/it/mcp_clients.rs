//! Published MCP clients that call the toolbox.
//!
//! They come from PyPI and npm. `tests/all` installs them and runs these tests; a plain `cargo test`
//! lists them as ignored. The client for Rust is tested in `tests/peers`.

use std::{ffi::OsStr, process::Command};

use serde_json::{Value, json};
use test_support::{
    documents::blocks,
    mcp::{KEY, LEGACY, MODERN, Peer, WRONG_KEY, calls},
    node,
};

use crate::{
    clients::stdout_of,
    support::{Running, installed, repository, toolbox},
};

/// Part of the server's error for an unknown tool.
const DID_YOU_MEAN: &str = "did you mean Calculator_Add?";

/// Returns a program that is stopped if it does not end by itself.
pub(crate) fn limited(program: impl AsRef<OsStr>) -> Command {
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

/// Lets the Python client call a server without keys, in both eras.
pub(crate) fn check_open_server(server: &str, url: &str) {
    for (mode, revision) in [(MODERN, MODERN), ("legacy", LEGACY)] {
        let peer = Peer {
            name: mode,
            revision,
            unknown_tool: DID_YOU_MEAN,
            unauthorized: [""; 2],
        };
        let mut command = limited(installed("python"));
        command.arg(repository("functions/toolbox/tests/mcp_client.py"));
        peer.check_calls(server, &answers_of(&mut command, url, Some(mode)));
    }
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
            let mut command = limited(repository("target/venv-mcp1/bin/python"));
            command.arg(repository("functions/toolbox/tests/requests.py"));
            command.arg(request).status().unwrap().success()
        };
        assert!(is_accepted(&request), "{request}");
        let wrong = request.replace("_url", "_uri").replace("endpoint", "url");
        assert!(!is_accepted(&wrong), "{wrong}");
    }
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

/// An agent framework that uses the line of the client before 2.0, which knows no revision without
/// `initialize`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs openai-agents; run tests/all"]
async fn an_agent_framework_with_the_previous_mcp_client_works() {
    let peer = Peer {
        name: "openai-agents",
        revision: LEGACY,
        unknown_tool: DID_YOU_MEAN,
        unauthorized: ["401"; 2],
    };
    let client = async |url: String| {
        let mut command = limited(repository("target/venv-mcp1/bin/python"));
        command.arg(repository("functions/toolbox/tests/openai_agents.py"));
        answers_of(&mut command, &url, None)
    };
    peer.verify(toolbox, client).await;
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

/// The Inspector's command line, with a process for each request.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's Inspector; run tests/all"]
async fn the_inspector_works_in_both_eras() {
    for (era, revision) in [("modern", MODERN), ("legacy", LEGACY)] {
        let peer = Peer {
            name: era,
            revision,
            // It looks for the tool in the list and does not call it.
            unknown_tool: "Tool 'Calculator_Ad' not found on server.",
            unauthorized: ["401"; 2],
        };
        let client = async |url: String| inspect(&Inspector { url, era });
        peer.verify(toolbox, client).await;
    }
}

struct Inspector {
    url: String,
    era: &'static str,
}

impl Inspector {
    /// Runs it; returns its exit code, its result and its error.
    fn run(&self, key: &str, arguments: &[&str]) -> (i32, Value, Value) {
        let mut command = limited(node());
        command
            .arg(repository("target/conformance/node_modules/.bin/inspector"))
            .args(["--cli", &self.url, "--transport", "http"])
            .args(["--protocol-era", self.era, "--format", "json"])
            .args(["--header", &format!("Authorization: Bearer {key}")])
            // Otherwise a 401 would start OAuth in a browser.
            .arg("--stored-auth-only")
            .args(arguments)
            // Below which it stores credentials.
            .env("HOME", repository("target/conformance"));
        let output = tokio::task::block_in_place(|| command.output()).unwrap();
        let read = |bytes, field: &str| {
            let value: Value = serde_json::from_slice(bytes).unwrap_or_default();
            value[field].clone()
        };
        let code = output.status.code();
        let code = code.unwrap_or_else(|| panic!("{arguments:?}: {output:?}"));
        let (result, error) = (
            read(&output.stdout, "result"),
            read(&output.stderr, "error"),
        );
        assert!(!(result.is_null() && error.is_null()), "{output:?}");
        (code, result, error)
    }

    fn call(&self, tool: &str, input: &Value) -> Value {
        let text = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
        let input = input.as_object().unwrap().iter();
        let pairs: Vec<_> = input
            .map(|(name, value)| format!("{name}={}", text(value)))
            .collect();
        let mut arguments = vec!["--method", "tools/call", "--tool-name", tool];
        for pair in &pairs {
            arguments.extend(["--tool-arg", pair]);
        }
        match self.run(KEY, &arguments) {
            (0, result, _) => json!({"value": result["structuredContent"]}),
            (5, result, _) if result["isError"] == true => {
                json!({"failure": result["content"][0]["text"]})
            }
            (5, _, error) => json!({"error": error["message"]}),
            other => panic!("{tool}: {other:?}"),
        }
    }
}

fn inspect(inspector: &Inspector) -> Value {
    // Strict: it fails if other clients cannot use a schema.
    let list = ["--method", "tools/list", "--strict"];
    let (code, listed, error) = inspector.run(KEY, &list);
    assert_eq!(code, 0, "{error}");
    let tools = listed["tools"].as_array().unwrap().iter();
    let tools: Vec<_> = tools.map(|tool| &tool["name"]).collect();
    let calls = calls().into_iter();
    let outcomes: Vec<_> = calls
        .map(|(tool, input)| inspector.call(tool, &input))
        .collect();
    let (code, _, error) = inspector.run(WRONG_KEY, &list);
    assert_eq!(code, 3, "{error}");
    json!({"tools": tools, "outcomes": outcomes, "unauthorized": error["message"]})
}

/// OpenID Connect Discovery 1.0, 3: both documents are valid for clients that check every field, also
/// if they find only the second one.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's MCP clients; run tests/all"]
async fn the_published_typescript_clients_read_the_metadata_of_sign_in() {
    let mut command = toolbox();
    command.envs([
        ("TOOLS_AUTH", "sign-in"),
        ("TOOLS_SIGN_IN_PROVIDER", "openid"),
        ("TOOLS_SIGN_IN_ISSUER", "https://id.example"),
        ("TOOLS_SIGN_IN_CLIENT_ID", "id"),
        ("TOOLS_SIGN_IN_ALLOW", "anyone"),
    ]);
    let (_running, url) = Running::serving(&mut command);
    let mut node = limited("node");
    node.arg(repository("target/conformance/mcp_discovery.mjs"));
    let output = tokio::task::block_in_place(|| node.arg(&url).output()).unwrap();
    let found: Value = serde_json::from_str(&stdout_of(&output)).unwrap();
    for document in ["oauth-authorization-server", "openid-configuration"] {
        let clients = found[document].as_array().unwrap();
        assert_eq!(clients.len(), 2, "{found}");
        for metadata in clients {
            assert_eq!(metadata["issuer"], url, "{found}");
            assert_eq!(metadata["token_endpoint"], format!("{url}/token"));
            assert_eq!(metadata["code_challenge_methods_supported"][0], "S256");
        }
    }
}

/// Tests that take too long for every change: `.ci/long` installs what they need, and runs them.
mod long {
    use super::*;
    use lambda_tools::{Context, Failure, Server, Tool, Toolkit};
    use lambda_tools_openapi::OpenApi;
    use schemars::JsonSchema;
    use serde::Deserialize;
    use test_support::Served;

    /// A parameter that may be missing.
    #[derive(Deserialize, JsonSchema)]
    struct Named {
        /// The name.
        name: Option<String>,
    }

    async fn name_of(input: Named, _: Context) -> Result<String, Failure> {
        Ok(input.name.unwrap_or_else(|| "none".into()))
    }

    async fn echo(input: Value) -> Result<Value, Failure> {
        Ok(input)
    }

    /// Returns tools whose parameters may be `null`, as those of a document with `nullable`.
    fn nullable() -> Server {
        let input = json!({"type": "object", "properties": {
            "text": {"type": ["string", "null"], "description": "A text."},
            "choice": {"type": ["string", "null"], "enum": ["a", "b", null], "description": "One of them."},
            "list": {"type": ["array", "null"], "items": {"type": ["string", "null"]}, "description": "Texts."},
            "either": {"type": ["string", "integer"], "description": "Two types."},
            "object": {"type": ["object", "null"], "description": "An object.", "properties": {
                "number": {"type": ["integer", "null"], "description": "A number."}}},
        }, "required": ["text"]});
        let tools = [
            Tool::dynamic(
                "Document.Echo@1.0.0",
                "Returns its input.",
                input,
                json!({}),
                echo,
            ),
            Tool::new("Rust.Name@1.0.0", name_of),
        ];
        Server::new(Toolkit::new(tools).unwrap())
    }

    /// The keywords that lost them their tools are in no list.
    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs packages of PyPI; run .ci/long"]
    async fn lists_have_what_strict_clients_read() {
        let document = std::fs::read(repository("target/openapi-documents/figma.json")).unwrap();
        let api = OpenApi::new(serde_json::from_slice(&document).unwrap()).unwrap();
        let tools = api.include_all().list_all().tools().unwrap();
        for server in [nullable(), Server::new(Toolkit::new(tools).unwrap())] {
            let served = Served::start(server.into_router().unwrap()).await;
            let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
            let client = reqwest::Client::builder().no_proxy().build().unwrap();
            let request = client.post(format!("{}/mcp", served.url)).json(&request);
            let request = request.header("accept", "application/json, text/event-stream");
            let mut response: Value = request
                .header("mcp-protocol-version", LEGACY)
                .send()
                .await
                .unwrap()
                .json()
                .await
                .unwrap();
            let list = repository("target/tmp/strict-list.json");
            std::fs::write(&list, response["result"]["tools"].take().to_string()).unwrap();
            let mut command = limited(repository("target/venv-openapi-tools/bin/python"));
            command
                .arg(repository("tests/openapi/check_tools.py"))
                .arg("--clients")
                .arg(list);
            stdout_of(&tokio::task::block_in_place(|| command.output()).unwrap());
        }
    }

    /// Each lost the whole list to one keyword.
    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs agents' frameworks; run .ci/long"]
    async fn strict_clients_list_the_tools_of_whole_documents() {
        for name in ["figma", "github"] {
            let text = std::fs::read(repository(&format!("target/openapi-documents/{name}.json")))
                .unwrap();
            let api = OpenApi::new(serde_json::from_slice(&text).unwrap()).unwrap();
            let api = api.include_all().list_all().base_url("https://api.example");
            let toolkit = Toolkit::new(api.tools().unwrap()).unwrap();
            let served = Served::start(Server::new(toolkit).into_router().unwrap()).await;
            for (environment, framework) in [
                ("venv-agents", "autogen"),
                ("venv-agents", "semantic-kernel"),
                ("venv-strict-clients", "crewai"),
                ("venv-strict-clients", "haystack"),
            ] {
                let mut command = limited(repository(&format!("target/{environment}/bin/python")));
                command.arg(repository("functions/toolbox/tests/agent_frameworks.py"));
                let url = format!("{}/mcp", served.url);
                command
                    .args([framework, &url])
                    .env("HOME", repository("target/tmp"));
                // It fails if the client has fewer tools than the server lists.
                stdout_of(&tokio::task::block_in_place(|| command.output()).unwrap());
            }
        }
    }

    /// Both lost all tools of a server that lists `"type": ["string", "null"]` once.
    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs AutoGen and Semantic Kernel; run .ci/long"]
    async fn agent_frameworks_call_tools_whose_parameters_may_be_null() {
        let served = Served::start(nullable().into_router().unwrap()).await;
        let inputs = [
            json!({"text": "x", "choice": "a", "list": ["y"], "either": 3, "object": {"number": 1}}),
            json!({"text": null, "choice": null, "list": null, "object": null}),
        ];
        let named = [json!({"name": "Ada"}), json!({})];
        let calls = inputs.clone().map(|it| json!(["Document_Echo", it]));
        let calls = [calls, named.map(|it| json!(["Rust_Name", it]))].concat();
        for framework in ["autogen", "semantic-kernel"] {
            let mut command = limited(repository("target/venv-agents/bin/python"));
            command.arg(repository("functions/toolbox/tests/agent_frameworks.py"));
            let url = format!("{}/mcp", served.url);
            command.args([framework, &url, &json!(calls).to_string()]);
            let stdout = stdout_of(&tokio::task::block_in_place(|| command.output()).unwrap());
            let seen: Value = serde_json::from_str(&stdout).unwrap();
            assert_eq!(
                seen["tools"],
                json!(["Document_Echo", "Rust_Name"]),
                "{framework}"
            );
            let results = seen["results"].as_array().unwrap().iter();
            let results = results.map(|it| serde_json::from_str::<Value>(it.as_str().unwrap()));
            let results: Vec<_> = results.map(|it| it.unwrap()["result"].take()).collect();
            let expected = [&inputs[..], &[json!("Ada"), json!("none")]].concat();
            assert_eq!(results, expected, "{framework}");
        }
    }
}
