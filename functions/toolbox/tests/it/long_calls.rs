//! Tasks of the deployed binary: calls that go on in another invocation of the function.
//!
//! Nothing here takes the minutes that such calls are for. A tool that takes seconds outlasts a
//! function URL that gives up even earlier, and what happens after minutes is brought about by
//! changing the times in the table.

mod clients;
mod faults;
mod strangers;
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
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use test_support::{
    aws::CREDENTIALS,
    built,
    dynamodb::DynamoDb,
    invocations::{End, Function, Treatment},
    isolated,
    mcp::MODERN,
};
use tokio::task::JoinHandle;

const TABLE: &str = "calls";
const TASKS: &str = "io.modelcontextprotocol/tasks";
const CALL_ID: &str = "lambda-tools/call-id";

/// The end of an event that has started a task, or comes too late for it.
const NOTHING: End = End::Response(Value::Null);

/// The function of long tools, whose instances share a table.
struct Tools {
    function: Function,
    table: DynamoDb,
    effects: PathBuf,
}

/// A call whose event the test holds.
struct Queued {
    id: String,
    event: Value,
    /// The answer to the call.
    answer: JoinHandle<Value>,
}

/// The answer to a request.
struct Answer {
    status: u16,
    headers: HeaderMap,
    text: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }
}

