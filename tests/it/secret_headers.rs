//! Secrets that come in headers of calls: each customer sends a key of its own.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use lambda_tools::{
    AgentCoreUser, ApiKeys, Context, EventKind, Failure, Server, Tool, Toolkit,
    http::HeaderName,
    idempotency::Idempotency,
    secrets::Secrets,
    serve,
    testing::{ExpectedResponse, LambdaFunction},
};
use serde_json::{Value, json};
use test_support::{Running, assert_program, program};

use crate::support::{Nothing, failed_start, post};

const WINDOW: Duration = Duration::from_mins(1);
const CALLER: &str = "the-key-of-the-caller";
const HEADER: HeaderName = HeaderName::from_static("x-figma-token");

async fn show(_: Nothing, cx: Context) -> Result<String, Failure> {
    // Not the secret itself, which would be redacted in a failure only.
    Ok(cx.secret("FIGMA_TOKEN")?.expose().chars().rev().collect())
}

/// Returns a function with a store that has the secret, too, and the number of its tool's runs.
fn fixture() -> (LambdaFunction, Arc<AtomicUsize>) {
    let runs = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&runs);
    let run = move |input: Nothing, cx: Context| {
        count.fetch_add(1, SeqCst);
        show(input, cx)
    };
    let tool = |id: &'static str| {
        let tool = Tool::new(id, run.clone()).description("Shows a file.");
        tool.secret("FIGMA_TOKEN")
    };
    let tools = [
        tool("Figma.Show@1.0.0").once_within(WINDOW),
        tool("Figma.Later@1.0.0").background(),
    ];
    let secrets = [
        ("FIGMA_TOKEN", "the-token-in-the-store"),
        ("CALLER", CALLER),
    ];
    let server = Server::new(Toolkit::new(tools).unwrap())
        .auth(ApiKeys::with_ids(["CALLER"]))
        .secrets(Secrets::fixed(secrets).only_from_store())
        .events([EventKind::HttpApi, EventKind::AgentCore])
        .idempotency(Idempotency::in_memory())
        .secret_header("FIGMA_TOKEN", HEADER);
    (LambdaFunction::new(server), runs)
}

async fn call(function: &LambdaFunction, token: &str, body: Value) -> ExpectedResponse {
    let headers = [("oxp-api-key", CALLER), ("x-figma-token", token)];
    post(function, "/tools/call", &headers, &body).await
}

/// Also if they act for the same user, and with the same id.
#[tokio::test]
async fn customers_with_equal_inputs_share_nothing() {
    for user in [json!({}), json!({"user_id": "alice"})] {
        let (function, runs) = fixture();
        let body = json!({"tool_id": "Figma.Show", "input": {}, "context": user});
        for (token, count, shown) in [("one", 1, "eno"), ("two", 2, "owt"), ("one", 2, "eno")] {
            let reply = call(&function, token, body.clone()).await;
            assert_eq!(reply.body["value"], shown, "{reply:?}");
            assert_eq!(runs.load(SeqCst), count);
        }
        let mut named = body;
        named["call_id"] = "1".into();
        let reply = call(&function, "one", named.clone()).await;
        assert_eq!(reply.body["value"], "eno", "{reply:?}");
        let reply = call(&function, "two", named).await;
        assert_eq!(reply.status, 400, "{reply:?}");
        let message = "This call_id belongs to another call";
        assert_eq!(reply.body["message"], message);
    }
    // The server takes no secrets from the bodies of calls.
    let secrets = json!([{"id": "FIGMA_TOKEN", "value": "one"}]);
    let body = json!({"tool_id": "Figma.Show", "input": {}, "context": {"secrets": secrets}});
    let reply = call(&fixture().0, "", body).await;
    let missing = "Figma.Show@1.0.0 needs the secret 'FIGMA_TOKEN' in the header x-figma-token.";
    assert_eq!(reply.body["developer_message"], missing);
}

