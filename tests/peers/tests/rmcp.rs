//! The client of MCP's official Rust SDK.

use std::{process::Command, time::Duration};

use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ServiceError,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams,
        ClientCapabilities, ClientConfig, GetTaskParams, Implementation, JsonObject,
        ProtocolVersion, TASKS_EXTENSION_ID, TaskPayload, TaskStatus,
    },
    service::{ClientInitializeError, RoleClient, RunningService},
    transport::{
        StreamableHttpClientTransport,
        auth::{AuthClient, AuthorizationRequest, OAuthState},
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::{Value, json};
use test_support::{
    Running,
    aws::CREDENTIALS,
    documents::blocks,
    dynamodb::DynamoDb,
    function,
    invocations::{Function, Limits},
    isolated,
    mcp::{KEY, LEGACY, MODERN, Peer, WRONG_KEY, calls},
    openid::{Act, Browser, OpenId},
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

#[test]
fn the_page_has_the_program() {
    let page = std::fs::read_to_string(repository("docs/clients.md")).unwrap();
    let blocks = blocks("docs/clients.md", &page);
    let mut marked = blocks.iter().filter(|block| block.mark.is_some());
    let block = marked.next().expect("the page has a marked block");
    assert_eq!(block.text, include_str!("../src/main.rs"));
    assert!(marked.next().is_none(), "no test runs another block");
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

/// With nothing but the URL: the client registers itself, and checks what the server says about
/// itself.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes, and npm's oidc-provider; run tests/all"]
async fn rmcp_signs_its_user_in() {
    let provider = OpenId::start();
    let mut function = isolated(Command::new(function("faults")));
    function.envs([
        ("TOOLS_AUTH", "sign-in"),
        ("TOOLS_SIGN_IN_PROVIDER", "openid"),
        ("TOOLS_SIGN_IN_ISSUER", &provider.url),
        ("TOOLS_SIGN_IN_CLIENT_ID", "toolbox"),
        ("TOOLS_SIGN_IN_CLIENT_SECRET", "toolbox-secret"),
        ("TOOLS_SIGN_IN_ALLOW", "user:alice"),
        ("TOOLS_SIGN_IN_SCOPES", "mail.read"),
        ("TOOLS_OAUTH_KEY", "a-key-of-this-server-0123456789abcdef"),
    ]);
    let (_running, url) = Running::serving(&mut function);
    let redirect = format!("{url}/authorization/openid/callback");
    provider.allow_redirect(&redirect).await;
    let mcp = format!("{url}/mcp");
    let mut state = OAuthState::new(&mcp, None).await.unwrap();
    let request = AuthorizationRequest::new("http://127.0.0.1/callback").with_client_name("rmcp");
    state.start_authorization(request).await.unwrap();
    let start = state.get_authorization_url().await.unwrap();
    let browser = Browser::of("alice");
    let callback = browser.follow_to_callback(&start, Act::Allow).await;
    let landed = browser.get(callback.as_str()).await;
    let location = &landed.headers["location"];
    state.handle_callback_url(location).await.unwrap();
    let manager = state.into_authorization_manager().unwrap();
    let client = AuthClient::new(reqwest::Client::default(), manager);
    let config = StreamableHttpClientTransportConfig::with_uri(mcp);
    let transport = StreamableHttpClientTransport::with_client(client, config);
    let lifecycle = ClientLifecycleMode::Initialize;
    let client = ().serve_with_lifecycle(transport, lifecycle).await.unwrap();
    let outcome = call(&client, "Mail_Whose", json!({})).await;
    assert_eq!(outcome["value"]["result"], "alice", "{outcome}");
    client.cancel().await.unwrap();
}

/// A client that takes tasks.
#[derive(Clone)]
struct TakesTasks;

impl ClientHandler for TakesTasks {
    /// Like `ClientCapabilities::builder().enable_tasks()`, which needs more of rmcp's features.
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        let tasks = (TASKS_EXTENSION_ID.to_owned(), JsonObject::new());
        capabilities.extensions = Some([tasks].into());
        ClientConfig::new(capabilities, Implementation::new("test", "1.0.0"))
    }
}

/// How a task has ended, and what it has said before.
#[derive(Debug)]
struct Ended {
    payload: TaskPayload,
    messages: Vec<String>,
}

/// Calls a tool as a task, and polls it to the end.
async fn run_task(
    client: &RunningService<RoleClient, TakesTasks>,
    input: Value,
    cancels: bool,
) -> Ended {
    let request = CallToolRequestParams::new("Long_Count");
    let request = request.with_arguments(input.as_object().unwrap().clone());
    // `call_tool` fails if a task is created.
    let response = client.call_tool_once(request).await.unwrap();
    let CallToolResponse::Task(created) = response else {
        panic!("{input} does not become a task: {response:?}");
    };
    let (id, mut pause) = (created.task.task_id, created.task.poll_interval_ms);
    if cancels {
        client
            .cancel_task(CancelTaskParams::new(&id))
            .await
            .unwrap();
    }
    let mut messages = Vec::new();
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(pause.unwrap())).await;
        let task = client.get_task(GetTaskParams::new(&id)).await.unwrap().task;
        pause = task.task.poll_interval_ms;
        messages.extend(task.task.status_message.clone());
        if task.status() != TaskStatus::Working {
            let payload = task.payload;
            return Ended { payload, messages };
        }
    }
    panic!("the task {id} does not end");
}

