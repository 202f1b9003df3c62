//! Counts of what happened in many runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use crate::{
    campaign::BrokenRun,
    history::{CUT_OFF, History, Kill, Outcome, STILL_RUNNING, What},
    plan::Plan,
};

/// Counts of what happened in many runs.
#[derive(Debug, Default)]
pub struct Summary {
    /// The number of runs.
    pub runs: u64,
    /// The runs that broke promises.
    pub broken: Vec<BrokenRun>,
    /// The plan and the history, if there is only one run.
    pub only: Option<(Plan, History)>,
    /// Kinds of things, and how often they happened.
    counts: BTreeMap<String, u64>,
}

impl Summary {
    /// Adds a run.
    pub(crate) fn add(&mut self, plan: &Plan, history: &History) {
        self.runs += 1;
        self.only = (self.runs == 1).then(|| (plan.clone(), history.clone()));
        self.count(format!("runs: {:?}", plan.policy));
        self.count(format!("clients: {}", plan.clients.len()));
        let mut faulty = BTreeSet::new();
        for event in &history.0 {
            match &event.what {
                What::Delivered { .. } => self.count("attempts".to_owned()),
                What::EffectApplied(..) => self.count("effects".to_owned()),
                What::StoreFault(attempt, request, fault) => {
                    faulty.insert(*attempt);
                    self.count(format!("store: {request:?} {fault:?}"));
                }
                What::Frozen(..) => self.count("frozen".to_owned()),
                What::Killed(_, _, Kill::Step(step)) => self.count(format!("killed: {step:?}")),
                What::Killed(_, _, Kill::Deadline) => self.count("killed: deadline".to_owned()),
                What::Answered {
                    attempt, answer, ..
                } => {
                    let kind = kind_of(&answer.outcome);
                    let replay = if answer.is_replay { " (replay)" } else { "" };
                    self.count(format!("responses: {kind}{replay}"));
                    // The machine was too busy.
                    if answer.outcome == Outcome::Unprotected && !faulty.contains(attempt) {
                        self.count("rejected without a fault of the store".to_owned());
                    }
                }
                _ => {}
            }
        }
    }

    fn count(&mut self, kind: String) {
        *self.counts.entry(kind).or_default() += 1;
    }

    /// The number of times that each thing happened.
    #[must_use]
    pub fn count_of(&self, kind: &str) -> u64 {
        self.counts.get(kind).copied().unwrap_or_default()
    }
}

fn kind_of(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Value(..) => "value",
        Outcome::Failure(message, _) if message == CUT_OFF => "cut off",
        Outcome::Failure(message, _) if message == STILL_RUNNING => "still running",
        Outcome::Failure(_, true) => "failure that may be retried",
        Outcome::Failure(_, false) => "failure",
        Outcome::IdReused => "rejected, the id belongs to another call",
        Outcome::Unprotected => "rejected, the store does not respond",
        Outcome::Unknown => "unreadable",
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for run in &self.broken {
            let seconds = run.time.as_secs_f64();
            let (seed, after) = (run.plan.seed, run.after);
            writeln!(f, "seed {seed}, after {after} runs and {seconds:.1} s")?;
            for violation in &run.violations {
                writeln!(f, "  {violation}")?;
            }
            writeln!(f, "{:#?}\n{}", run.plan, run.history)?;
        }
        for (kind, count) in &self.counts {
            writeln!(f, "{count:>8}  {kind}")?;
        }
        writeln!(f, "{} runs, {} broken", self.runs, self.broken.len())
    }
}
