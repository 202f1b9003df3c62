//! The observable events of an execution: the tool's runs, and the calls' responses.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    time::{Duration, SystemTime},
};

use crate::store::{
    Record,
    explorer::{CLOCK, current_process},
};

thread_local! {
    static LEDGER: RefCell<Ledger> = RefCell::default();
}

pub(super) fn with_ledger<T>(change: impl FnOnce(&mut Ledger) -> T) -> T {
    LEDGER.with_borrow_mut(change)
}

/// The end of a run, as the tool caused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum RunResult {
    Value,
    Failure,
    RetryableFailure,
    Panic,
}

/// A run of the tool.
#[derive(Clone, Debug, Hash)]
pub(super) struct Run {
    pub(super) process: usize,
    pub(super) input: String,
    /// True until the tool returns, panics or is stopped, or its process crashes.
    pub(super) is_active: bool,
    pub(super) has_acted: bool,
    pub(super) result: Option<RunResult>,
}

/// The response to a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Response {
    /// The tool ran for this call; the outcome is that of a run.
    Ran(usize),
    /// The outcome of a run, replayed.
    Replayed(usize),
    /// The tool ran or not; the library's own failure.
    Failed(&'static str),
    /// The library's own failure, replayed.
    ReplayedFailure(&'static str),
    Rejected(&'static str),
}

#[derive(Default)]
pub(super) struct Ledger {
    pub(super) is_at_most_once: bool,
    pub(super) runs: Vec<Run>,
    pub(super) responses: BTreeMap<usize, Response>,
    /// The inputs of the calls so far.
    pub(super) inputs: Vec<String>,
    /// The time at which the recorded outcome expires.
    pub(super) recorded_until: Option<SystemTime>,
    /// The processes that have stopped running for some time.
    pub(super) frozen: BTreeSet<usize>,
    /// The processes of which a request failed or got no response for some time, or that failed
    /// themselves.
    pub(super) disturbed: BTreeSet<usize>,
    pub(super) claims: usize,
    /// The version of the last claim.
    pub(super) claim: Option<u64>,
    pub(super) violation: Option<String>,
}

/// A run, until the tool ends in any way.
pub(super) struct ActiveRun(pub(super) usize);

impl Drop for ActiveRun {
    fn drop(&mut self) {
        with_ledger(|ledger| {
            if let Some(run) = ledger.runs.get_mut(self.0) {
                run.is_active = false;
            }
        });
    }
}

impl Ledger {
    pub(super) fn violate(&mut self, rule: impl Into<String>) {
        self.violation.get_or_insert(rule.into());
    }

    /// Records that the tool starts. It may not run twice at once, nor after its outcome was
    /// recorded.
    pub(super) fn begin(input: String) -> ActiveRun {
        let (process, now) = (current_process(), CLOCK.now());
        with_ledger(|ledger| {
            if ledger.is_running() {
                ledger.violate("two runs of one call at the same time");
            }
            if ledger.recorded_until.is_some_and(|until| now < until) {
                ledger.violate("the tool runs although its outcome is recorded");
            }
            ledger.runs.push(Run {
                process,
                input,
                is_active: true,
                has_acted: false,
                result: None,
            });
            ActiveRun(ledger.runs.len() - 1)
        })
    }

    /// True if a process that is running runs the tool.
    pub(super) fn is_running(&self) -> bool {
        let mut runs = self.runs.iter();
        runs.any(|run| run.is_active && !self.frozen.contains(&run.process))
    }

    /// Records that a claim or an outcome was written. An outcome may replace only the claim of its
    /// own call.
    pub(super) fn write(&mut self, record: &Record, is_claim: bool) {
        if is_claim {
            self.claims += 1;
            self.claim = Some(record.version);
            return;
        }
        if self.claim != Some(record.version) {
            self.violate("an outcome replaces the claim or the outcome of another call");
        }
        self.recorded_until = Some(record.expires_at);
    }

    /// Records the effect of a run.
    pub(super) fn act(&mut self, run: usize) {
        self.runs[run].has_acted = true;
        let effects = self.runs.iter().filter(|run| run.has_acted).count();
        if self.is_at_most_once && effects > 1 {
            self.violate("two effects of a call that may have one");
        }
    }

    /// Forgets everything about calls whose records have expired.
    pub(super) fn expire(&mut self) {
        self.recorded_until = None;
        for run in &mut self.runs {
            run.has_acted = false;
        }
    }
}

/// The time after which a record matters to no process.
pub(super) const FAR: Duration = Duration::from_secs(40);
