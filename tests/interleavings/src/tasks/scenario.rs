//! Calls of one tool in the background, and whatever arrives for them.

use std::{hash::Hasher, sync::Arc, time::Duration};

use lambda_tools::{
    Context, Failure, Server, Toolkit,
    idempotency::Idempotency,
    store::{Over, Record},
    testing::LambdaFunction,
};
use serde_json::{Value, json};
use test_support::mcp::MODERN;

use super::ledger::Ledger;
use crate::{
    Call, Scenario, Setup,
    execution::Execution,
    network::{Connection, Network},
    process::function,
    refreshes::grant::send,
    service,
    shared::Shared,
};

/// The time limit of the tool.
const LIMIT: Duration = Duration::from_secs(4);

/// The time after which every task is over.
const FAR: Duration = Duration::from_mins(6);

/// What arrives at a process.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// A call with this call id, of a client that takes tasks.
    Call(usize),
    /// The event with this number, which starts a task.
    Work(usize),
    /// A question about the task with this number among those that a client knows.
    Get(usize),
    /// A request to cancel it.
    Cancel(usize),
}

/// Steps of calls that become tasks.
pub(super) struct Tasks {
    pub(super) setup: Setup,
    is_at_most_once: bool,
    steps: Vec<Step>,
    /// The function that each step is sent to, so that its tool knows the step.
    functions: Vec<Arc<LambdaFunction>>,
    ledger: Shared<Ledger>,
}

/// Runs the tool in its process, for the event that arrives in a step.
async fn act(
    step: usize,
    event: usize,
    cx: Context,
    process: Connection,
    ledger: Shared<Ledger>,
) -> Result<Value, Failure> {
    let begin = |network: &mut Network| ledger.with(|it| it.begin(step, event, network));
    let number = match process.network.with(begin) {
        Ok(number) => number,
        Err(rule) => {
            process.network.violate(rule);
            return Ok(Value::Null);
        }
    };
    let note = |result| ledger.with(|ledger| ledger.runs[number].result = Some(result));
    let result = service::run(number, &process, note).await;
    let is_cancelled = cx.is_cancelled();
    let ends = ledger.with(|ledger| ledger.stop(number, is_cancelled));
    process.network.check(ends);
    if is_cancelled {
        return Err(Failure::new(number.to_string()));
    }
    result
}

/// Sends a request of a client that takes tasks.
async fn request(function: &LambdaFunction, method: &str, mut params: Value) -> Value {
    let extension = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = extension;
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = MODERN.into();
    let name = [&params["name"], &params["taskId"]].into_iter();
    let name = name.clone().find(|it| it.is_string());
    let headers = json!({"content-type": "application/json", "mcp-protocol-version": MODERN,
                         "mcp-method": method, "mcp-name": name});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let response = send(function, "POST", "/mcp", &headers, &body.to_string()).await;
    serde_json::from_str(response["body"].as_str().unwrap()).unwrap()
}

impl Tasks {
    /// Steps in processes, each of which has a clock that is ahead by some milliseconds.
    pub(super) fn new(is_at_most_once: bool, leads: &[u64], steps: &[(Step, usize)]) -> Self {
        Self::waiting(is_at_most_once, leads, steps, Duration::ZERO)
    }

    /// The same, with calls that wait for their outcomes for this time.
    pub(super) fn waiting(
        is_at_most_once: bool,
        leads: &[u64],
        steps: &[(Step, usize)],
        task_after: Duration,
    ) -> Self {
        let setup = Setup::new(leads, steps.iter().map(|(_, process)| *process).collect());
        let mut steps: Vec<_> = steps.iter().map(|(step, _)| *step).collect();
        let calls = steps.iter().filter(|it| matches!(it, Step::Call(_)));
        let calls: Vec<_> = calls.copied().collect();
        // After the end: questions about all tasks, a repeated call, its event, and more questions.
        let all = 0..=calls.len();
        let asked = all.clone().map(Step::Get);
        steps.extend(asked.clone());
        steps.push(calls[0]);
        steps.extend(all.map(Step::Work));
        steps.extend(asked);
        let ledger = Shared::<Ledger>::default();
        let function_of = |(number, step): (usize, &Step)| {
            let process = setup.connection(number);
            let (step, connection, shared) = (*step, process.clone(), ledger.clone());
            let run = move |_: Value, cx: Context| {
                let Step::Work(event) = step else {
                    unreachable!("a tool in the background runs for an event");
                };
                act(number, event, cx, connection.clone(), shared.clone())
            };
            let tool = service::tool(is_at_most_once, run)
                .background()
                .timeout(LIMIT);
            let idempotency = Idempotency::in_store(process.clone());
            let server = Server::new(Toolkit::new([tool]).unwrap());
            let server = server.idempotency(idempotency).task_after(task_after);
            let (ledger, sender) = (ledger.clone(), process.clone());
            let function = function(server, process);
            function.on_task(move |event| {
                let Step::Call(call) = step else {
                    unreachable!("only calls become tasks");
                };
                let sent_at = sender.wall();
                ledger.with(|ledger| ledger.send(call, event, sent_at));
            });
            function
        };
        Self {
            is_at_most_once,
            functions: steps.iter().enumerate().map(function_of).collect(),
            setup,
            steps,
            ledger,
        }
    }
}

