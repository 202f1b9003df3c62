//! The search: depth first, by running each execution from the beginning.

use std::{collections::HashSet, time::Instant};

use crate::{
    Bounds, Scenario,
    execution::{Action, Execution},
};

/// A decision of an execution: its number, and the number of alternatives.
type Decision = (usize, usize);

/// Searches for a violation; if the environment says so, with one more fault, which takes minutes and
/// a release build.
#[track_caller]
pub(crate) fn hold(name: &str, scenario: &dyn Scenario, mut bounds: Bounds) {
    let is_full = std::env::var("INTERLEAVINGS").is_ok_and(|it| it == "full");
    bounds.faults += usize::from(is_full);
    assert!(!violates(name, scenario, bounds), "{name}: see above");
}

/// Searches all executions of a scenario within the bounds, those with few faults first, until a rule
/// does not hold. Prints this execution, which another search finds again, and returns true.
pub(crate) fn violates(name: &str, scenario: &dyn Scenario, bounds: Bounds) -> bool {
    let (started, mut executions, mut violation) = (Instant::now(), 0, false);
    for faults in 0..=bounds.faults {
        let bounds = Bounds { faults, ..bounds };
        let (mut path, mut visited) = (Vec::new(), HashSet::new());
        while !violation {
            executions += 1;
            violation = run(scenario, bounds, &mut path, &mut visited, false).is_err();
            if violation {
                let found = run(scenario, bounds, &mut path, &mut visited, true);
                println!("  {}", found.unwrap_err());
            } else if !advance(&mut path) {
                break;
            }
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    println!("{name}: {executions} executions, {seconds:.1} s");
    violation
}

/// Runs one execution, along a path and then with the first of all decisions, until it ends or
/// reaches a state that has been visited. Completes the path. Prints the decisions if `prints` says so.
fn run(
    scenario: &dyn Scenario,
    bounds: Bounds,
    path: &mut Vec<Decision>,
    visited: &mut HashSet<u64>,
    prints: bool,
) -> Result<(), String> {
    let mut execution = Execution::new(scenario, bounds);
    for depth in 0.. {
        let actions = execution.actions();
        if depth == path.len() {
            if !visited.insert(execution.digest()) {
                break;
            }
            path.push((0, actions.len()));
        }
        let (chosen, count) = path[depth];
        assert_eq!(count, actions.len(), "an execution is not deterministic");
        let action = actions.get(chosen).ok_or("nothing can happen")?;
        if prints {
            println!("  {}", execution.describe(action));
        }
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
