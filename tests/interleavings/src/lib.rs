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
mod search;
mod service;
mod shared;
mod tasks;

use std::{hash::Hasher, pin::Pin, time::Duration};

use execution::Execution;
use lambda_tools::store::{Over, Record};
use network::{Conditions, Connection, Network};
use shared::Shared;

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
}

const fn bounds(faults: usize, passes: usize, steps: &'static [u64]) -> Bounds {
    Bounds {
        faults,
        passes,
        steps,
    }
}

/// The processes, their calls and their store.
#[derive(Default)]
struct Setup {
    /// For each process, the milliseconds by which its clock is ahead.
    leads: Vec<u64>,
    /// For each call, the process that receives it.
    calls: Vec<usize>,
    /// The conditions of writes that the store respects.
    conditions: Conditions,
    /// True if processes may be suspended.
    suspends: bool,
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
        service::treatments(request)
    }

    /// Lets the service treat a request. Returns the response; or, as an error, what the request
    /// becomes if the service has acted and its response takes longer.
    fn serve(&self, _process: usize, request: &str, treatment: &str) -> Result<String, String> {
        service::serve(request, treatment, |run| self.acted(run))
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