/// In proportion, this is a tool of ten minutes behind a source that gives up after half a minute.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes; run tests/all"]
async fn rmcp_polls_tasks_that_outlast_every_request() {
    let table = DynamoDb::start("calls").await;
    let address = table.url();
    let mut variables = CREDENTIALS.to_vec();
    variables.extend([
        ("LONG_TOOLS", "1"),
        ("TOOLS_IDEMPOTENCY", "dynamodb"),
        ("TOOLS_IDEMPOTENCY_TABLE", "calls"),
        ("AWS_ENDPOINT_URL_DYNAMODB", &address),
    ]);
    let faults = || isolated(Command::new(function("faults")));
    let function = Function::start(faults, &variables).await;
    function.limit(Limits {
        source: Duration::from_secs(3),
        ..Limits::default()
    });
    let url = format!("{}/mcp", function.url);
    let modern = || ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    };
    let transport = StreamableHttpClientTransport::from_uri(&*url);
    let client = TakesTasks.serve_with_lifecycle(transport, modern());
    let client = client.await.unwrap();
    let server = client.peer_info().unwrap();
    assert!(server.capabilities.supports_tasks());
    let (counted, failed, panicked, cancelled) = tokio::join!(
        run_task(&client, json!({"to": 9, "step_ms": 500}), false),
        run_task(
            &client,
            json!({"to": 5, "step_ms": 500, "end": "fail"}),
            false
        ),
        run_task(
            &client,
            json!({"to": 5, "step_ms": 500, "end": "panic"}),
            false
        ),
        run_task(&client, json!({"to": 100, "step_ms": 100}), true),
    );
    assert!(
        matches!(&counted.payload, TaskPayload::Completed { result } if result["structuredContent"]["result"] == 9),
        "{counted:?}"
    );
    let messages = &counted.messages;
    assert!(
        messages.iter().any(|it| it.starts_with("counted to ")),
        "{messages:?}"
    );
    assert!(
        matches!(&failed.payload, TaskPayload::Completed { result } if result["isError"] == true),
        "{failed:?}"
    );
    assert!(
        matches!(&panicked.payload, TaskPayload::Failed { error } if error["code"] == -32603),
        "{panicked:?}"
    );
    assert!(
        matches!(cancelled.payload, TaskPayload::Cancelled),
        "{cancelled:?}"
    );
    let unknown = client.get_task(GetTaskParams::new("none")).await;
    assert!(
        matches!(&unknown, Err(ServiceError::McpError(error)) if error.code.0 == -32602),
        "{unknown:?}"
    );
    client.cancel().await.unwrap();
    // A client without the extension gets the outcome itself.
    let transport = StreamableHttpClientTransport::from_uri(&*url);
    let client = ().serve_with_lifecycle(transport, modern()).await.unwrap();
    let outcome = call(&client, "Long_Count", json!({"to": 1})).await;
    assert_eq!(outcome["value"]["result"], 1, "{outcome}");
    client.cancel().await.unwrap();
}
