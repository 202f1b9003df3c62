//! Searches the interleavings of repeated calls: of their claims, runs and records, in processes
//! that share a store.

mod ledger;
mod scenario;

use std::time::Duration;

use scenario::Calls;

use crate::{
    Bounds, bounds, is_full,
    network::Conditions,
    search::{self, violates},
};

/// Whether the tool runs at most once.
const POLICIES: [bool; 2] = [false, true];

/// A moment, and a time after which a running call has nearly reached the platform's deadline.
const STEPS: &[u64] = &[100, 3500];

/// Returns two calls, each in a process with a clock that is ahead by some milliseconds.
fn two(is_at_most_once: bool, leads: [u64; 2]) -> Calls {
    Calls::new(is_at_most_once, &leads, &[0, 1])
}

/// Searches for a violation with both policies.
#[track_caller]
fn hold(name: &str, calls: impl Fn(bool) -> Calls, small: Bounds, large: Bounds) {
    for policy in POLICIES {
        let name = format!("calls, at most once: {policy}, {name}");
        search::hold(&name, &calls(policy), small, large);
    }
}

/// The clocks of two processes may differ by two seconds.
#[test]
fn two_processes() {
    let all = [[0, 2000], [0, 0], [2000, 0]];
    for leads in &all[..if is_full() { 3 } else { 1 }] {
        let (calls, name) = (|policy| two(policy, *leads), format!("two, {leads:?}"));
        hold(&name, calls, bounds(0, 1, STEPS), bounds(2, 1, STEPS));
        if is_full() {
            let later = bounds(1, 2, STEPS);
            hold(&format!("{name}, later"), calls, later, later);
        }
    }
}

#[test]
fn three_processes() {
    let calls = |policy| Calls::new(policy, &[0, 2000, 1000], &[0, 1, 2]);
    hold("three", calls, bounds(0, 0, &[]), bounds(1, 1, &[3500]));
}

/// A process is suspended until its claim is free, with a deadline of the platform or without.
#[test]
fn claims_that_become_free() {
    let all: [(_, &[u64]); 2] = [(Some(4), &[6500]), (None, &[100, 40_000])];
    for (deadline, steps) in &all[..if is_full() { 2 } else { 1 }] {
        let calls = |policy| {
            let mut calls = two(policy, [0, 2000]);
            calls.deadline = deadline.map(Duration::from_secs);
            calls.setup.suspends = true;
            calls
        };
        let name = format!("suspended, {deadline:?}");
        hold(&name, calls, bounds(1, 1, steps), bounds(2, 1, steps));
    }
}

#[test]
fn stores_that_ignore_conditions_are_noticed() {
    for conditions in [Conditions::WithoutAbsence, Conditions::WithoutVersion] {
        let (mut calls, name) = (two(false, [0, 0]), format!("{conditions:?}"));
        calls.setup.conditions = conditions;
        assert!(violates(&name, &calls, bounds(1, 2, STEPS)), "{name}");
    }
}

/// The search would notice if the margin for the difference of clocks were too small.
#[test]
fn clocks_that_differ_too_much_are_noticed() {
    for policy in POLICIES {
        let calls = two(policy, [0, 3000]);
        assert!(violates("clocks", &calls, bounds(0, 2, STEPS)));
    }
}