#[cfg(feature = "tasks")]
#[tokio::test]
async fn a_task_keeps_the_secret_of_its_call() {
    let queue = Arc::new(std::sync::Mutex::new(Vec::new()));
    let events = Arc::clone(&queue);
    let tool = Tool::new("Figma.Later@1.0.0", show).description("Shows a file.");
    let tools = Toolkit::new([tool.secret("FIGMA_TOKEN").background()]).unwrap();
    let server = Server::new(tools)
        .idempotency(Idempotency::in_memory())
        .secret_header("FIGMA_TOKEN", HEADER)
        .tasks(true)
        .task_after(Duration::ZERO)
        .on_task(move |event| events.lock().unwrap().push(event));
    let function = LambdaFunction::new(server);
    let send = async |method: &str, params: Value, token: &str| {
        let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        let (mut headers, body) = test_support::mcp::modern(method, params, tasks);
        headers.push(("x-figma-token", token.to_owned()));
        let headers: Vec<_> = headers.iter().map(|(name, it)| (*name, &**it)).collect();
        post(&function, "/mcp", &headers, &body).await.body["result"].take()
    };
    let mut ids = Vec::new();
    for token in ["customer-one", "customer-two"] {
        let meta = json!({"lambda-tools/call-id": token});
        let params = json!({"name": "Figma_Later", "arguments": {}, "_meta": meta});
        ids.push(send("tools/call", params, token).await["taskId"].take());
    }
    let events = std::mem::take(&mut *queue.lock().unwrap());
    for event in events {
        assert!(!event.contains("customer"), "{event}");
        function.invoke(&event).await.unwrap();
    }
    for (id, shown) in ids.iter().zip(["eno-remotsuc", "owt-remotsuc"]) {
        // Whoever asks needs no secret.
        let task = send("tasks/get", json!({"taskId": id}), "").await;
        let text = task["result"]["structuredContent"]["result"].clone();
        assert_eq!(text, shown, "{task}");
    }
}

#[tokio::test]
async fn a_gateway_passes_the_header_on() {
    let (function, _) = fixture();
    let twice = json!({"X-Figma-Token": "one", "x-figma-token": "two"});
    let missing = "has to send the secret 'FIGMA_TOKEN' in the header x-figma-token";
    for (headers, expected) in [
        (json!({"X-Figma-Token": "one"}), "eno"),
        (twice, missing),
        (json!({"X-Figma-Token": ["one"]}), missing),
        (json!({}), missing),
    ] {
        let context = json!({"custom": {
            "bedrockAgentCoreToolName": "t___Figma_Show",
            "bedrockAgentCorePropagatedHeaders": headers,
        }});
        let reply = function
            .invoke_with_context("{}", &context.to_string())
            .await;
        let reply = reply.unwrap().to_string();
        assert!(reply.contains(expected), "{headers} {reply}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a program that tests start"]
async fn customer_program_of_tests() {
    assert_program();
    let tool = Tool::new("Figma.Show@1.0.0", show).description("Shows a file.");
    let tool = tool.secret("FIGMA_TOKEN").once_within(WINDOW);
    let tools = Toolkit::new([tool]).unwrap();
    let user = AgentCoreUser::Header(HeaderName::from_static("x-user"));
    let server = Server::new(tools).agentcore_user(user);
    serve(server).await.unwrap();
}

#[test]
fn a_server_does_not_start_with_a_header_that_means_something_else() {
    for row in [
        "FIGMA_TOKEN | but needs the id of a secret and the name of a header",
        "FIGMA_TOKEN=X Figma | but needs the id of a secret and the name of a header",
        "FIGMA_TOKEN= | but needs the id of a secret and the name of a header",
        "FIGMA=X-Figma | no tool declares this secret",
        "FIGMA_TOKEN=X-A,FIGMA_TOKEN=X-B | a secret comes in one header",
    ] {
        let (setting, expected) = row.split_once(" | ").unwrap();
        assert_refused(setting, expected);
    }
    for name in "authorization Cookie oxp-api-key OXP-Version idempotency-key if-none-match origin host \
        accept accept-language content-type mcp-session-id mcp-name proxy-authorization sec-fetch-site \
        traceparent tracestate user-agent x-amzn-trace-id x-amz-security-token x-forwarded-for x-user \
        connection access-control-request-headers"
        .split_whitespace()
    {
        assert_refused(&format!("FIGMA_TOKEN={name}"), "this header has another meaning");
    }
}

fn assert_refused(setting: &str, expected: &str) {
    let mut program = program("secret_headers::customer_program_of_tests");
    let text = failed_start(program.env("TOOLS_SECRET_HEADERS", setting));
    assert!(text.contains(expected), "{setting}: {text}");
}

#[tokio::test]
async fn a_repeated_call_with_the_same_secret_is_one() {
    let mut program = program("secret_headers::customer_program_of_tests");
    program.env("TOOLS_SECRET_HEADERS", "FIGMA_TOKEN=X-Figma-Token");
    let (running, url) = Running::serving(&mut program);
    let mut replays = Vec::new();
    for token in ["one", "two", "one"] {
        let call = reqwest::Client::new().post(format!("{url}/tools/call"));
        let call = call.body(r#"{"tool_id": "Figma.Show"}"#);
        let reply = call.header(HEADER, token).send().await.unwrap();
        replays.push(reply.headers().contains_key("idempotent-replay"));
    }
    assert_eq!(replays, [false, false, true]);
    // The secret is in no store, so none lacks it.
    let printed = running.end().join("\n");
    assert!(!printed.contains("missing from the store"), "{printed}");
}
