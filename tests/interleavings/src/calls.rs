//! Searches the interleavings of repeated calls: of their claims, runs and records, in processes
//! that share a store. The rules are those that `docs/calls.md` promises.

use std::{
    collections::BTreeMap,
    hash::{Hash, Hasher},
    sync::Arc,
    time::{Duration, SystemTime},
};

use lambda_tools::{
    Context, Failure, Server, Toolkit,
    idempotency::Idempotency,
    store::{Over, Record},
    testing::{LambdaFunction, TestCall, TestOutcome},
};
use serde_json::{Value, json};

use crate::{
    Call, Scenario, Setup, act_tool, bounds,
    execution::{Execution, hold_both, violates},
    network::{Connection, Network, Shared},
    process::function,
    served_run,
};

/// Returns true if a process that is running runs the tool, which does nothing but wait for its
/// service.
fn is_running(network: &Shared<Network>) -> bool {
    network.with(|network| network.served().next().is_some())
}

/// A run of the tool.
#[derive(Default, Hash)]
struct Run {
    call: usize,
    has_acted: bool,
    /// The end that the tool caused: `value`, `failure`, `retry` or `panic`.
    result: Option<String>,
}

/// The response to a call: the tool's outcome or the reason why there is none, and whether the tool
/// ran for this call.
type Response = (&'static str, bool);

#[derive(Default)]
struct Ledger {
    is_at_most_once: bool,
    runs: Vec<Run>,
    responses: BTreeMap<usize, Response>,
    /// The number of calls so far.
    calls: usize,
    /// The time at which the recorded outcome expires.
    recorded_until: Option<SystemTime>,
    /// The version of the last claim.
    claim: Option<u64>,
}

impl Ledger {
    /// Records that the tool starts, and returns the number of the run. It may not run twice at once,
    /// nor after its outcome was recorded.
    fn begin(&mut self, call: usize, process: &Connection) -> usize {
        let network = &process.network;
        if is_running(network) {
            network.violate("two runs of one call at the same time");
        }
        let until = self.recorded_until;
        if until.is_some_and(|until| process.wall() < until) {
            network.violate("the tool runs although its outcome is recorded");
        }
        self.runs.push(Run {
            call,
            ..Run::default()
        });
        self.runs.len() - 1
    }

    /// Records that a claim or an outcome was written. An outcome may replace only the claim of its
    /// own call.
    fn write(&mut self, record: &Record, is_claim: bool, network: &Shared<Network>) {
        if is_claim {
            self.claim = Some(record.version);
            return;
        }
        if self.claim != Some(record.version) {
            network.violate("an outcome replaces the claim or the outcome of another call");
        }
        self.recorded_until = Some(record.expires_at);
    }

    /// Records the effect of a run.
    fn act(&mut self, run: usize, network: &Shared<Network>) {
        self.runs[run].has_acted = true;
        let effects = self.runs.iter().filter(|run| run.has_acted).count();
        if self.is_at_most_once && effects > 1 {
            network.violate("two effects of a call that may have one");
        }
    }

    /// Records the response to a call, and checks that it is true.
    fn respond(&mut self, call: usize, outcome: &TestOutcome, process: &Connection) {
        let has_run = self.runs.iter().any(|run| run.call == call);
        let (kind, is_true) = match outcome {
            TestOutcome::Value(value) => self.of_run(call, &value.to_string(), "value"),
            TestOutcome::Failure(failure) => self.failure((call, has_run), failure, process),
            // The store did not respond.
            TestOutcome::Rejection(it) if it.reason == "unprotected" => {
                (it.reason, process.is_disturbed() && !has_run)
            }
            _ => ("unexpected", false),
        };
        if !is_true {
            let network = &process.network;
            network.violate(format!("a response '{kind}', out of place"));
        }
        self.responses.insert(call, (kind, has_run));
    }

    /// Returns the outcome of a run. One that may be retried is not replayed.
    fn of_run(&self, call: usize, number: &str, result: &str) -> (&'static str, bool) {
        let run = number.parse().ok().and_then(|it: usize| self.runs.get(it));
        let is_true = run.is_some_and(|run| {
            let may_return = result != "retry" || run.call == call;
            run.result.as_deref() == Some(result) && may_return
        });
        ("outcome", is_true)
    }

    fn failure(
        &self,
        (call, has_run): (usize, bool),
        failure: &Failure,
        process: &Connection,
    ) -> (&'static str, bool) {
        let can_retry = failure.can_retry();
        // Only such a tool is not run again after it was interrupted.
        let is_final = self.is_at_most_once && !can_retry;
        let ended_so = |result| self.runs.iter().any(|run| run.result.as_deref() == result);
        let may_follow = |result| has_run || (is_final && ended_so(result));
        match failure.message() {
            "The tool stopped because of an internal error" => {
                ("interrupted", may_follow(Some("panic")))
            }
            "The tool did not finish in time" => ("interrupted", may_follow(None)),
            "This call was cut off, and may have had its effect" => {
                // A process that was suspended responds to what it saw before.
                let is_over = !is_running(&process.network) || process.is_disturbed();
                ("cut off", is_final && is_over && !has_run)
            }
            // Not for its own claim.
            "This call is still running" => ("running", can_retry && self.calls > 1 && !has_run),
            "There was no time left to run the tool" => ("no time", can_retry && !has_run),
            number if can_retry => self.of_run(call, number, "retry"),
            number => self.of_run(call, number, "failure"),
        }
    }
}

/// Calls with one `call_id`, or equal ones without.
struct Calls {
    is_at_most_once: bool,
    has_id: bool,
    setup: Setup,
    /// The function that each call is sent to, so that its tool knows the call; also three more.
    functions: Vec<Arc<LambdaFunction>>,
    ledger: Shared<Ledger>,
}

/// The time in which the platform wants a response.
const DEADLINE: Duration = Duration::from_secs(4);

/// The time for which outcomes are recorded.
const EXPIRE_AFTER: Duration = Duration::from_hours(1);

/// The time for which equal calls without an id are one.
const WINDOW: Duration = Duration::from_mins(2);

/// The time after which a record matters to no process.
const FAR: Duration = Duration::from_secs(40);

impl Calls {
    /// A call in each of the processes, whose clocks are ahead by some milliseconds.
    fn new(is_at_most_once: bool, has_id: bool, leads: &[u64]) -> Self {
        let setup = Setup::new(leads, (0..leads.len()).collect());
        let ledger = Shared::<Ledger>::default();
        let function_of = |call| {
            let (process, shared) = (setup.connection(call), ledger.clone());
            let idempotency = Idempotency::in_store(process.clone()).expire_after(EXPIRE_AFTER);
            let running = process.clone();
            let act = move |_: Value, _: Context| {
                let (process, ledger) = (running.clone(), shared.clone());
                async move {
                    let number = ledger.with(|ledger| ledger.begin(call, &process));
                    let note = |result| ledger.with(|it| it.runs[number].result = Some(result));
                    served_run(number, &process, note).await
                }
            };
            let mut tool = act_tool(is_at_most_once, act);
            if !has_id {
                tool = tool.once_within(WINDOW);
            }
            let server = Server::new(Toolkit::new([tool]).unwrap());
            function(server.idempotency(idempotency), process)
        };
        Self {
            is_at_most_once,
            has_id,
            functions: (0..leads.len() + 3).map(function_of).collect(),
            setup,
            ledger,
        }
    }
}

impl Scenario for Calls {
    fn setup(&self) -> &Setup {
        &self.setup
    }

    fn reset(&self) {
        self.ledger.with(|ledger| {
            *ledger = Ledger::default();
            ledger.is_at_most_once = self.is_at_most_once;
        });
    }

    fn call(&self, number: usize) -> Call {
        let function = Arc::clone(&self.functions[number]);
        let process = self.setup.connection(number);
        let (lead, ledger) = (self.setup.lead(process.process), self.ledger.clone());
        let id = self.has_id.then_some("same");
        Box::pin(async move {
            ledger.with(|ledger| ledger.calls += 1);
            let call = function.call("Act.Do", json!({}));
            let call = id.into_iter().fold(call, TestCall::call_id);
            // By the platform's clock.
            let outcome = call.deadline(process.wall() - lead + DEADLINE).await;
            ledger.with(|ledger| ledger.respond(number, &outcome, &process));
        })
    }

    fn acted(&self, run: usize) {
        let network = &self.setup.network;
        self.ledger.with(|ledger| ledger.act(run, network));
    }

    fn written(&self, _: &str, record: &Record, over: Over) {
        let (network, is_claim) = (&self.setup.network, over == Over::Nothing);
        self.ledger.with(|it| it.write(record, is_claim, network));
    }

    fn digest(&self, mut state: &mut dyn Hasher) {
        self.ledger.with(|ledger| {
            (&ledger.runs, &ledger.responses).hash(&mut state);
            (ledger.recorded_until, ledger.claim.is_some()).hash(&mut state);
        });
    }

    fn end(&self, execution: &mut Execution<'_>) -> Result<(), String> {
        let is_recorded = self.ledger.with(|ledger| ledger.recorded_until.is_some());
        let expire_after = if self.has_id { EXPIRE_AFTER } else { WINDOW };
        let times = [Duration::ZERO, FAR, expire_after + FAR];
        for (number, time) in times.into_iter().enumerate() {
            execution.pass(time);
            if time > expire_after {
                let ledger = &self.ledger;
                ledger.with(|it| (it.is_at_most_once, it.recorded_until) = (false, None));
            }
            let call = self.setup.calls.len() + number;
            execution.start(call);
            execution.drain()?;
            let response = self.ledger.with(|it| it.responses.get(&call).copied());
            let is_allowed = response.is_some_and(|(kind, has_run)| match number {
                0 => !is_recorded || (!has_run && ["outcome", "interrupted"].contains(&kind)),
                // Nobody waits for a call that is over.
                1 => !["running", "no time", "unprotected"].contains(&kind),
                _ => (kind, has_run) == ("outcome", true),
            });
            if !is_allowed {
                return Err(format!("{response:?} after {time:?}"));
            }
        }
        Ok(())
    }
}

/// A moment, and a time after which a running call has nearly reached the platform's deadline.
const STEPS: &[u64] = &[100, 3500];

/// The clocks of two processes may differ by two seconds.
#[test]
fn two_processes() {
    for leads in [[0, 2000], [2000, 0]] {
        let calls = |policy| Calls::new(policy, true, &leads);
        hold_both(&format!("calls, {leads:?}"), calls, bounds(0, 1, STEPS));
    }
}

/// After their time, they run again.
#[test]
fn equal_calls_without_an_id() {
    let calls = |policy| Calls::new(policy, false, &[0, 2000]);
    hold_both("equal calls", calls, bounds(0, 1, STEPS));
}

#[test]
fn three_processes() {
    let calls = |policy| Calls::new(policy, true, &[0, 2000, 1000]);
    hold_both("calls, three", calls, bounds(0, 0, &[]));
}

mod long {
    use super::*;

    /// A process is suspended until its claim is free.
    #[test]
    #[ignore = "takes half a minute; run .ci/long"]
    fn claims_that_become_free() {
        let calls = |policy| Calls::new(policy, true, &[0, 2000]);
        let mut bounds = bounds(1, 1, &[6500]);
        bounds.suspends = true;
        hold_both("calls, suspended", calls, bounds);
    }
}

/// The search would notice if the margin for the difference of clocks were too small.
#[test]
fn clocks_that_differ_too_much_are_noticed() {
    for policy in [false, true] {
        let calls = Calls::new(policy, true, &[0, 3000]);
        assert!(violates("clocks", &calls, bounds(0, 2, STEPS)));
    }
}
