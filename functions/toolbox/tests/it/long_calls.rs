//! Tasks of the deployed binary: calls that go on in another invocation of the function.
//!
//! Nothing here takes the minutes that such calls are for: a tool that takes seconds outlasts a
//! function URL that gives up even earlier. What happens after minutes, the library's tests show.

mod clients;
mod faults;
mod without_tasks;

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use test_support::{
    aws::CREDENTIALS,
    dynamodb::DynamoDb,
    invocations::{End, Function, Treatment},
    mcp::MODERN,
};
use tokio::task::JoinHandle;

use crate::support::faults;

const TABLE: &str = "calls";
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// The end of an event that has started a task, or comes too late for it.
const NOTHING: End = End::Response(Value::Null);

/// The function of long tools, whose instances share a table.
struct Tools {
    function: Function,
    table: DynamoDb,
    effects: PathBuf,
}

impl Tools {
    async fn start() -> Arc<Self> {
        Self::with(&[]).await
    }

    /// Starts the function with further variables.
    async fn with(environment: &[(&str, &str)]) -> Arc<Self> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let effects = format!("long-calls-{}-{number}", std::process::id());
        let effects = std::env::temp_dir().join(effects);
        let table = DynamoDb::start(TABLE).await;
        let url = table.url();
        let mut variables = CREDENTIALS.to_vec();
        variables.extend([
            ("LONG_TOOLS", "1"),
            ("EFFECTS", effects.to_str().unwrap()),
            ("TOOLS_IDEMPOTENCY", "dynamodb"),
            ("TOOLS_IDEMPOTENCY_TABLE", TABLE),
            ("AWS_ENDPOINT_URL_DYNAMODB", &url),
        ]);
        variables.extend(environment);
        let function = Function::start(faults, &variables).await;
        Arc::new(Self {
            function,
            table,
            effects,
        })
    }

    /// Sends a request with JSON; returns the answer.
    async fn post(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Value {
        let mut request = reqwest::Client::new().post(format!("{}{path}", self.function.url));
        request = request.header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.body(body.to_string()).send().await.unwrap();
        answer.json().await.unwrap()
    }

    /// Sends a request of an MCP client that takes tasks; returns the result.
    async fn mcp(&self, method: &str, mut params: Value) -> Value {
        let extensions = json!({"extensions": {TASKS: {}}});
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = MODERN.into();
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = extensions;
        let name = params.get("name").or(params.get("taskId"));
        let name = name.and_then(Value::as_str).unwrap_or_default().to_owned();
        let headers = [
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", MODERN),
            ("mcp-method", method),
            ("mcp-name", &name),
        ];
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.post("/mcp", &headers, &body).await["result"].take()
    }

    /// Calls a tool; returns the result.
    async fn call(&self, tool: &str, input: Value, call_id: &str) -> Value {
        let meta = json!({"lambda-tools/call-id": call_id});
        let params = json!({"name": tool, "arguments": input, "_meta": meta});
        self.mcp("tools/call", params).await
    }

    /// Delivers an event while the test goes on.
    fn deliver(self: &Arc<Self>, event: &Value) -> JoinHandle<End> {
        let (tools, event) = (Arc::clone(self), event.clone());
        tokio::spawn(async move { tools.function.invoke(&event, None).await })
    }

    async fn get(&self, id: &str) -> Value {
        self.mcp("tasks/get", json!({"taskId": id})).await
    }

    /// Waits until a task is no longer working.
    async fn end_of(&self, id: &str) -> Value {
        let ended = eventually("the task ends", async || {
            Some(self.get(id).await).filter(|task| task["status"] != "working")
        });
        ended.await
    }

    /// Returns the item of a task.
    fn item(&self, id: &str) -> Value {
        let mut items = self.table.items().into_iter();
        items.find(|item| item["id"]["S"] == id[..64]).unwrap()
    }

    /// Returns the number of effects of a call.
    fn effects_of(&self, call_id: &str) -> usize {
        let effects = fs::read_to_string(&self.effects).unwrap_or_default();
        let start = format!("{call_id} ");
        effects.lines().filter(|it| it.starts_with(&start)).count()
    }

    /// Waits until a call has had its effect.
    async fn effect_of(&self, call_id: &str) {
        eventually("the tool has its effect", async || {
            (self.effects_of(call_id) > 0).then_some(())
        })
        .await;
    }
}

impl Drop for Tools {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.effects);
    }
}

/// Looks for something until it is there.
async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(12);
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < end, "in 12 s, not: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Returns the text of a result.
fn text_of(result: &Value) -> &str {
    let text = result["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{result}"))
}

/// Returns true if an item has this text anywhere, also in bytes.
fn has_text(item: &Value, text: &str) -> bool {
    item.as_object().unwrap().values().any(|field| {
        let bytes = field["B"].as_str().map(|it| BASE64_STANDARD.decode(it));
        let bytes = bytes.transpose().unwrap().unwrap_or_default();
        field.to_string().contains(text) || String::from_utf8_lossy(&bytes).contains(text)
    })
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what tests/all builds"]
async fn a_waiting_call_is_unreadable_in_the_table_and_gone_after_its_start() {
    let tools = Tools::start().await;
    let mark = "Xmark-0123456789";
    let secret = json!({"id": "KEY", "value": format!("{mark}-secret")});
    let body = json!({
        "tool_id": "Long.Write", "call_id": "sealed", "context": {"secrets": [secret]},
        "input": {"text": format!("{mark}-input"), "after_ms": 1500},
    });
    tools.function.treat(Treatment::Hold);
    let caller = Arc::clone(&tools);
    let answer = tokio::spawn(async move { caller.post("/tools/call", &[], &body).await });
    let event = eventually("the function invokes itself", async || {
        tools.function.invocations().pop()
    });
    let event = event.await;
    let id = event["lambda_tools"]["task"].as_str().unwrap();
    let waiting = tools.item(id);
    assert!(waiting.get("sealed").is_some(), "{waiting}");
    let code = event["lambda_tools"]["code"].as_str().unwrap();
    // The code is all that is needed to read the call, and the table does not have it.
    for text in [mark, code] {
        assert!(!has_text(&waiting, text), "{waiting}");
    }
    assert!(!event.to_string().contains(mark), "{event}");
    let started = tools.deliver(&event);
    tools.effect_of("sealed").await;
    let running = tools.item(id);
    assert!(running.get("sealed").is_none(), "{running}");
    assert!(!has_text(&running, mark), "{running}");
    assert_eq!(started.await.unwrap(), NOTHING);
    let ended = tools.item(id);
    assert!(ended.get("sealed").is_none() && ended.get("outcome").is_some());
    assert!(!has_text(&ended, mark), "{ended}");
    assert_eq!(answer.await.unwrap()["value"], "written for sealed");
}