impl Scenario for Tasks {
    fn setup(&self) -> &Setup {
        &self.setup
    }

    fn reset(&self) {
        let is_at_most_once = self.is_at_most_once;
        self.ledger.with(|it| *it = Ledger::new(is_at_most_once));
    }

    fn call(&self, number: usize) -> Call {
        let function = Arc::clone(&self.functions[number]);
        let (step, ledger) = (self.steps[number], self.ledger.clone());
        let process = self.setup.connection(number);
        Box::pin(async move {
            let kept = match step {
                Step::Call(call) => {
                    let meta = json!({"lambda-tools/call-id": call.to_string()});
                    let params = json!({"name": "Act_Do", "arguments": {}, "_meta": meta});
                    let response = request(&function, "tools/call", params).await;
                    let is_disturbed = process.is_disturbed();
                    ledger.with(|it| it.answer(call, &response, is_disturbed))
                }
                Step::Work(event) => {
                    let now = process.wall();
                    if let Some(text) = ledger.with(|it| it.arrive(number, event, now)) {
                        // Nobody waits for the answer.
                        let _ = function.invoke(&text).await;
                    }
                    return;
                }
                Step::Get(task) | Step::Cancel(task) => {
                    let Some((id, had_ended)) = ledger.with(|it| it.known(task)) else {
                        return;
                    };
                    let cancels = matches!(step, Step::Cancel(_));
                    if cancels {
                        ledger.with(|it| it.cancel(&id));
                    }
                    let method = if cancels { "tasks/cancel" } else { "tasks/get" };
                    let response = request(&function, method, json!({"taskId": id})).await;
                    let is_disturbed = process.is_disturbed();
                    ledger.with(|it| match step {
                        Step::Cancel(_) => it.cancelled(&id, &response, is_disturbed),
                        _ => it.status(&id, had_ended, &response, is_disturbed),
                    })
                }
            };
            process.network.check(kept);
        })
    }

    fn acted(&self, run: usize) {
        let acted = self.ledger.with(|ledger| ledger.act(run));
        self.setup.network.check(acted);
    }

    fn written(&self, id: &str, record: &Record, _: Over) {
        let written = self.ledger.with(|ledger| ledger.write(id, record));
        self.setup.network.check(written);
    }

    fn read(&self, process: usize, id: &str, record: &Record) {
        let ended = self.setup.network.with(|network| network.ended.clone());
        let mut steps = self.setup.calls.iter().zip(&self.steps).enumerate();
        // Other steps of the process would read the record for themselves.
        let is_other = |(number, (of, step)): (usize, (&usize, &Step))| {
            let is_over = ended.contains(&number) || matches!(step, Step::Work(_));
            *of == process && !is_over
        };
        if process < self.setup.leads.len() && !steps.any(is_other) {
            self.ledger.with(|ledger| ledger.read(id, record));
        }
    }

    fn digest(&self, state: &mut dyn Hasher) {
        self.ledger.with(|ledger| ledger.hash(state));
    }

    fn end(&self, execution: &mut Execution<'_>) -> Result<(), String> {
        execution.pass(FAR);
        for number in self.setup.calls.len()..self.steps.len() {
            execution.start(number);
            execution.drain()?;
            if let Step::Get(task) = self.steps[number] {
                self.ledger.with(|ledger| ledger.check_ended(task))?;
            }
        }
        Ok(())
    }
}
