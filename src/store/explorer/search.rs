//! The search: depth first, by running each execution from the beginning.

use std::{
    collections::HashSet,
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    time::{Duration, Instant},
};

use super::{
    Scenario,
    action::{Action, Bounds},
    execution::Execution,
};

/// The result of a search.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) executions: usize,
    /// The states in which decisions were made, at the largest number of faults.
    pub(crate) states: usize,
    /// The most decisions in one execution.
    pub(crate) depth: usize,
    pub(crate) elapsed: Duration,
    /// The first execution in which a rule does not hold: its decisions, and the rule.
    pub(crate) violation: Option<Vec<String>>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} executions, {} states, at most {} decisions, {:.1} s",
            self.executions,
            self.states,
            self.depth,
            self.elapsed.as_secs_f64()
        )?;
        for line in self.violation.iter().flatten() {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

/// A decision of the current execution: its number, and the number of alternatives.
type Decision = (usize, usize);

/// Explores all executions of a scenario within the bounds, those with few faults first, until a rule
/// does not hold.
pub(crate) fn explore(scenario: &dyn Scenario, bounds: Bounds) -> Report {
    let started = Instant::now();
    let mut report = Report::default();
    for faults in 0..=bounds.faults {
        explore_with(scenario, Bounds { faults, ..bounds }, &mut report);
        if report.violation.is_some() {
            break;
        }
    }
    report.elapsed = started.elapsed();
    report
}

fn explore_with(scenario: &dyn Scenario, bounds: Bounds, report: &mut Report) {
    let (mut path, mut visited) = (Vec::new(), HashSet::new());
    loop {
        let result = run(scenario, bounds, |depth, execution, count| {
            if depth == path.len() {
                if !visited.insert(execution.digest()) {
                    return None;
                }
                path.push((0, count));
            }
            assert_eq!(path[depth].1, count, "an execution is not deterministic");
            Some(path[depth].0)
        });
        report.count(scenario, bounds, &path, &result);
        report.states = visited.len();
        if report.violation.is_some() || !advance(&mut path) {
            return;
        }
    }
}

/// Runs random executions of a scenario within the bounds, until a rule does not hold.
pub(crate) fn sample(scenario: &dyn Scenario, bounds: Bounds, executions: u64) -> Report {
    let started = Instant::now();
    let mut report = Report::default();
    for number in 0..executions {
        let mut path = Vec::new();
        let result = run(scenario, bounds, |depth, _, count| {
            let mut hasher = DefaultHasher::new();
            (number, depth).hash(&mut hasher);
            let chosen = usize::try_from(hasher.finish() % count.max(1) as u64).unwrap_or(0);
            path.push((chosen, count));
            Some(chosen)
        });
        report.count(scenario, bounds, &path, &result);
        if report.violation.is_some() {
            break;
        }
    }
    report.elapsed = started.elapsed();
    report
}

impl Report {
    fn count(
        &mut self,
        scenario: &dyn Scenario,
        bounds: Bounds,
        path: &[Decision],
        result: &Result<(), String>,
    ) {
        self.executions += 1;
        self.depth = self.depth.max(path.len());
        if result.is_err() {
            self.violation = Some(lines_of(scenario, bounds, path));
        }
    }
}

/// Runs one execution, until it ends or `choose` chooses no action. `choose` gets the number of
/// decisions so far, the execution, and the number of actions.
fn run(
    scenario: &dyn Scenario,
    bounds: Bounds,
    mut choose: impl FnMut(usize, &Execution<'_>, usize) -> Option<usize>,
) -> Result<(), String> {
    let mut execution = Execution::new(scenario, bounds, false);
    for depth in 0.. {
        let actions = execution.actions();
        let Some(chosen) = choose(depth, &execution, actions.len()) else {
            break;
        };
        let action = actions.get(chosen).ok_or("nothing can happen")?;
        execution.apply(action)?;
        if matches!(action, Action::End) {
            break;
        }
    }
    Ok(())
}

/// Turns to the next path. Returns false if there is none.
fn advance(path: &mut Vec<Decision>) -> bool {
    while let Some((chosen, count)) = path.pop() {
        if chosen + 1 < count {
            path.push((chosen + 1, count));
            return true;
        }
    }
    false
}

/// The decisions of an execution, and the rule that does not hold at its end.
fn lines_of(scenario: &dyn Scenario, bounds: Bounds, path: &[Decision]) -> Vec<String> {
    let mut execution = Execution::new(scenario, bounds, true);
    let mut rule = "nothing can happen".to_owned();
    for (chosen, _) in path {
        let actions = execution.actions();
        if let Some(action) = actions.get(*chosen)
            && let Err(violated) = execution.apply(action)
        {
            rule = violated;
            break;
        }
    }
    let mut lines = execution.lines.take().unwrap_or_default();
    lines.push(rule);
    lines
}
