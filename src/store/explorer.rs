//! Explores the interleavings of processes that share a store.
//!
//! The processes run the library's own code, each on a runtime of its own with virtual time. Every
//! request that a process sends to the store, or to another service, waits until the search decides
//! what becomes of it. The search tries all decisions, within [`Bounds`], by running the processes
//! again from the beginning; it does not continue from a state that it has seen before.
//!
//! `loom` and `shuttle` explore the interleavings of threads or tasks in one process: they have
//! neither processes that die, nor responses that are lost, nor time.

mod action;
mod alternatives;
mod digest;
mod ending;
mod execution;
mod history;
mod network;
mod process;
mod search;
mod shared_store;
mod slot;

pub(crate) use action::{Bounds, Fault, is_full};
pub(crate) use execution::Execution;
pub(crate) use network::{Identity, request};
#[cfg(feature = "oauth")]
pub(crate) use network::{seed, service_requests, writer_of};
#[cfg(feature = "oauth")]
pub(crate) use process::is_exploring;
pub(crate) use process::{CLOCK, Freeze, START, current_process};
pub(crate) use search::{Report, explore, sample};
pub(crate) use shared_store::{Conditions, SharedStore};

use std::{hash::Hasher, pin::Pin, time::Duration};

use super::{PutOutcome, Record};

/// A call, as its process runs it.
pub(crate) type Call = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The response of a service other than the store.
pub(crate) enum Served {
    /// The service has acted, and answers.
    Answer(String),
    /// The service has acted, and its response takes longer; the request is now this text.
    Acted(String),
}

/// One of the ways in which a service may treat a request.
pub(crate) struct Treatment {
    pub(crate) name: &'static str,
    pub(crate) is_fault: bool,
}

/// The processes, their calls and their store.
pub(crate) struct Setup {
    /// For each process, the time by which its clock is ahead.
    pub(crate) leads: Vec<Duration>,
    /// For each call, the process that receives it.
    pub(crate) calls: Vec<usize>,
    /// The conditions of writes that the store respects.
    pub(crate) conditions: Conditions,
}

impl Setup {
    /// Processes with these leads in milliseconds, each with one call.
    pub(crate) fn new(leads: &[u64]) -> Self {
        Self {
            leads: leads.iter().map(|ms| Duration::from_millis(*ms)).collect(),
            calls: (0..leads.len()).collect(),
            conditions: Conditions::All,
        }
    }
}

/// The processes and their calls, with the rules that must hold.
pub(crate) trait Scenario {
    fn setup(&self) -> &Setup;

    /// Forgets everything about the last execution.
    fn reset(&self);

    /// A call.
    fn call(&self, number: usize) -> Call;

    /// The ways in which another service than the store may treat a request. The sender of a late
    /// one has stopped waiting.
    fn treatments(&self, request: &str, is_late: bool) -> Vec<Treatment>;

    /// Lets the service treat a request.
    fn serve(&self, from: Identity, request: &str, treatment: &str) -> Served;

    /// Called after a write has been carried out.
    fn written(&self, id: &str, record: &Record, over: Option<u64>, outcome: &PutOutcome);

    /// Called after something went wrong in a process, or with one of its requests.
    fn faulted(&self, process: usize, fault: Fault);

    /// Called before a process continues that had stopped running.
    fn thaws(&self, process: usize);

    /// Called after time has passed.
    fn passed(&self, time: Duration);

    /// True if the process may stop running for some time at this point.
    fn may_freeze(&self, process: usize, freeze: Freeze) -> bool;

    /// True if the call has ended.
    fn has_ended(&self, call: usize) -> bool;

    /// The rule that does not hold, if any.
    fn violation(&self) -> Option<String>;

    /// Adds everything to a state's digest that later rules depend on.
    fn digest(&self, state: &mut dyn Hasher);

    /// Checks the end of an execution, in which nothing happens any more by itself. May continue
    /// it, for example with a further call.
    fn end(&self, execution: &mut Execution<'_>) -> Result<(), String>;
}
