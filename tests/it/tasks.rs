//! Tasks: what `docs/calls.md` promises, in one process.

use std::{
    sync::{Arc, Mutex, atomic::AtomicUsize, atomic::Ordering::SeqCst},
    time::{Duration, Instant},
};

use lambda_tools::{
    ApiKeys, Context, EventKind, Failure, Server, Tool, Toolkit,
    idempotency::Idempotency,
    quotas::Quota,
    secrets::Secrets,
    serve,
    testing::{ExpectedResponse, LambdaFunction},
};
use serde_json::{Value, json};
use test_support::{Running, assert_program, mcp::modern, program};

use crate::support::post;

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// The keys of two callers.
const A: &str = "the-key-of-caller-a";
const B: &str = "the-key-of-caller-b";

/// What tools have done: the number of runs, and the trace id and the caller that the last one saw.
#[derive(Default)]
struct Effects {
    runs: AtomicUsize,
    seen: Mutex<(Option<String>, String)>,
}

/// Returns tools in the background, whose behaviour is chosen by their input.
fn tools(effects: &Arc<Effects>) -> Vec<Tool> {
    let tool = |id: &'static str| {
        let effects = Arc::clone(effects);
        let act = move |input: Value, cx: Context| {
            let effects = Arc::clone(&effects);
            async move {
                effects.runs.fetch_add(1, SeqCst);
                let trace_id = cx.trace_id().map(str::to_owned);
                *effects.seen.lock().unwrap() = (trace_id, cx.caller().to_string());
                match input["then"].as_str() {
                    Some("fail") => Err(Failure::new("no")),
                    Some("panic") => panic!("on request"),
                    Some("retry") => Err(Failure::new("later").retry()),
                    Some(then @ ("report" | "long")) => {
                        match then {
                            "report" => cx.progress(3_u32, 10.0, ""),
                            _ => cx.progress(1_u32, None, "é".repeat(200)),
                        }
                        tokio::time::sleep(Duration::from_millis(1_500)).await;
                        Ok(json!("reported"))
                    }
                    Some("wait") => {
                        for _ in 0..600 {
                            if cx.is_cancelled() {
                                return Err(Failure::new("cancelled"));
                            }
                            tokio::time::sleep(Duration::from_millis(50)).await;
                        }
                        Ok(json!("never told"))
                    }
                    _ => Ok(json!("done")),
                }
            }
        };
        let input = json!({"type": "object", "properties": {
            "then": {"type": "string", "description": "The behaviour."}}});
        Tool::dynamic(id, "Acts.", input, json!({}), act).background()
    };
    vec![
        tool("Act.Do@1.0.0"),
        tool("Act.Once@1.0.0").run_at_most_once(),
        tool("Act.Minute@1.0.0").timeout(Duration::from_mins(1)),
        tool("Act.Day@1.0.0").timeout(Duration::from_hours(48)),
        tool("Act.Always@1.0.0").requires_task(),
        tool("Act.Same@1.0.0").idempotent(),
    ]
}

fn server(effects: &Arc<Effects>) -> Server {
    let keys = Secrets::fixed([("A", A), ("B", B)]);
    Server::new(Toolkit::new(tools(effects)).unwrap())
        .auth(ApiKeys::with_ids(["A", "B"]))
        .secrets(keys)
        .idempotency(Idempotency::in_memory())
        .tasks(true)
        .task_after(Duration::ZERO)
}

