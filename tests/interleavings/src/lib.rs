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
mod rotations;
mod search;
mod service;
mod shared;
mod tasks;

use std::{hash::Hasher, pin::Pin};

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

/// Returns true if the searches use their large bounds, which take minutes and a release build.
fn is_full() -> bool {
    std::env::var("INTERLEAVINGS").is_ok_and(|it| it == "full")
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
    fn treatments(&self, request: &str) -> &'static [&'static str];

    /// Lets the service treat a request. Returns the response; or, as an error, what the request
    /// becomes if the service has acted and its response takes longer.
    fn serve(&self, process: usize, request: &str, treatment: &str) -> Result<String, String>;

    /// Runs after a record was written, over another one or over none.
    fn written(&self, id: &str, record: &Record, over: Over);

    /// Adds everything to a state's digest that later rules depend on.
    fn digest(&self, state: &mut dyn Hasher);

    /// Checks the end of an execution, in which nothing happens any more by itself. May continue
    /// it, for example with a further call.
    fn end(&self, execution: &mut Execution<'_>) -> Result<(), String>;
}
