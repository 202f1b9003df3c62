//! Searches the interleavings of calls that outlast their requests: of their hand-over, their start
//! and their work, of questions about them and of their cancellation, in processes that share a
//! store.

mod ledger;
mod scenario;

use std::time::Duration;

use scenario::{
    Step::{self, Call, Cancel, Get, Work},
    Tasks,
};

use crate::{
    Bounds, bounds,
    network::Conditions,
    search::{self, violates},
};

/// Searches for a violation with both policies.
#[track_caller]
fn hold(name: &str, leads: [u64; 2], steps: &[(Step, usize)], bounds: Bounds) {
    hold_with(name, |policy| Tasks::new(policy, &leads, steps), bounds);
}

#[track_caller]
fn hold_with(name: &str, tasks: impl Fn(bool) -> Tasks, bounds: Bounds) {
    for policy in [false, true] {
        let name = format!("tasks, at most once: {policy}, {name}");
        search::hold(&name, &tasks(policy), bounds);
    }
}

/// The clock of the second process is ahead.
const AHEAD: [u64; 2] = [0, 2000];

/// The event arrives twice, in the process of the call and in another one. A step for which it is too
/// early does nothing: so the event may also arrive once or never. After some time, it is too late.
#[test]
fn events_that_arrive_twice_or_late() {
    let steps = [(Call(0), 0), (Work(0), 0), (Work(0), 1)];
    for leads in [AHEAD, [2000, 0]] {
        hold("twice", leads, &steps, bounds(1, 0, &[]));
        hold("twice, late", leads, &steps, bounds(0, 1, &[3500, 302_500]));
    }
}

/// The client asks all the time, also in a process whose clock is ahead, while the worker is slow.
#[test]
fn statuses_that_do_not_change_back() {
    let steps = [(Call(0), 0), (Work(0), 0), (Get(0), 1)];
    hold("asked", AHEAD, &steps, bounds(0, 2, &[5500]));
    hold("asked, late", AHEAD, &steps, bounds(0, 2, &[151_500]));
}

/// Before the task starts, or while it runs: it is told some time later.
#[test]
fn tasks_that_are_cancelled() {
    for steps in [
        [(Call(0), 0), (Cancel(0), 1), (Work(0), 0)],
        [(Call(0), 0), (Work(0), 0), (Cancel(0), 1)],
    ] {
        hold("cancelled", AHEAD, &steps, bounds(1, 0, &[]));
        hold("cancelled, later", AHEAD, &steps, bounds(0, 1, &[3500]));
    }
}

/// The client repeats its call, which may become another task.
#[test]
fn calls_that_are_repeated() {
    let steps = [(Call(0), 0), (Call(0), 1), (Work(0), 1), (Work(1), 0)];
    hold("repeated", AHEAD, &steps, bounds(1, 0, &[]));
    let steps = [(Call(0), 0), (Work(0), 0), (Call(0), 1), (Work(1), 1)];
    hold("repeated, later", AHEAD, &steps, bounds(0, 1, &[10_500]));
    let steps = [(Call(0), 1), (Cancel(0), 1), (Call(0), 0), (Work(1), 0)];
    hold("repeated, cancelled", AHEAD, &steps, bounds(0, 1, &[100]));
}

/// The events of two tasks arrive in another order.
#[test]
fn two_tasks() {
    let steps = [(Call(0), 0), (Call(1), 0), (Work(1), 0), (Work(0), 1)];
    hold("two", [0, 0], &steps, bounds(0, 0, &[]));
}

/// The call waits for its outcome for a moment.
#[test]
fn calls_that_wait() {
    let steps = [(Call(0), 0), (Work(0), 1)];
    let wait = Duration::from_millis(50);
    let tasks = |policy| Tasks::waiting(policy, &AHEAD, &steps, wait);
    hold_with("waiting", tasks, bounds(1, 1, &[30]));
}

mod long {
    use super::*;

    /// The worker is suspended until its task is over.
    #[test]
    #[ignore = "takes half a minute; run .ci/long"]
    fn workers_that_are_suspended() {
        let steps = [(Call(0), 1), (Work(0), 0), (Get(0), 1)];
        let tasks = |policy| {
            let mut tasks = Tasks::new(policy, &AHEAD, &steps);
            tasks.setup.suspends = true;
            tasks
        };
        hold_with("suspended", tasks, bounds(1, 1, &[10_500]));
    }
}

#[test]
fn stores_that_ignore_conditions_are_noticed() {
    let twice = [(Call(0), 0), (Work(0), 0), (Work(0), 1), (Get(0), 1)];
    let repeated = [(Call(0), 0), (Call(0), 1), (Work(0), 0), (Work(1), 1)];
    let all = [
        (Conditions::WithoutAbsence, repeated),
        (Conditions::WithoutVersion, twice),
    ];
    for (conditions, steps) in all {
        let mut tasks = Tasks::new(false, &[0, 0], &steps);
        tasks.setup.conditions = conditions;
        let name = format!("tasks, {conditions:?}");
        assert!(violates(&name, &tasks, bounds(0, 0, &[])), "{name}");
    }
}

/// The search would notice if the margin for the difference of clocks were too small.
#[test]
fn clocks_that_differ_too_much_are_noticed() {
    let steps = [(Call(0), 0), (Work(0), 0), (Call(0), 1), (Work(1), 1)];
    let tasks = Tasks::new(false, &[0, 7000], &steps);
    assert!(violates("tasks, clocks", &tasks, bounds(0, 1, &[3500])));
}
