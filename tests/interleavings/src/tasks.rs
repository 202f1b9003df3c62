//! Searches the interleavings of calls that outlast their requests: of their hand-over, their start
//! and their work, of questions about them and of their cancellation, in processes that share a
//! store.

mod ledger;

use std::{hash::Hasher, sync::Arc, time::Duration};

use lambda_tools::{
    Context, Failure, Server, Toolkit,
    idempotency::Idempotency,
    store::{Over, Record},
    testing::LambdaFunction,
};
use serde_json::{Value, json};
use test_support::mcp::modern;

use self::{
    Step::{Call, Cancel, Get, Work},
    ledger::Ledger,
};
use crate::{
    Bounds, Scenario, Setup, act_tool, bounds,
    execution::{Execution, hold_both, violates},
    network::{Connection, Network, Shared},
    process::{function, send},
    served_run,
};

/// The time limit of the tool.
const LIMIT: Duration = Duration::from_secs(4);

/// The time after which every task is over.
const FAR: Duration = Duration::from_mins(6);

/// A request or an event that arrives at a process.
#[derive(Clone, Copy, Debug)]
enum Step {
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
struct Tasks {
    setup: Setup,
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
    let number = process.network.with(begin);
    let Ok(number) = number.map_err(|rule| process.network.violate(rule)) else {
        return Ok(Value::Null);
    };
    let note = |result| ledger.with(|ledger| ledger.runs[number].result = Some(result));
    let result = served_run(number, &process, note).await;
    let is_cancelled = cx.is_cancelled();
    let kept = ledger.with(|ledger| ledger.stop(number, is_cancelled));
    process.network.check(kept);
    if is_cancelled {
        return Err(Failure::new(number.to_string()));
    }
    result
}

/// Sends a request of a client that takes tasks.
async fn request(function: &LambdaFunction, method: &str, params: Value) -> Value {
    let extension = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let (headers, body) = modern(method, params, extension);
    let headers: Value = headers.into_iter().collect();
    let response = send(function, "POST", "/mcp", &headers, &body.to_string()).await;
    serde_json::from_str(response["body"].as_str().unwrap()).unwrap()
}

impl Tasks {
    /// Steps in processes, each of which has a clock that is ahead by some milliseconds. Calls become
    /// tasks at once, or after a moment in which they wait for their outcomes.
    fn new(is_at_most_once: bool, leads: [u64; 2], steps: &[(Step, usize)], waits: bool) -> Self {
        let task_after = Duration::from_millis(if waits { 50 } else { 0 });
        let setup = Setup::new(&leads, steps.iter().map(|(_, process)| *process).collect());
        let mut steps: Vec<_> = steps.iter().map(|(step, _)| *step).collect();
        let calls = steps.iter().filter(|it| matches!(it, Call(_)));
        let calls: Vec<_> = calls.copied().collect();
        // After the end: questions about all tasks, a repeated call, its event, and more questions.
        let all = 0..=calls.len();
        let asked = all.clone().map(Get);
        steps.extend(asked.clone());
        steps.push(calls[0]);
        steps.extend(all.map(Work));
        steps.extend(asked);
        let ledger = Shared::<Ledger>::default();
        let function_of = |(number, step): (usize, &Step)| {
            let process = setup.connection(number);
            let (step, connection, shared) = (*step, process.clone(), ledger.clone());
            let run = move |_: Value, cx: Context| {
                let Work(event) = step else {
                    unreachable!("a tool in the background runs for an event");
                };
                act(number, event, cx, connection.clone(), shared.clone())
            };
            let tool = act_tool(is_at_most_once, run).background().timeout(LIMIT);
            let idempotency = Idempotency::in_store(process.clone());
            let server = Server::new(Toolkit::new([tool]).unwrap());
            let server = server.idempotency(idempotency).task_after(task_after);
            let (ledger, sender) = (ledger.clone(), process.clone());
            let server = server.on_task(move |event| {
                let Call(call) = step else {
                    unreachable!("only calls become tasks");
                };
                let sent_at = sender.wall();
                ledger.with(|ledger| ledger.send(call, event, sent_at));
            });
            function(server, process)
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
        self.ledger.with(|ledger| {
            *ledger = Ledger::default();
            ledger.is_at_most_once = self.is_at_most_once;
        });
    }

    fn call(&self, number: usize) -> crate::Call {
        let function = Arc::clone(&self.functions[number]);
        let (step, ledger) = (self.steps[number], self.ledger.clone());
        let process = self.setup.connection(number);
        Box::pin(async move {
            let kept = match step {
                Call(call) => {
                    let meta = json!({"lambda-tools/call-id": call.to_string()});
                    let params = json!({"name": "Act_Do", "arguments": {}, "_meta": meta});
                    let response = request(&function, "tools/call", params).await;
                    let is_disturbed = process.is_disturbed();
                    ledger.with(|it| it.answer(call, &response, is_disturbed))
                }
                Work(event) => {
                    let now = process.wall();
                    if let Some(text) = ledger.with(|it| it.arrive(number, event, now)) {
                        // Nobody waits for the answer.
                        let _ = function.invoke(&text).await;
                    }
                    return;
                }
                Get(task) | Cancel(task) => {
                    let Some((id, had_ended)) = ledger.with(|it| it.known(task)) else {
                        return;
                    };
                    let cancels = matches!(step, Cancel(_));
                    if cancels {
                        ledger.with(|it| it.told(&id).is_cancelled = true);
                    }
                    let method = if cancels { "tasks/cancel" } else { "tasks/get" };
                    let response = request(&function, method, json!({"taskId": id})).await;
                    let is_disturbed = process.is_disturbed();
                    let is_done = response["result"]["resultType"] == "complete";
                    ledger.with(|it| match step {
                        Cancel(_) if is_done => Ok(()),
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
            *of == process && !ended.contains(&number) && !matches!(step, Work(_))
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
            if let Get(task) = self.steps[number] {
                self.ledger.with(|ledger| ledger.check_ended(task))?;
            }
        }
        Ok(())
    }
}

#[track_caller]
fn hold(name: &str, leads: [u64; 2], steps: &[(Step, usize)], bounds: Bounds) {
    let tasks = |policy| Tasks::new(policy, leads, steps, false);
    hold_both(&format!("tasks, {name}"), tasks, bounds);
}

/// The clock of the second process is ahead.
const AHEAD: [u64; 2] = [0, 2000];

/// The event arrives twice, in the process of the call and in another one. A step for which it is too
/// early does nothing: so the event may also arrive once or never. After some time, it is too late.
#[test]
fn events_that_arrive_twice_or_late() {
    let steps = [(Call(0), 0), (Work(0), 0), (Work(0), 1)];
    for leads in [AHEAD, [2000, 0]] {
        hold("twice", leads, &steps, bounds(1, 0, &[]));
        hold("twice, late", leads, &steps, bounds(0, 1, &[3500, 302_500]));
    }
}

/// The client asks all the time, also in a process whose clock is ahead, while the worker is slow.
#[test]
fn statuses_that_do_not_change_back() {
    let steps = [(Call(0), 0), (Work(0), 0), (Get(0), 1)];
    hold("asked", AHEAD, &steps, bounds(0, 2, &[5500]));
    hold("asked, late", AHEAD, &steps, bounds(0, 2, &[151_500]));
}

/// Before the task starts, or while it runs: it is told some time later.
#[test]
fn tasks_that_are_cancelled() {
    for steps in [
        [(Call(0), 0), (Cancel(0), 1), (Work(0), 0)],
        [(Call(0), 0), (Work(0), 0), (Cancel(0), 1)],
    ] {
        hold("cancelled", AHEAD, &steps, bounds(1, 0, &[]));
        hold("cancelled, later", AHEAD, &steps, bounds(0, 1, &[3500]));
    }
}

/// The client repeats its call, which may become another task.
#[test]
fn calls_that_are_repeated() {
    let steps = [(Call(0), 0), (Call(0), 1), (Work(0), 1), (Work(1), 0)];
    hold("repeated", AHEAD, &steps, bounds(1, 0, &[]));
    let steps = [(Call(0), 0), (Work(0), 0), (Call(0), 1), (Work(1), 1)];
    hold("repeated, later", AHEAD, &steps, bounds(0, 1, &[10_500]));
    let steps = [(Call(0), 1), (Cancel(0), 1), (Call(0), 0), (Work(1), 0)];
    hold("repeated, cancelled", AHEAD, &steps, bounds(0, 1, &[100]));
}

/// The events of two tasks arrive in another order.
#[test]
fn two_tasks() {
    let steps = [(Call(0), 0), (Call(1), 0), (Work(1), 0), (Work(0), 1)];
    hold("two", [0, 0], &steps, bounds(0, 0, &[]));
}

/// The call waits for its outcome for a moment.
#[test]
fn calls_that_wait() {
    let steps = [(Call(0), 0), (Work(0), 1)];
    let tasks = |policy| Tasks::new(policy, AHEAD, &steps, true);
    hold_both("tasks, waiting", tasks, bounds(1, 1, &[30]));
}

mod long {
    use super::*;

    /// The worker is suspended until its task is over.
    #[test]
    #[ignore = "takes half a minute; run .ci/long"]
    fn workers_that_are_suspended() {
        let steps = [(Call(0), 1), (Work(0), 0), (Get(0), 1)];
        let mut bounds = bounds(1, 1, &[10_500]);
        bounds.suspends = true;
        hold("suspended", AHEAD, &steps, bounds);
    }
}

/// The search would notice if the margin for the difference of clocks were too small.
#[test]
fn clocks_that_differ_too_much_are_noticed() {
    let steps = [(Call(0), 0), (Work(0), 0), (Call(0), 1), (Work(1), 1)];
    let tasks = Tasks::new(false, [0, 7000], &steps, false);
    assert!(violates("tasks, clocks", &tasks, bounds(0, 1, &[3500])));
}