/// Returns the headers and the body of a request of an MCP client that takes tasks.
fn request(key: &str, method: &str, params: Value) -> (Vec<(&'static str, String)>, Value) {
    let (mut headers, body) = modern(method, params, json!({"extensions": {TASKS: {}}}));
    headers.push(("authorization", format!("Bearer {key}")));
    (headers, body)
}

/// A function, and the events with which it would invoke itself.
struct Fixture {
    function: Arc<LambdaFunction>,
    events: Arc<Mutex<Vec<String>>>,
    effects: Arc<Effects>,
}

impl Fixture {
    fn new() -> Self {
        Self::with(|server| server)
    }

    fn with(change: impl Fn(Server) -> Server) -> Self {
        let effects = Arc::<Effects>::default();
        let events = Arc::<Mutex<Vec<String>>>::default();
        let queue = Arc::clone(&events);
        let server = change(server(&effects));
        let server = server.on_task(move |event| queue.lock().unwrap().push(event));
        let function = Arc::new(LambdaFunction::new(server));
        Self {
            function,
            events,
            effects,
        }
    }

    async fn send(&self, key: &str, method: &str, params: Value) -> Value {
        let (headers, body) = request(key, method, params);
        self.post(&headers, &body).await
    }

    async fn post(&self, headers: &[(&str, String)], body: &Value) -> Value {
        let headers = headers.iter().map(|(name, value)| (*name, &**value));
        let headers: Vec<_> = headers.collect();
        post(&self.function, "/mcp", &headers, body).await.body
    }

    /// Calls a tool over OXP.
    async fn call_oxp(&self, body: &Value) -> ExpectedResponse {
        let key = format!("Bearer {A}");
        let headers = [("authorization", &*key)];
        post(&self.function, "/tools/call", &headers, body).await
    }

    /// Calls a tool, and returns the result.
    async fn call(&self, tool: &str, then: &str, call_id: &str) -> Value {
        let meta = json!({"lambda-tools/call-id": call_id});
        let params = json!({"name": tool, "arguments": {"then": then}, "_meta": meta});
        self.send(A, "tools/call", params).await["result"].take()
    }

    /// Calls a tool, and returns the id of its task.
    async fn task(&self, tool: &str, then: &str, call_id: &str) -> String {
        let task = self.call(tool, then, call_id).await;
        assert_eq!(task["status"], "working", "{task}");
        task["taskId"].as_str().unwrap().to_owned()
    }

    async fn get(&self, id: &str) -> Value {
        self.send(A, "tasks/get", json!({"taskId": id})).await["result"].take()
    }

    async fn cancel(&self, id: &str) {
        let answer = self.send(A, "tasks/cancel", json!({"taskId": id})).await;
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    }

    /// Delivers the last event.
    async fn work(&self) {
        let event = self.events.lock().unwrap().last().unwrap().clone();
        // Nobody waits for the answer.
        let _ = self.function.invoke(&event).await;
    }

    fn runs(&self) -> usize {
        self.effects.runs.load(SeqCst)
    }
}

async fn wait_until(condition: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it does not happen");
}

#[tokio::test]
async fn an_event_that_comes_too_late_does_nothing_although_nobody_has_looked() {
    let queue = Duration::from_mins(5);
    let ms = Duration::from_millis(1);
    for (age, runs, status) in [(queue, 1, "completed"), (queue + ms, 0, "failed")] {
        let fixture = Fixture::new();
        let id = fixture.task("Act_Once", "", "late").await;
        fixture.function.advance(age);
        fixture.work().await;
        assert_eq!(fixture.runs(), runs, "{age:?}");
        // Clocks may differ by two seconds.
        fixture.function.advance(Duration::from_millis(1_998));
        if runs == 0 {
            assert_eq!(fixture.get(&id).await["status"], "working");
        }
        fixture.function.advance(ms);
        let task = fixture.get(&id).await;
        assert_eq!(task["status"], status, "{age:?} {task}");
        let message = task["error"]["message"].as_str().unwrap_or_default();
        let is_unstarted = message.starts_with("The task did not start in time, and nothing");
        assert_eq!(is_unstarted, runs == 0, "{task}");
        // Nothing was run, so the call may be repeated.
        let again = fixture.call("Act_Once", "", "late").await;
        assert_eq!(again["status"] == "working", runs == 0, "{again}");
    }
}

/// Five minutes in the queue, the tool's own time or 15 minutes, and an hour.
#[tokio::test]
async fn the_times_of_a_task_are_those_of_the_page() {
    for (tool, minutes) in [
        ("Act_Do", 5 + 15 + 60),
        ("Act_Minute", 5 + 1 + 60),
        // No call may run for longer than a day.
        ("Act_Day", 5 + 24 * 60 + 60),
    ] {
        let task = Fixture::new().call(tool, "", "ttl").await;
        assert_eq!(task["ttlMs"], minutes * 60 * 1_000, "{tool} {task}");
    }
    let fixture = Fixture::new();
    let id = fixture.task("Act_Do", "", "times").await;
    let mut now = 0;
    for (age, interval) in [(0, 1_000), (1_000, 1_000), (4_000, 4_000), (90_000, 10_000)] {
        fixture.function.advance(Duration::from_millis(age - now));
        now = age;
        let task = fixture.get(&id).await;
        assert_eq!(task["pollIntervalMs"], interval, "{age} {task}");
        assert_eq!(task["createdAt"], "2023-10-05T12:00:00Z", "{task}");
    }
    let fixture = Fixture::new();
    let id = fixture.task("Act_Do", "", "times").await;
    fixture.work().await;
    for (age, is_kept) in [(80 * 60 - 1, true), (1, false)] {
        fixture.function.advance(Duration::from_secs(age));
        assert_eq!(fixture.get(&id).await.is_object(), is_kept);
    }
}

#[tokio::test]
async fn a_task_starts_once_and_a_repeated_call_gets_what_became_of_it() {
    for (tool, then, status, reruns) in [
        ("Act_Do", "", "completed", false),
        ("Act_Do", "retry", "completed", true),
        ("Act_Do", "panic", "failed", true),
        ("Act_Once", "panic", "failed", false),
        // Elsewhere, calls of idempotent tools are not recorded.
        ("Act_Same", "", "completed", false),
    ] {
        let fixture = Fixture::new();
        let id = fixture.task(tool, then, "once").await;
        assert_eq!(fixture.task(tool, then, "once").await, id, "{then}");
        assert_eq!(fixture.events.lock().unwrap().len(), 1);
        fixture.work().await;
        // A second delivery is no error.
        let event = fixture.events.lock().unwrap()[0].clone();
        assert_eq!(fixture.function.invoke(&event).await.unwrap(), Value::Null);
        assert_eq!(fixture.runs(), 1, "{tool} {then}");
        let task = fixture.get(&id).await;
        assert_eq!(task["status"], status, "{tool} {then} {task}");
        if status == "completed" {
            assert_eq!(task["result"]["isError"], !then.is_empty(), "{task}");
        }
        let again = fixture.call(tool, then, "once").await;
        let is_new = again["status"] == "working";
        assert_eq!(is_new, reruns, "{tool} {then} {again}");
    }
}

#[tokio::test]
async fn the_last_report_is_the_status_message_of_a_task() {
    for (then, message) in [
        ("report", "3 of 10".to_owned()),
        ("long", format!("{}…", "é".repeat(128))),
    ] {
        let fixture = Fixture::new();
        let id = fixture.task("Act_Do", then, "message").await;
        fixture.work().await;
        let task = fixture.get(&id).await;
        assert_eq!(task["statusMessage"], message, "{task}");
        assert_eq!(task["status"], "completed", "{task}");
    }
}

#[tokio::test]
async fn only_the_caller_of_a_task_sees_or_cancels_it() {
    let fixture = Fixture::new();
    let id = fixture.task("Act_Do", "", "own").await;
    let mut other = id.clone();
    let last = if id.ends_with('1') { "2" } else { "1" };
    other.replace_range(id.len() - 1.., last);
    for (key, id) in [(B, &*id), (A, &*other), (A, &id[..64]), (A, "x")] {
        for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
            let answer = fixture.send(key, method, json!({"taskId": id})).await;
            assert_eq!(answer["error"]["code"], -32602, "{method} {answer}");
        }
    }
    fixture.work().await;
    assert_eq!(fixture.runs(), 1);
}

