//! Calls of one tool in the background, and whatever arrives for them.

use std::{hash::Hasher, sync::Arc, time::Duration};

use lambda_tools::{
    Context, Failure, Server, Tool, Toolkit,
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
    process::instant,
    refreshes::grant::send_with,
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

/// Runs the tool in its process, for an event.
async fn act(event: usize, process: Connection, ledger: Shared<Ledger>) -> Result<Value, Failure> {
    let begin = |network: &mut Network| ledger.with(|ledger| ledger.begin(event, network));
    let number = match process.network.with(begin) {
        Ok(number) => number,
        Err(rule) => {
            process.network.violate(rule);
            return Ok(Value::Null);
        }
    };
    let note = |result| ledger.with(|ledger| ledger.runs[number].result = Some(result));
    service::run(number, &process, note).await
}

fn tool(is_at_most_once: bool, step: Step, process: Connection, ledger: Shared<Ledger>) -> Tool {
    let act = move |_: Value, _: Context| {
        let Step::Work(event) = step else {
            unreachable!("a tool in the background runs for an event");
        };
        act(event, process.clone(), ledger.clone())
    };
    let object = json!({"type": "object", "properties": {}});
    let tool = Tool::dynamic("Act.Do@1.0.0", "Acts.", object, json!({}), act);
    let tool = tool.background().timeout(LIMIT);
    if is_at_most_once {
        tool.run_at_most_once()
    } else {
        tool
    }
}

/// Sends a request of a client that takes tasks.
async fn request(function: &LambdaFunction, method: &str, mut params: Value) -> Value {
    let extension = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = extension;
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = MODERN.into();
    let name = [&params["name"], &params["taskId"]].into_iter();
    let name = name.clone().find(|it| it.is_string());
    let headers = json!({
        "content-type": "application/json",
        "mcp-protocol-version": MODERN,
        "mcp-method": method,
        "mcp-name": name,
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let response = send_with(function, "POST", "/mcp", &headers, &body.to_string()).await;
    serde_json::from_str(response["body"].as_str().unwrap()).unwrap()
}

impl Tasks {
    /// Steps in processes, each of which has a clock that is ahead by some milliseconds.
    pub(super) fn new(is_at_most_once: bool, leads: &[u64], steps: &[(Step, usize)]) -> Self {
        Self::with(is_at_most_once, leads, steps, Duration::ZERO)
    }

    /// The same, with calls that wait for their outcomes for a moment.
    pub(super) fn waiting(is_at_most_once: bool, leads: &[u64], steps: &[(Step, usize)]) -> Self {
        Self::with(is_at_most_once, leads, steps, Duration::from_millis(50))
    }

    fn with(
        is_at_most_once: bool,
        leads: &[u64],
        steps: &[(Step, usize)],
        task_after: Duration,
    ) -> Self {
        let setup = Setup {
            leads: leads.to_vec(),
            calls: steps.iter().map(|(_, process)| *process).collect(),
            ..Setup::default()
        };
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
        let function = |(number, step): (usize, &Step)| {
            let process = setup.connection(number);
            let (connection, shared) = (process.clone(), ledger.clone());
            let tool = tool(is_at_most_once, *step, connection, shared);
            let idempotency = Idempotency::in_store(process.clone());
            let server = Server::new(Toolkit::new([tool]).unwrap());
            let server = server.idempotency(idempotency).task_after(task_after);
            let wall = move || process.wall();
            let function = LambdaFunction::with_clocks(server, wall, instant);
            let (step, ledger) = (*step, ledger.clone());
            function.on_task(move |event| {
                let Step::Call(call) = step else {
                    unreachable!("only calls become tasks");
                };
                ledger.with(|ledger| ledger.send(call, event));
            });
            Arc::new(function)
        };
        Self {
            is_at_most_once,
            functions: steps.iter().enumerate().map(function).collect(),
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
        self.ledger.with(|ledger| {
            *ledger = Ledger {
                is_at_most_once,
                ..Ledger::default()
            };
        });
    }

    fn call(&self, number: usize) -> Call {
        let function = Arc::clone(&self.functions[number]);
        let (step, ledger) = (self.steps[number], self.ledger.clone());
        let process = self.setup.connection(number);
        Box::pin(async move {
            let task = |number| ledger.with(|ledger| ledger.known(number));
            let (method, params, known) = match step {
                Step::Call(call) => {
                    let meta = json!({"lambda-tools/call-id": call.to_string()});
                    let params = json!({"name": "Act_Do", "arguments": {}, "_meta": meta});
                    ("tools/call", params, None)
                }
                Step::Work(event) => {
                    let text = |ledger: &mut Ledger| Some(ledger.events.get(event)?.text.clone());
                    if let Some(text) = ledger.with(text) {
                        // Nobody waits for the answer.
                        let _ = function.invoke(&text).await;
                    }
                    return;
                }
                Step::Get(number) | Step::Cancel(number) => {
                    let Some((id, had_ended)) = task(number) else {
                        return;
                    };
                    let params = json!({"taskId": id});
                    let method = match step {
                        Step::Get(_) => "tasks/get",
                        _ => "tasks/cancel",
                    };
                    (method, params, Some((id, had_ended)))
                }
            };
            if let (Step::Cancel(_), Some((id, _))) = (step, &known) {
                ledger.with(|it| it.cancel(id));
            }
            let response = request(&function, method, params).await;
            let number = process.process;
            let is_disturbed = |it: &mut Network| it.disturbed.contains(&number);
            let is_disturbed = process.network.with(is_disturbed);
            let rule = ledger.with(|ledger| match (step, known) {
                (Step::Call(call), _) => ledger.answer(call, &response, is_disturbed),
                (Step::Cancel(_), Some((id, _))) => ledger.cancelled(&id, &response, is_disturbed),
                (_, Some((id, had_ended))) => {
                    ledger.status(&id, had_ended, &response, is_disturbed)
                }
                _ => Ok(()),
            });
            if let Err(rule) = rule {
                process.network.violate(rule);
            }
        })
    }

    fn treatments(&self, request: &str) -> &'static [&'static str] {
        service::treatments(request)
    }

    fn serve(&self, _: usize, request: &str, treatment: &str) -> Result<String, String> {
        service::serve(request, treatment, |run| {
            if let Err(rule) = self.ledger.with(|ledger| ledger.act(run)) {
                self.setup.network.violate(rule);
            }
        })
    }

    fn written(&self, id: &str, record: &Record, _: Over) {
        self.ledger.with(|ledger| ledger.write(id, record));
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
