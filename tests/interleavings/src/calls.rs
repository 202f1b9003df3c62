//! Searches the interleavings of repeated calls: of their claims, runs and records, in processes
//! that share a store.

mod ledger;
mod scenario;

use scenario::Calls;

use crate::{
    Bounds, bounds,
    network::Conditions,
    search::{self, violates},
};

/// Whether the tool runs at most once.
const POLICIES: [bool; 2] = [false, true];

/// A moment, and a time after which a running call has nearly reached the platform's deadline.
const STEPS: &[u64] = &[100, 3500];

/// Searches for a violation with both policies.
#[track_caller]
fn hold(name: &str, calls: impl Fn(bool) -> Calls, bounds: Bounds) {
    for policy in POLICIES {
        let name = format!("calls, at most once: {policy}, {name}");
        search::hold(&name, &calls(policy), bounds);
    }
}

/// The clocks of two processes may differ by two seconds.
#[test]
fn two_processes() {
    for leads in [[0, 2000], [2000, 0]] {
        let calls = |policy| Calls::new(policy, &leads);
        hold(&format!("two, {leads:?}"), calls, bounds(0, 1, STEPS));
    }
}

#[test]
fn three_processes() {
    let calls = |policy| Calls::new(policy, &[0, 2000, 1000]);
    hold("three", calls, bounds(0, 0, &[]));
}

mod long {
    use super::*;

    /// A process is suspended until its claim is free.
    #[test]
    #[ignore = "takes half a minute; run .ci/long"]
    fn claims_that_become_free() {
        let calls = |policy| {
            let mut calls = Calls::new(policy, &[0, 2000]);
            calls.setup.suspends = true;
            calls
        };
        hold("suspended", calls, bounds(1, 1, &[6500]));
    }
}

#[test]
fn stores_that_ignore_conditions_are_noticed() {
    for conditions in [Conditions::WithoutAbsence, Conditions::WithoutVersion] {
        let (mut calls, name) = (Calls::new(false, &[0, 0]), format!("{conditions:?}"));
        calls.setup.conditions = conditions;
        assert!(violates(&name, &calls, bounds(1, 2, STEPS)), "{name}");
    }
}

/// The search would notice if the margin for the difference of clocks were too small.
#[test]
fn clocks_that_differ_too_much_are_noticed() {
    for policy in POLICIES {
        let calls = Calls::new(policy, &[0, 3000]);
        assert!(violates("clocks", &calls, bounds(0, 2, STEPS)));
    }
}
