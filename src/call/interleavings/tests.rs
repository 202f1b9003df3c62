use std::time::Duration;

use super::Calls;
use crate::store::explorer::{Bounds, Conditions, Freeze, Report, explore, is_full, sample};

const POLICIES: [bool; 2] = [false, true];

/// A moment, and a time after which a running call has nearly reached the platform's deadline.
const STEPS: &[u64] = &[100, 3500];

fn search(name: &str, calls: &Calls, bounds: Bounds) -> Report {
    let report = explore(calls, bounds);
    let policy = if calls.is_at_most_once {
        "at most once"
    } else {
        "recorded"
    };
    println!("calls, {policy}, {name}: {report}");
    report
}

/// Searches for a violation with both policies.
#[track_caller]
fn hold(name: &str, calls: impl Fn(bool) -> Calls, bounds: Bounds) {
    let copies = is_full();
    for policy in POLICIES {
        let report = search(name, &calls(policy), Bounds { copies, ..bounds });
        assert!(report.violation.is_none(), "{report}");
    }
}

/// The clocks of two processes, in milliseconds ahead, may differ by two seconds.
#[test]
fn two_processes() {
    let all = [[0, 2000], [0, 0], [2000, 0]];
    for leads in &all[..if is_full() { 3 } else { 1 }] {
        let calls = |policy| Calls::new(policy, leads, Duration::ZERO);
        hold(&format!("{leads:?}"), calls, Bounds::new(1, 1, STEPS));
        if is_full() {
            hold(&format!("{leads:?}"), calls, Bounds::new(1, 2, STEPS));
            hold(&format!("{leads:?}"), calls, Bounds::new(2, 1, STEPS));
        }
    }
}

#[test]
fn without_a_deadline_of_the_platform() {
    let calls = |policy| Calls {
        deadline: None,
        ..Calls::new(policy, &[2000, 0], Duration::ZERO)
    };
    let faults = if is_full() { 2 } else { 1 };
    hold("no deadline", calls, Bounds::new(faults, 1, &[31_000]));
}

#[test]
fn calls_that_wait() {
    let calls = |policy| Calls::new(policy, &[0, 0], Duration::from_millis(100));
    let faults = usize::from(is_full());
    hold("waiting", calls, Bounds::new(faults, 3, &[100]));
}

#[test]
fn another_call_with_the_same_id() {
    let calls = |policy| Calls {
        inputs: vec!["a", "b"],
        ..Calls::new(policy, &[0, 0], Duration::ZERO)
    };
    let passes = usize::from(is_full());
    hold("other input", calls, Bounds::new(1, passes, STEPS));
}

#[test]
fn a_repetition_in_the_same_process() {
    let calls = |policy| {
        let mut calls = Calls::new(policy, &[0, 0], Duration::ZERO);
        calls.setup.calls = vec![0, 0, 1];
        calls
    };
    let (faults, passes) = if is_full() { (1, 1) } else { (1, 0) };
    hold("same process", calls, Bounds::new(faults, passes, STEPS));
}

#[test]
fn three_processes() {
    let calls = |policy| Calls::new(policy, &[0, 2000, 1000], Duration::ZERO);
    let (faults, passes) = if is_full() { (1, 1) } else { (0, 1) };
    hold("three", calls, Bounds::new(faults, passes, &[3500]));
}

/// A process stops running until its claim is free, with a deadline of the platform or without.
#[test]
fn claims_that_become_free() {
    let limits: [(_, &[u64]); 2] = [
        (Some(Duration::from_secs(4)), &[100, 6500]),
        (None, &[100, 40_000]),
    ];
    for freeze in [Freeze::Stopped, Freeze::Suspended] {
        for (deadline, steps) in limits {
            let calls = |policy| Calls {
                deadline,
                ..Calls::new(policy, &[0, 2000], Duration::ZERO)
            };
            let (faults, steps) = if is_full() {
                (2, steps)
            } else {
                (1, &steps[1..])
            };
            let bounds = Bounds {
                freezes: Some(freeze),
                ..Bounds::new(faults, 1, steps)
            };
            hold(&format!("{freeze:?}, {deadline:?}"), calls, bounds);
        }
    }
}

#[test]
fn random_executions() {
    let executions = if is_full() { 20_000 } else { 300 };
    for policy in POLICIES {
        let mut calls = Calls::new(policy, &[0, 2000, 1000], Duration::from_secs(5));
        calls.setup.calls = vec![0, 1, 2, 0, 1];
        let bounds = Bounds {
            copies: true,
            freezes: Some(Freeze::Stopped),
            ..Bounds::new(4, 6, &[100, 1900, 3500])
        };
        let report = sample(&calls, bounds, executions);
        println!("calls, at most once: {policy}, random: {report}");
        assert!(report.violation.is_none(), "{report}");
    }
}

#[test]
fn stores_that_ignore_conditions_are_noticed() {
    for conditions in [
        Conditions::WithoutAbsence,
        Conditions::WithoutVersion,
        Conditions::WithoutVersionOfDeletion,
        Conditions::WithoutExpiry,
    ] {
        let mut calls = Calls::new(false, &[0, 0], Duration::ZERO);
        calls.setup.conditions = conditions;
        let name = format!("{conditions:?}");
        let report = search(&name, &calls, Bounds::new(1, 2, STEPS));
        assert!(report.violation.is_some(), "{conditions:?}");
    }
}

/// The search would notice if a process did not recognize its own write.
#[test]
fn conflicts_without_versions_are_noticed() {
    let mut calls = Calls::new(false, &[0, 0], Duration::ZERO);
    calls.setup.conditions = Conditions::WithoutVersionInConflict;
    let report = search("no versions", &calls, Bounds::new(1, 0, &[]));
    assert!(report.violation.is_some());
}

/// The search would notice if the margin for the difference of clocks were too small.
#[test]
fn clocks_that_differ_too_much_are_noticed() {
    for policy in POLICIES {
        let calls = Calls::new(policy, &[0, 3000], Duration::ZERO);
        let report = search("clocks", &calls, Bounds::new(0, 2, STEPS));
        assert!(report.violation.is_some());
    }
}

/// The search would notice if a process ran a tool after the end of its claim.
#[test]
fn freezes_that_no_clock_shows_are_noticed() {
    let calls = Calls::new(false, &[0, 0], Duration::ZERO);
    let bounds = Bounds {
        freezes: Some(Freeze::Unnoticed),
        ..Bounds::new(1, 1, &[6500])
    };
    let report = search("unnoticed", &calls, bounds);
    assert!(report.violation.is_some());
}