#[tokio::test]
async fn only_the_event_of_the_function_itself_starts_a_task() {
    let kinds = [EventKind::HttpApi, EventKind::Direct, EventKind::AgentCore];
    let fixture = Fixture::with(|server| server.events(kinds));
    fixture.task("Act_Do", "", "first").await;
    fixture.task("Act_Do", "", "second").await;
    let events = fixture.events.lock().unwrap().clone();
    let parsed = |number: usize| serde_json::from_str::<Value>(&events[number]).unwrap();
    let [own, other] = [0, 1].map(|number| parsed(number)["lambda_tools"].clone());
    for forged in [
        json!({"task": own["task"], "code": other["code"]}),
        json!({"task": own["task"], "code": ""}),
        json!({"task": own["task"]}),
        json!({"task": "é".repeat(64), "code": own["code"]}),
        json!({"code": own["code"]}),
        own["task"].clone(),
        Value::Null,
    ] {
        let event = json!({"lambda_tools": forged}).to_string();
        let error = fixture.function.invoke(&event).await.unwrap_err();
        assert!(error.to_string().contains("belongs to no task"), "{error}");
    }
    // As part of a call, or with what only other invokers send.
    let event = &*events[0];
    let beside = json!({"tool_id": "Act.No", "lambda_tools": own}).to_string();
    let inside = json!({"tool_id": "Act.No", "input": parsed(0)}).to_string();
    let of_gateway = r#"{"custom": {"bedrockAgentCoreToolName": "t___Act_No"}}"#;
    for (event, context) in [
        (event, r#"{"custom": {"a": "b"}}"#),
        (event, r#"{"client": {}}"#),
        (event, of_gateway),
        (&*beside, ""),
        (&*inside, ""),
        (&json!({"Records": [], "lambda_tools": own}).to_string(), ""),
    ] {
        let _ = fixture.function.invoke_with_context(event, context).await;
        assert_eq!(fixture.runs(), 0, "{event} {context}");
    }
    fixture.function.invoke(event).await.unwrap();
    assert_eq!(fixture.runs(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_silent_task_that_is_cancelled_is_told_within_its_limit() {
    let fixture = Arc::new(Fixture::new());
    let id = fixture.task("Act_Do", "wait", "silent").await;
    let worker = Arc::clone(&fixture);
    let work = tokio::spawn(async move { worker.work().await });
    wait_until(|| fixture.runs() > 0).await;
    fixture.cancel(&id).await;
    let begun = Instant::now();
    assert_eq!(fixture.get(&id).await["status"], "working");
    work.await.unwrap();
    // Two seconds, and what a busy machine takes.
    let elapsed = begun.elapsed();
    assert!(elapsed < Duration::from_millis(3_500), "{elapsed:?}");
    assert_eq!(fixture.get(&id).await["status"], "cancelled");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a program that tests start"]
async fn tasks_program_of_tests() {
    assert_program();
    serve(server(&Arc::default())).await.unwrap();
}

/// A local server with tasks, whose log is JSON.
struct Local {
    running: Running,
    url: String,
    client: reqwest::Client,
}

impl Local {
    fn start() -> Self {
        let mut command = program("tasks::tasks_program_of_tests");
        command.envs([("TOOLS_METRICS", "cloudwatch"), ("NO_COLOR", "1")]);
        let (running, url) = Running::serving(&mut command);
        Self {
            running,
            url,
            client: reqwest::Client::new(),
        }
    }

    async fn send(&self, key: &str, method: &str, params: Value, more: &[(&str, &str)]) -> Value {
        let (headers, body) = request(key, method, params);
        let mut request = self.client.post(format!("{}/mcp", self.url));
        let headers = headers.iter().map(|(name, value)| (*name, &**value));
        for (name, value) in headers.chain(more.iter().copied()) {
            request = request.header(name, value);
        }
        let response = request.body(body.to_string()).send().await.unwrap();
        serde_json::from_str(&response.text().await.unwrap()).unwrap()
    }

    async fn task(&self, key: &str, then: &str, more: &[(&str, &str)]) -> String {
        let params = json!({"name": "Act_Do", "arguments": {"then": then}});
        let answer = self.send(key, "tools/call", params, more).await;
        let id = answer["result"]["taskId"].as_str();
        id.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    async fn get(&self, key: &str, id: &str) -> Value {
        let params = json!({"taskId": id});
        self.send(key, "tasks/get", params, &[]).await["result"].take()
    }

    async fn end_of(&self, key: &str, id: &str, seconds: u64) -> Option<Value> {
        for _ in 0..seconds * 10 {
            let task = self.get(key, id).await;
            if task["status"] != "working" {
                return Some(task);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        None
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tasks_of_one_caller_do_not_stop_those_of_others() {
    let local = Local::start();
    for _ in 0..70 {
        local.task(A, "wait", &[]).await;
    }
    let own = local.task(A, "", &[]).await;
    let other = local.task(B, "", &[]).await;
    let task = local.end_of(B, &other, 3).await.expect("it is not stopped");
    assert_eq!(task["status"], "completed", "{task}");
    // The caller's own wait.
    assert_eq!(local.get(A, &own).await["status"], "working");
}

/// Returns the value of a field in a line of text.
fn field(line: &str, name: &str) -> Option<String> {
    let (_, rest) = line.split_once(&format!(" {name}=\""))?;
    Some(rest.split('"').next().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_about_tasks_are_logged_and_counted() {
    let local = Local::start();
    // The work belongs to the trace of the caller.
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let parent = format!("00-{trace}-b7ad6b7169203331-01");
    let id = local.task(A, "", &[("traceparent", &parent)]).await;
    let line = local.running.line_with("dialect=\"task\"", 5);
    assert_eq!(field(&line, "trace_id").as_deref(), Some(trace), "{line}");
    local.end_of(A, &id, 5).await.unwrap();
    local.running.line_with("tasks/get", 5);
    for (key, method, outcome) in [
        (A, "tasks/get", "success"),
        (A, "tasks/update", "success"),
        (A, "tasks/cancel", "success"),
        (B, "tasks/get", "rejection"),
        (B, "tasks/cancel", "rejection"),
    ] {
        local.running.lines();
        local.send(key, method, json!({"taskId": id}), &[]).await;
        let line = local.running.line_with(method, 5);
        let is_rejected = outcome == "rejection";
        let caller = if key == A { "key A" } else { "key B" };
        for (name, value) in [
            ("outcome", Some(outcome)),
            ("caller", Some(caller)),
            ("tool", (!is_rejected).then_some("Act.Do")),
            ("reason", is_rejected.then_some("malformed")),
        ] {
            assert_eq!(field(&line, name).as_deref(), value, "{line}");
        }
        let metrics: Value = serde_json::from_str(&local.running.line_with("_aws", 5)).unwrap();
        let counted = if is_rejected { "none" } else { "Act.Do" };
        assert_eq!(metrics["Calls"], 1);
        assert_eq!(metrics["tool"], counted);
        assert_eq!(metrics["Rejections"] == 1, is_rejected, "{metrics}");
    }
}

#[tokio::test]
async fn a_tool_in_the_background_sees_the_trace_id_of_its_caller() {
    let fixture = Arc::new(Fixture::new());
    let body = json!({"tool_id": "Act.Do", "trace_id": "order 66", "input": {}});
    let worker = Arc::clone(&fixture);
    let call = tokio::spawn(async move { worker.call_oxp(&body).await });
    wait_until(|| !fixture.events.lock().unwrap().is_empty()).await;
    fixture.work().await;
    let response = call.await.unwrap();
    assert_eq!(response.body["value"], "done", "{response:?}");
    let seen = fixture.effects.seen.lock().unwrap().clone();
    assert_eq!(seen, (Some("order 66".into()), "key A".into()));
}

#[tokio::test]
async fn a_tool_that_requires_a_task_does_not_run_without_one() {
    let fixture = Fixture::new();
    let body = json!({"tool_id": "Act.Always", "input": {}});
    let response = fixture.call_oxp(&body).await;
    assert_eq!(response.status, 400, "{response:?}");
    // Nor for clients of MCP without tasks.
    let params = json!({"name": "Act_Always", "arguments": {}});
    let get = json!({"taskId": "1"});
    for (method, params) in [("tools/call", params), ("tasks/get", get)] {
        let (headers, mut body) = request(A, method, params);
        body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        let error = fixture.post(&headers, &body).await["error"].take();
        assert_eq!(error["code"], -32021, "{error}");
        let required = json!({"extensions": {TASKS: {}}});
        assert_eq!(error["data"]["requiredCapabilities"], required, "{error}");
    }
    assert!(fixture.events.lock().unwrap().is_empty());
    assert_eq!(fixture.runs(), 0);
    fixture.task("Act_Always", "", "task").await;
}

#[tokio::test]
async fn a_call_in_the_background_is_counted_once_when_it_is_handed_over() {
    let fixture = Fixture::with(|server| server.quota(Quota::per_day(2)));
    for call_id in ["first", "second"] {
        fixture.task("Act_Do", "", call_id).await;
        fixture.work().await;
    }
    assert_eq!(fixture.runs(), 2);
    let rejected = fixture.call("Act_Do", "", "third").await;
    assert_eq!(rejected["isError"], true, "{rejected}");
    assert_eq!(fixture.events.lock().unwrap().len(), 2);
    // Repetitions of those that have run get their outcomes.
    let again = fixture.call("Act_Do", "", "first").await;
    assert_eq!(again["isError"], false, "{again}");
}
