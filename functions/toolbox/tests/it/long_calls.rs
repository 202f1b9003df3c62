//! Tasks of the deployed binary: calls that go on in another invocation of the function.
//!
//! Nothing here takes the minutes that such calls are for: a tool that takes seconds outlasts a
//! function URL that gives up even earlier. What happens after minutes, the library's tests show. The
//! Inspector polls tasks in `long/pages_on_aws.rs`.

use std::{
    fs,
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
    function_url::{End, Function, Limits, Treatment},
    marks::Scratch,
    mcp::{LEGACY, modern},
};
use tokio::task::JoinHandle;

use crate::{
    clients::{json_of, node_script, python},
    support::faults,
};

const TABLE: &str = "calls";
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// The end of an event that has started a task, or comes too late for it.
const NOTHING: End = End::Response(Value::Null);

/// The function of long tools, whose instances share a table.
struct Tools {
    function: Function,
    table: DynamoDb,
    effects: Scratch,
}

impl Tools {
    async fn start() -> Arc<Self> {
        Self::with(&[]).await
    }

    /// Starts the function with further variables.
    async fn with(environment: &[(&str, &str)]) -> Arc<Self> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let effects = Scratch::new(&format!("long-calls-{number}"));
        let table = DynamoDb::start(TABLE).await;
        let url = table.url();
        let mut variables = CREDENTIALS.to_vec();
        variables.extend([
            ("LONG_TOOLS", "1"),
            ("TOOLS_TASKS", "yes"),
            ("EFFECTS", effects.0.to_str().unwrap()),
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
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.body(body.to_string()).send().await.unwrap();
        answer.json().await.unwrap()
    }

    /// Sends a request of an MCP client that takes tasks; returns the result.
    async fn mcp(&self, method: &str, params: Value) -> Value {
        let (headers, body) = modern(method, params, json!({"extensions": {TASKS: {}}}));
        let headers = headers.iter().map(|(name, value)| (*name, &**value));
        let headers: Vec<_> = headers.collect();
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
        let effects = fs::read_to_string(&self.effects.0).unwrap_or_default();
        let start = format!("{call_id} ");
        effects.lines().filter(|it| it.starts_with(&start)).count()
    }

    /// Returns the number of effects with this text.
    fn effects_with(&self, text: &str) -> usize {
        let effects = fs::read_to_string(&self.effects.0).unwrap_or_default();
        let end = format!(" {text}");
        effects.lines().filter(|it| it.ends_with(&end)).count()
    }

    /// Waits until a call has had its effect.
    async fn effect_of(&self, call_id: &str) {
        eventually("the tool has its effect", async || {
            (self.effects_of(call_id) > 0).then_some(())
        })
        .await;
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

/// Lets FastMCP's client call the tool that counts; returns what it has seen.
fn fastmcp(url: &str, input: &Value, options: &[&str]) -> Value {
    let mut command = python("tests/long_calls/task.py");
    command.args([&format!("{url}/mcp"), "Long_Count"]);
    command.args(["--arguments", &input.to_string()]);
    json_of(command.args(options))
}

/// In proportion, this is a tool of ten minutes behind an API that gives up after half a minute:
/// no request may take as long as the tool.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what tests/all builds, and a client of PyPI"]
async fn a_published_client_gets_the_outcome_of_a_tool_that_outlasts_every_request() {
    let tools = Tools::start().await;
    tools.function.limit(Limits {
        source: Duration::from_secs(3),
        ..Limits::default()
    });
    let url = tools.function.url.clone();
    let count = json!({"to": 10, "step_ms": 450});
    let panics = json!({"to": 5, "step_ms": 500, "end": "panic"});
    let programs = [
        (&count, &["--name"][..]),
        // The client by itself sends no Mcp-Name.
        (&count, &["--transparent"]),
        // Why clients need tasks.
        (&count, &["--plain"]),
        (&panics, &["--name"]),
        (&count, &["--name", "--cancel-after", "500"]),
    ];
    let programs = programs.map(|(input, options)| {
        let (url, input) = (url.clone(), input.clone());
        tokio::task::spawn_blocking(move || fastmcp(&url, &input, options))
    });
    let mut seen = Vec::new();
    for program in programs {
        seen.push(program.await.unwrap());
    }
    for (seen, sends_name) in [(&seen[0], true), (&seen[1], false)] {
        let counted = &seen["result"]["structuredContent"]["result"];
        assert_eq!((counted, &seen["names"]), (&json!(10), &json!(sends_name)));
        assert_eq!(
            seen["statuses"],
            json!(["working", "completed"]),
            "{seen:#}"
        );
        let message = seen["messages"][0].as_str().unwrap();
        assert!(message.starts_with("counted to "), "{message}");
    }
    for (seen, text) in [
        (&seen[2], ""),
        (&seen[3], "The tool stopped because of an internal error"),
        (&seen[4], "cancelled"),
    ] {
        let error = seen["error"].as_str();
        assert!(error.is_some_and(|it| it.contains(text)), "{seen:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what tests/all builds"]
async fn a_call_that_cannot_be_handed_over_is_rejected_and_may_be_repeated() {
    for (treatment, advice) in [
        (Treatment::Refuse(403, "AccessDeniedException"), ""),
        (
            Treatment::Refuse(429, "TooManyRequestsException"),
            " Try again in 1 second.",
        ),
        (Treatment::Ignore, " Try again in 1 second."),
    ] {
        let tools = Tools::start().await;
        tools.function.treat(treatment);
        let rejected = tools.call("Long_Once", json!({}), "refused").await;
        assert_eq!(rejected["isError"], true, "{treatment:?}: {rejected}");
        let text = format!("The tool server is temporarily unavailable.{advice}");
        assert_eq!(text_of(&rejected), text, "{treatment:?}");
        // An invocation without an answer may have been accepted, and come later.
        for event in tools.function.invocations() {
            tools.function.invoke(&event, None).await;
        }
        assert_eq!(tools.effects_of("refused"), 0, "{treatment:?}");
        tools.function.treat(Treatment::Deliver);
        let repeated = tools.call("Long_Once", json!({}), "refused").await;
        let written = json!({"result": "written for refused"});
        assert_eq!(repeated["structuredContent"], written, "{treatment:?}");
        assert_eq!(tools.effects_of("refused"), 1, "{treatment:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what tests/all builds"]
async fn a_call_whose_invocation_was_accepted_without_an_answer_goes_on() {
    let tools = Tools::start().await;
    tools.function.treat(Treatment::DeliverUnanswered);
    let input = json!({"after_ms": 4500});
    let answer = tools.call("Long_Once", input, "unanswered").await;
    // It must not say that nothing was run.
    assert_eq!(answer["resultType"], "task", "{answer}");
    let ended = tools.end_of(answer["taskId"].as_str().unwrap()).await;
    let written = json!({"result": "written for unanswered"});
    assert_eq!(ended["result"]["structuredContent"], written, "{ended}");
    assert_eq!(tools.effects_of("unanswered"), 1);
}

/// Calls a tool as a client of MCP that takes no tasks; returns the result.
async fn legacy_call(tools: &Tools, tool: &str, input: &Value, call_id: Option<&str>) -> Value {
    let mut params = json!({"name": tool, "arguments": input});
    if let Some(call_id) = call_id {
        params["_meta"] = json!({"lambda-tools/call-id": call_id});
    }
    let headers = [
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
        ("mcp-protocol-version", LEGACY),
    ];
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    tools.post("/mcp", &headers, &body).await["result"].take()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what tests/all builds"]
async fn a_call_that_outlasts_its_request_goes_on_and_its_repetition_gets_the_outcome() {
    let tools = Tools::start().await;
    tools.function.limit(Limits {
        request: Duration::from_secs(2),
        ..Limits::default()
    });
    let input = json!({"before_ms": 2500});
    let body = json!({"tool_id": "Long.Once", "call_id": "oxp", "input": input});
    let (oxp, mcp, without_id) = tokio::join!(
        tools.post("/tools/call", &[], &body),
        legacy_call(&tools, "Long_Once", &input, Some("mcp")),
        legacy_call(&tools, "Long_Once", &input, None),
    );
    let goes_on = "The work goes on: repeat the same call, with the same call id, to get its \
                   outcome.";
    let error = &oxp["error"];
    assert_eq!(error["message"], "The tool is still working", "{oxp}");
    assert_eq!(error["can_retry"], true, "{oxp}");
    assert_eq!(error["retry_after_ms"], 5000, "{oxp}");
    assert_eq!(error["additional_prompt_content"], goes_on, "{oxp}");
    assert!(text_of(&mcp).contains(goes_on), "{mcp}");
    assert!(text_of(&mcp).ends_with("Try again in 5 seconds."), "{mcp}");
    // Nobody can repeat it: a model cannot send an id, and would start the work again.
    let text = "The work goes on. Do not call the tool again for its effect.";
    assert!(text_of(&without_id).ends_with(text), "{without_id}");
    let repeated = eventually("the outcomes are there", async || {
        let oxp = tools.post("/tools/call", &[], &body).await["value"].take();
        let mcp = legacy_call(&tools, "Long_Once", &input, Some("mcp")).await;
        let mcp = mcp["structuredContent"]["result"].clone();
        (!oxp.is_null() && !mcp.is_null()).then_some([oxp, mcp])
    });
    assert_eq!(repeated.await, ["written for oxp", "written for mcp"]);
    assert_eq!((tools.effects_of("oxp"), tools.effects_of("mcp")), (1, 1));
}

/// A function URL gives up while the tool runs, and a client repeats the call, without an id: another
/// instance gets it, and waits for the first one.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what tests/all builds, and clients of PyPI and npm"]
async fn a_call_that_clients_repeat_after_a_504_has_one_effect() {
    let tools = Tools::start().await;
    tools.function.limit(Limits {
        source: Duration::from_secs(1),
        ..Limits::default()
    });
    for name in ["ai", "official", "python"] {
        let mut command = match name {
            "python" => python("tests/long_calls/repeat.py"),
            _ => node_script("repeat.mjs"),
        };
        if name != "python" {
            command.args(["--client", name]);
        }
        let input = json!({"before_ms": 1200, "text": name});
        command.args([&format!("{}/mcp", tools.function.url), "Long_Order"]);
        let seen = json_of(command.args(["--arguments", &input.to_string()]));
        // The AI SDK says nothing about the call that it has repeated.
        assert_eq!(seen["failed"] == 0, name == "ai", "{seen:#}");
        let text = text_of(&seen["result"]);
        assert!(text.starts_with("The same call was made "), "{seen:#}");
        assert_eq!(tools.effects_with(name), 1, "{seen:#}");
    }
}

/// Without a table for all instances, and with an input that is too large for an item in it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what tests/all builds"]
async fn a_call_that_cannot_be_kept_for_another_instance_runs_in_its_request() {
    for (store, input) in [
        // Longer than the time after which a client would get a task.
        ("memory", json!({"before_ms": 2300})),
        ("none", json!({"before_ms": 2300})),
        ("dynamodb", json!({"text": "x".repeat(420_000)})),
    ] {
        let tools = Tools::with(&[("TOOLS_IDEMPOTENCY", store)]).await;
        let discovered = tools.mcp("server/discover", json!({})).await;
        let has_tasks = discovered["capabilities"]["extensions"][TASKS].is_object();
        assert_eq!(has_tasks, store == "dynamodb", "{discovered}");
        let result = tools.call("Long_Once", input, "direct").await;
        let written = json!({"result": "written for direct"});
        assert_eq!(result["structuredContent"], written, "{store}: {result}");
        assert!(tools.function.invocations().is_empty(), "{store}");
        assert_eq!(tools.effects_of("direct"), 1, "{store}");
    }
}