/// Returns the function, as it is deployed.
fn faults() -> std::process::Command {
    isolated(std::process::Command::new(built(
        "sam-faults/Faults/bootstrap",
    )))
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

    /// Sends a request with JSON.
    async fn post(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        let url = format!("{}{path}", self.function.url);
        let mut request = reqwest::Client::new().post(url);
        request = request.header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.body(body.to_string()).send().await.unwrap();
        Answer {
            status: answer.status().as_u16(),
            headers: answer.headers().clone(),
            text: answer.text().await.unwrap(),
        }
    }

    /// Sends a request of an MCP client, with a bearer token if it is not empty.
    async fn mcp(&self, token: &str, method: &str, mut params: Value, takes_tasks: bool) -> Answer {
        let extensions = if takes_tasks {
            json!({TASKS: {}})
        } else {
            json!({})
        };
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = MODERN.into();
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({"extensions": extensions});
        let name = params.get("name").or(params.get("taskId"));
        let name = name.and_then(Value::as_str).unwrap_or_default().to_owned();
        let authorization = format!("Bearer {token}");
        let mut headers = vec![
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", MODERN),
            ("mcp-method", method),
            ("mcp-name", &name),
        ];
        if !token.is_empty() {
            headers.push(("authorization", &authorization));
        }
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.post("/mcp", &headers, &body).await
    }

    /// Calls a tool as a client that takes tasks; returns the result.
    async fn call(&self, token: &str, tool: &str, input: Value, call_id: &str) -> Value {
        let params = json!({"name": tool, "arguments": input, "_meta": {CALL_ID: call_id}});
        let answer = self.mcp(token, "tools/call", params, true).await;
        answer.json()["result"].take()
    }

    /// Calls a tool, and keeps the event that starts its work.
    async fn queue(
        self: &Arc<Self>,
        token: &str,
        tool: &str,
        input: Value,
        call_id: &str,
    ) -> Queued {
        self.function.treat(Treatment::Hold);
        let before = self.function.invocations().len();
        let tools = Arc::clone(self);
        let (token, tool, call_id) = (token.to_owned(), tool.to_owned(), call_id.to_owned());
        let answer = tokio::spawn(async move { tools.call(&token, &tool, input, &call_id).await });
        let event = eventually("the function invokes itself", async || {
            self.function.invocations().get(before).cloned()
        });
        let event = event.await;
        let id = event["lambda_tools"]["task"].as_str().unwrap().to_owned();
        Queued { id, event, answer }
    }

    /// Delivers an event while the test goes on.
    fn deliver(self: &Arc<Self>, event: &Value) -> JoinHandle<End> {
        let (tools, event) = (Arc::clone(self), event.clone());
        tokio::spawn(async move { tools.function.invoke(&event, None).await })
    }

    async fn get(&self, id: &str) -> Value {
        let params = json!({"taskId": id});
        let answer = self.mcp("", "tasks/get", params, true).await;
        answer.json()["result"].take()
    }

    async fn cancel(&self, id: &str) {
        let params = json!({"taskId": id});
        let answer = self.mcp("", "tasks/cancel", params, true).await.json();
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    }

    /// Waits until a task is no longer working.
    async fn end_of(&self, id: &str) -> Value {
        let ended = eventually("the task ends", async || {
            Some(self.get(id).await).filter(|task| task["status"] != "working")
        });
        ended.await
    }

    /// Waits until a task has started.
    async fn start_of(&self, id: &str) {
        let started = eventually("the task starts", async || {
            self.item(id).get("sealed").is_none().then_some(())
        });
        started.await;
    }

    /// Returns the item of a task.
    fn item(&self, id: &str) -> Value {
        let mut items = self.table.items().into_iter();
        items.find(|item| item["id"]["S"] == id[..64]).unwrap()
    }

    /// Makes a task this much older.
    fn age(&self, id: &str, by: Duration) {
        self.table.change(&id[..64], |item| {
            let free_at: u64 = item["free_at"]["N"].as_str().unwrap().parse().unwrap();
            let free_at = free_at - u64::try_from(by.as_millis()).unwrap();
            item["free_at"]["N"] = free_at.to_string().into();
            let mut call = call_in(item);
            for time in [
                "/task/created_at",
                "/task/updated_at",
                "/state/running/until",
            ] {
                let seconds = &mut call.pointer_mut(time).unwrap()["secs_since_epoch"];
                *seconds = (seconds.as_u64().unwrap() - by.as_secs()).into();
            }
            item["call"]["S"] = call.to_string().into();
        });
    }

    /// Returns what tools have written: a call id and a text in each line.
    fn effects(&self) -> Vec<String> {
        let effects = fs::read_to_string(&self.effects).unwrap_or_default();
        effects.lines().map(str::to_owned).collect()
    }

    /// Returns the number of effects of a call.
    fn effects_of(&self, call_id: &str) -> usize {
        let start = format!("{call_id} ");
        let effects = self.effects().into_iter();
        effects.filter(|it| it.starts_with(&start)).count()
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

/// Returns what the item of a call says about the call.
fn call_in(item: &Value) -> Value {
    serde_json::from_str(item["call"]["S"].as_str().unwrap()).unwrap()
}

fn is_running(item: &Value) -> bool {
    call_in(item)["state"]["running"].is_object()
}

/// Returns the text of a result.
fn text_of(result: &Value) -> &str {
    let text = result["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{result}"))
}

/// Returns a result of `Long.Write` or `Long.Once`, as it is in a task that has ended.
fn assert_written(task: &Value, call_id: &str) {
    assert_eq!(task["status"], "completed", "{task}");
    let written = json!({"result": format!("written for {call_id}")});
    assert_eq!(task["result"]["structuredContent"], written, "{task}");
    assert_eq!(task["result"]["isError"], false, "{task}");
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
#[ignore = "needs what sam build makes; run tests/all"]
async fn a_waiting_call_is_unreadable_in_the_table_and_gone_after_its_start() {
    let tools = Tools::start().await;
    let mark = "Xmark-0123456789";
    let context = json!({
        "secrets": [{"id": "KEY", "value": format!("{mark}-secret")}],
        "authorization": [{"id": "mail", "token": format!("{mark}-token")}],
    });
    let input = json!({"text": format!("{mark}-input"), "after_ms": 1500});
    let body =
        json!({"tool_id": "Long.Write", "call_id": "sealed", "input": input, "context": context});
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
    tools.start_of(id).await;
    eventually("the tool has its effect", async || {
        (tools.effects_of("sealed") == 1).then_some(())
    })
    .await;
    assert!(tools.effects()[0].contains(mark));
    let running = tools.item(id);
    assert!(running.get("sealed").is_none() && is_running(&running));
    assert!(!has_text(&running, mark), "{running}");
    assert_eq!(started.await.unwrap(), NOTHING);
    let ended = tools.item(id);
    assert!(ended.get("sealed").is_none() && ended.get("outcome").is_some());
    assert!(!has_text(&ended, mark), "{ended}");
    let answer = answer.await.unwrap().json();
    assert_eq!(answer["value"], "written for sealed", "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes; run tests/all"]
async fn a_task_is_cancelled_before_or_while_it_runs_and_not_after_its_end() {
    let tools = Tools::start().await;
    let never = tools.queue("", "Long_Write", json!({}), "never").await;
    let count = json!({"to": 80, "step_ms": 100});
    let counting = tools.queue("", "Long_Count", count, "counting").await;
    // Without progress, it looks less often whether the task is cancelled.
    let quiet = json!({"to": 3, "step_ms": 2500});
    let quiet = tools.queue("", "Long_Count", quiet, "quiet").await;
    let done = tools.queue("", "Long_Write", json!({}), "done").await;

    tools.cancel(&never.id).await;
    assert_eq!(tools.get(&never.id).await["status"], "cancelled");
    assert_eq!(tools.function.invoke(&never.event, None).await, NOTHING);

    assert_eq!(tools.function.invoke(&done.event, None).await, NOTHING);
    tools.cancel(&done.id).await;
    assert_written(&tools.get(&done.id).await, "done");

    let running = [&counting, &quiet].map(|it| (it, tools.deliver(&it.event)));
    for (task, _) in &running {
        tools.start_of(&task.id).await;
        tools.cancel(&task.id).await;
        // A second time, as clients do that got no answer.
        tools.cancel(&task.id).await;
    }
    let begun = Instant::now();
    for (task, started) in running {
        let ended = tools.end_of(&task.id).await;
        assert_eq!(ended["status"], "cancelled", "{ended}");
        assert!(ended.get("result").is_none(), "{ended}");
        assert_eq!(started.await.unwrap(), NOTHING);
    }
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(tools.get(&never.id).await["status"], "cancelled");
    assert_eq!(tools.effects(), ["done "]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes; run tests/all"]
async fn without_a_shared_table_a_background_tool_runs_in_its_request() {
    for (setting, name) in [("memory", "memory"), ("none", "no store")] {
        let tools = Tools::with(&[("TOOLS_IDEMPOTENCY", setting)]).await;
        let discovered = tools.mcp("", "server/discover", json!({}), true).await;
        let capabilities = discovered.json()["result"]["capabilities"].take();
        assert!(capabilities["extensions"][TASKS].is_null(), "{name}");
        // Longer than the time after which a client would get a task.
        let input = json!({"before_ms": 2300});
        let result = tools.call("", "Long_Write", input, "direct").await;
        assert_eq!(result["resultType"], "complete", "{name}: {result}");
        let written = json!({"result": "written for direct"});
        assert_eq!(result["structuredContent"], written, "{name}: {result}");
        let body = json!({"tool_id": "Long.Count", "input": {}});
        let counted = tools.post("/tools/call", &[], &body).await.json();
        assert_eq!(counted["value"], 3, "{name}: {counted}");
        assert!(tools.function.invocations().is_empty() && tools.table.is_empty());
        assert_eq!(tools.effects_of("direct"), 1);
    }
}
