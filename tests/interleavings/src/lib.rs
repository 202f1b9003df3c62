//! Searches the interleavings of processes that share a store.
//!
//! The processes run the library as it is deployed, each on a runtime of its own with virtual time.
//! Every request that a process sends to the store, or to another service, waits until the search
//! decides what becomes of it. The search tries all decisions, within bounds, by running the
//! processes again from the beginning; it does not continue from a state that it has seen before.

#![cfg(test)]

mod calls;
mod execution;
mod network;
mod process;
mod refreshes;
mod tasks;

use std::{hash::Hasher, panic::resume_unwind, pin::Pin, time::Duration};

use execution::Execution;
use lambda_tools::{
    Context, Failure, Tool,
    store::{Over, Record},
};
use network::{Connection, Network, Shared};
use serde_json::{Value, json};

/// A call, as its process runs it.
type Call = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The limits of a search, for each execution.
#[derive(Clone, Copy)]
struct Bounds {
    /// The maximum number of faults.
    faults: usize,
    /// The maximum number of times that time passes.
    passes: usize,
    /// The milliseconds that may pass at a time. Requests that are not answered meanwhile remain
    /// unanswered during all of that time.
    steps: &'static [u64],
    /// True if processes may be suspended.
    suspends: bool,
}

const fn bounds(faults: usize, passes: usize, steps: &'static [u64]) -> Bounds {
    Bounds {
        faults,
        passes,
        steps,
        suspends: false,
    }
}

/// The processes, their calls and their store.
#[derive(Default)]
struct Setup {
    /// For each process, the milliseconds by which its clock is ahead.
    leads: Vec<u64>,
    /// For each call, the process that receives it.
    calls: Vec<usize>,
    network: Shared<Network>,
}

impl Setup {
    /// Returns the setup of processes, each of which has a clock that is ahead by some milliseconds.
    fn new(leads: &[u64], calls: Vec<usize>) -> Self {
        Self {
            leads: leads.to_vec(),
            calls,
            ..Self::default()
        }
    }

    /// Returns the time by which the clock of a process is ahead.
    fn lead(&self, process: usize) -> Duration {
        let lead = self.leads.get(process).copied();
        Duration::from_millis(lead.unwrap_or_default())
    }

    /// Returns the connection of the process that receives a call. Those after the end have a process
    /// of their own.
    fn connection(&self, call: usize) -> Connection {
        let process = self.calls.get(call).copied();
        Connection {
            network: self.network.clone(),
            process: process.unwrap_or(self.leads.len()),
        }
    }
}

/// The processes and their calls, with the rules that must hold.
trait Scenario {
    fn setup(&self) -> &Setup;

    /// Forgets everything about the last execution.
    fn reset(&self);

    fn call(&self, number: usize) -> Call;

    /// Returns the ways in which another service than the store may treat a request: the first is
    /// the good one.
    fn treatments(&self, request: &str) -> &'static [&'static str] {
        if request.starts_with("acted") {
            &["value"]
        } else {
            &["value", "failure", "retry", "panic", "acts"]
        }
    }

    /// Lets the service treat a request. Returns the response; or, as an error, what the request
    /// becomes if the service has acted and its response takes longer.
    fn serve(&self, _process: usize, request: &str, treatment: &str) -> Result<String, String> {
        let run = number_of(request).unwrap();
        // A failure that may be retried says that nothing has happened.
        if treatment != "retry" && request.starts_with("run") {
            self.acted(run);
        }
        match treatment {
            "acts" => Err(format!("acted {run}")),
            answer => Ok(answer.to_owned()),
        }
    }

    /// Runs after the service has acted for a run of the tool.
    fn acted(&self, _run: usize) {}

    /// Runs after a record was written, over another one or over none.
    fn written(&self, id: &str, record: &Record, over: Over);

    /// Runs after a process has read a record.
    fn read(&self, _process: usize, _id: &str, _record: &Record) {}

    /// Adds everything to a state's digest that later rules depend on.
    fn digest(&self, state: &mut dyn Hasher);

    /// Checks the end of an execution, in which nothing happens any more by itself. May continue
    /// it, for example with a further call.
    fn end(&self, execution: &mut Execution<'_>) -> Result<(), String>;
}

/// Returns the tool, which runs `act`.
fn act_tool<F: Future<Output = Result<Value, Failure>> + Send + 'static>(
    is_at_most_once: bool,
    act: impl Fn(Value, Context) -> F + Clone + Send + Sync + 'static,
) -> Tool {
    let object = json!({"type": "object", "properties": {}});
    let tool = Tool::dynamic("Act.Do@1.0.0", "Acts.", object, json!({}), act);
    if is_at_most_once {
        tool.run_at_most_once()
    } else {
        tool
    }
}

/// Waits until the service has ended a run of the tool, and ends it in the same way.
async fn served_run(
    number: usize,
    process: &Connection,
    note: impl FnOnce(String),
) -> Result<Value, Failure> {
    let result = loop {
        if let Some(result) = process.request(format!("run {number}")).await {
            break result;
        }
    };
    note(result.clone());
    match &*result {
        "value" => Ok(json!(number)),
        "failure" => Err(Failure::new(number.to_string())),
        "retry" => Err(Failure::new(number.to_string()).retry()),
        // Without the message of a panic.
        _ => resume_unwind(Box::new(())),
    }
}

/// Returns the number of the run that sent a request.
fn number_of(request: &str) -> Option<usize> {
    let (_, number) = request.split_once(' ')?;
    number.parse().ok()
}
