//! The tool's runs and the calls' responses in an execution, with the rules that
//! `docs/idempotency.md` promises.

use std::{collections::BTreeMap, time::SystemTime};

use lambda_tools::{Failure, store::Record, testing::TestOutcome};

use crate::{
    network::{Connection, Network},
    shared::Shared,
};

/// Returns true if a process that is running runs the tool, which does nothing but wait for its
/// service.
fn is_running(network: &Shared<Network>) -> bool {
    network.with(|network| network.served().next().is_some())
}

/// A run of the tool.
#[derive(Default, Hash)]
pub(super) struct Run {
    call: usize,
    has_acted: bool,
    /// The end that the tool caused: `value`, `failure`, `retry` or `panic`.
    pub(super) result: Option<String>,
}

/// The response to a call: the tool's outcome or the reason why there is none, and whether the tool
/// ran for this call.
pub(super) type Response = (&'static str, bool);

#[derive(Default)]
pub(super) struct Ledger {
    pub(super) is_at_most_once: bool,
    pub(super) runs: Vec<Run>,
    pub(super) responses: BTreeMap<usize, Response>,
    /// The number of calls so far.
    pub(super) calls: usize,
    /// The time at which the recorded outcome expires.
    pub(super) recorded_until: Option<SystemTime>,
    /// The version of the last claim.
    pub(super) claim: Option<u64>,
}

impl Ledger {
    /// Records that the tool starts, and returns the number of the run. It may not run twice at once,
    /// nor after its outcome was recorded.
    pub(super) fn begin(&mut self, call: usize, process: &Connection) -> usize {
        let network = &process.network;
        if is_running(network) {
            network.violate("two runs of one call at the same time");
        }
        if self
            .recorded_until
            .is_some_and(|until| process.wall() < until)
        {
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
    pub(super) fn write(&mut self, record: &Record, is_claim: bool, network: &Shared<Network>) {
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
    pub(super) fn act(&mut self, run: usize, network: &Shared<Network>) {
        self.runs[run].has_acted = true;
        let effects = self.runs.iter().filter(|run| run.has_acted).count();
        if self.is_at_most_once && effects > 1 {
            network.violate("two effects of a call that may have one");
        }
    }

    /// Records the response to a call, and checks that it is true.
    pub(super) fn respond(&mut self, call: usize, outcome: &TestOutcome, process: &Connection) {
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
            let rule = format!("a response '{kind}', out of place");
            process.network.violate(rule);
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
