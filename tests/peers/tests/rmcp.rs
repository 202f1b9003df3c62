//! The client of MCP's official Rust SDK.

use std::{process::Command, time::Duration};

use rmcp::{
    ClientLifecycleMode, ClientServiceExt,
    model::{
        CallToolRequestParams, CallToolResult, GetPromptRequestParams, ProtocolVersion,
        ReadResourceRequestParams,
    },
    service::{ClientInitializeError, RoleClient, RunningService},
    transport::{
        StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::{Value, json};
use test_support::{
    Running, built,
    documents::blocks,
    function, isolated,
    mcp::{KEY, LEGACY, MODERN, Peer, WRONG_KEY, calls},
    repository,
};

type Client = RunningService<RoleClient, ()>;

async fn connect(
    url: &str,
    key: &str,
    lifecycle: &ClientLifecycleMode,
) -> Result<Client, ClientInitializeError> {
    let config = StreamableHttpClientTransportConfig::with_uri(url).auth_header(key);
    let transport = StreamableHttpClientTransport::from_config(config);
    ().serve_with_lifecycle(transport, lifecycle.clone()).await
}

async fn call(client: &Client, tool: &'static str, input: Value) -> Value {
    let Value::Object(input) = input else {
        panic!("the arguments of {tool} are no object");
    };
    let request = CallToolRequestParams::new(tool).with_arguments(input);
    match client.call_tool(request).await {
        Ok(result) if result.is_error == Some(true) => json!({"failure": text_of(&result)}),
        Ok(result) => json!({"value": result.structured_content}),
        Err(error) => json!({"error": error.to_string()}),
    }
}

fn text_of(result: &CallToolResult) -> &str {
    &result.content[0].as_text().unwrap().text
}

async fn ask(url: &str, lifecycle: &ClientLifecycleMode) -> Value {
    let client = connect(url, KEY, lifecycle).await.unwrap();
    let tools = client.list_all_tools().await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| &tool.name).collect();
    let mut outcomes = Vec::new();
    for (tool, input) in calls() {
        outcomes.push(call(&client, tool, input).await);
    }
    let refusal = connect(url, WRONG_KEY, lifecycle).await.err();
    let refusal = format!("{refusal:?}");
    let answers = json!({"tools": names, "outcomes": outcomes, "unauthorized": refusal});
    client.cancel().await.unwrap();
    answers
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes; run tests/all"]
async fn rmcp_works_in_both_eras() {
    let modern = || vec![ProtocolVersion::V_2026_07_28];
    let initialize = ClientLifecycleMode::Initialize;
    let discover = ClientLifecycleMode::Discover {
        preferred_versions: modern(),
    };
    let auto = ClientLifecycleMode::Auto {
        preferred_versions: modern(),
        legacy_version: None,
    };
    for (name, lifecycle, revision) in [
        ("initialize", initialize, LEGACY),
        ("discover", discover, MODERN),
        ("auto", auto, MODERN),
    ] {
        let peer = Peer {
            name,
            revision,
            unknown_tool: "did you mean Calculator_Add?",
            unauthorized: ["AuthRequired", "HTTP 401 Unauthorized"],
        };
        let toolbox = || isolated(Command::new(function("toolbox")));
        let client = async |url: String| {
            let answers = tokio::time::timeout(Duration::from_secs(30), ask(&url, &lifecycle));
            answers.await.expect("rmcp does not finish")
        };
        peer.verify(toolbox, client).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a program of tests/conformance; run tests/all"]
async fn rmcp_reads_resources_and_gets_prompts_in_both_eras() {
    let mut server = isolated(Command::new(built("debug/conformance")));
    let (_running, url) = Running::serving(&mut server);
    let discover = ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    };
    for lifecycle in [ClientLifecycleMode::Initialize, discover] {
        let client = connect(&format!("{url}/mcp"), KEY, &lifecycle)
            .await
            .unwrap();
        let resources = client.list_all_resources().await.unwrap();
        assert_eq!(resources[0].uri, "test://static-text");
        let templates = client.list_all_resource_templates().await.unwrap();
        assert_eq!(templates.len(), 1);
        assert_eq!(client.list_all_prompts().await.unwrap().len(), 5);
        let read = ReadResourceRequestParams::new("test://template/7/data");
        let read = json!(client.read_resource(read).await.unwrap());
        let text = read["contents"][0]["text"].as_str().unwrap();
        assert!(text.contains("Data for ID: 7"), "{read}");
        let arguments = json!({"arg1": "x", "arg2": "y"});
        let arguments = arguments.as_object().unwrap().clone();
        let prompt = GetPromptRequestParams::new("test_prompt_with_arguments");
        let prompt = client.get_prompt(prompt.with_arguments(arguments)).await;
        let text = json!(prompt.unwrap())["messages"][0]["content"]["text"].take();
        assert_eq!(text, "Prompt with arguments: arg1='x', arg2='y'");
        client.cancel().await.unwrap();
    }
}

#[test]
fn the_page_has_the_program() {
    let page = std::fs::read_to_string(repository("docs/clients.md")).unwrap();
    let blocks = blocks("docs/clients.md", &page);
    let mut ignored = blocks.iter().filter(|it| it.language == "rust,ignore");
    let block = ignored.next().expect("the page has the program");
    assert_eq!(block.text, include_str!("../src/main.rs"));
    assert!(ignored.next().is_none(), "no test compiles another block");
}

#[test]
#[ignore = "needs what sam build makes; run tests/all"]
fn the_program_of_the_page_lists_and_calls_tools() {
    let mut toolbox = isolated(Command::new(function("toolbox")));
    toolbox.envs([("TOOLS_AUTH", "api-key"), ("TOOLS_API_KEY", KEY)]);
    let (_running, url) = Running::serving(&mut toolbox);
    let run = |key| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_mcp_client"));
        program.envs([("MCP_URL", format!("{url}/mcp").as_str()), ("MCP_KEY", key)]);
        program.output().unwrap()
    };
    let output = run(KEY);
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{stdout}");
    assert!(stdout.starts_with("Calculator_Add: "), "{stdout}");
    assert!(stdout.ends_with("{\"result\":15}\n"), "{stdout}");
    assert!(!run(WRONG_KEY).status.success());
}
