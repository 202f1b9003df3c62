//! Searches the interleavings of calls that outlast their requests: of their hand-over, their start
//! and their work, of questions about them and of their cancellation, in processes that share a
//! store.

mod ledger;
mod scenario;

use scenario::{
    Step::{self, Call, Cancel, Get, Work},
    Tasks,
};

use crate::{
    Bounds, bounds, is_full,
    network::Conditions,
    search::{self, violates},
};

/// A moment, and a time after which a running task has nearly reached its time limit.
const STEPS: &[u64] = &[100, 3500];

/// The times until just before the end of the time within which a task has to start, and past that.
const LATE: &[u64] = &[298_500, 2500];

/// Searches for a violation. Within the large bounds, the tool may also run more than once.
#[track_caller]
fn hold(name: &str, tasks: impl Fn(bool) -> Tasks, small: Bounds, large: Bounds) {
    for policy in if is_full() {
        &[true, false][..]
    } else {
        &[true]
    } {
        let name = format!("tasks, at most once: {policy}, {name}");
        search::hold(&name, &tasks(*policy), small, large);
    }
}

/// Returns the steps; within the large bounds, somebody asks for the task, too.
fn asked(steps: &[(Step, usize)]) -> Vec<(Step, usize)> {
    let asks = Some((Get(0), 1)).filter(|_| is_full());
    steps.iter().copied().chain(asks).collect()
}

/// The event arrives twice, in the process of the call and in another one. A step for which it is too
/// early does nothing: so the event may also arrive once or never.
#[test]
fn events_that_arrive_twice() {
    let steps = asked(&[(Call(0), 0), (Work(0), 0), (Work(0), 1)]);
    let tasks = |policy| Tasks::new(policy, &[0, 2000], &steps);
    hold("twice", tasks, bounds(1, 0, &[]), bounds(2, 1, STEPS));
    let all = [[0, 2000], [2000, 0]];
    for leads in &all[..if is_full() { 2 } else { 1 }] {
        let tasks = |policy| Tasks::new(policy, leads, &steps);
        let name = format!("twice, later, {leads:?}");
        hold(&name, tasks, bounds(0, 1, &[3500]), bounds(1, 2, STEPS));
        let name = format!("late, {leads:?}");
        hold(&name, tasks, bounds(0, 1, &[302_500]), bounds(0, 3, LATE));
    }
}

/// The client asks all the time, also in a process whose clock is ahead, while the worker is slow.
#[test]
fn statuses_that_do_not_change_back() {
    let steps = asked(&[(Call(0), 0), (Work(0), 0), (Get(0), 1)]);
    let tasks = |policy| Tasks::new(policy, &[0, 2000], &steps);
    let (small, large) = (bounds(0, 2, &[5500]), bounds(1, 3, &[5500]));
    hold("asked", tasks, small, large);
    let (small, large) = (bounds(0, 2, &[151_500]), bounds(1, 3, LATE));
    hold("asked, late", tasks, small, large);
}

#[test]
fn tasks_that_are_cancelled() {
    let orders = [
        [(Cancel(0), 1), (Work(0), 0)],
        [(Work(0), 0), (Cancel(0), 1)],
    ];
    for [first, second] in orders {
        let name = format!("cancelled, {:?}", first.0);
        let steps = asked(&[(Call(0), 0), first, second]);
        let tasks = |policy| Tasks::new(policy, &[0, 2000], &steps);
        hold(&name, tasks, bounds(1, 0, &[]), bounds(2, 1, STEPS));
        if is_full() {
            let late = bounds(0, 3, LATE);
            hold(&format!("{name}, late"), tasks, late, late);
        }
    }
}

/// The client repeats its call, which may become another task.
#[test]
fn calls_that_are_repeated() {
    let steps = [(Call(0), 0), (Call(0), 1), (Work(0), 1), (Work(1), 0)];
    let tasks = |policy| Tasks::new(policy, &[0, 2000], &steps);
    hold("repeated", tasks, bounds(1, 0, &[]), bounds(2, 1, STEPS));
    let steps = [(Call(0), 0), (Work(0), 0), (Call(0), 1), (Work(1), 1)];
    let tasks = |policy| Tasks::new(policy, &[0, 2000], &steps);
    let (small, large) = (bounds(0, 1, &[10_500]), bounds(1, 2, &[2500, 10_500]));
    hold("repeated, later", tasks, small, large);
    search::hold("tasks, repeated, later", &tasks(false), small, small);
    let steps = [(Call(0), 1), (Cancel(0), 1), (Call(0), 0), (Work(1), 0)];
    let tasks = |policy| Tasks::new(policy, &[0, 2000], &steps);
    let (small, large) = (bounds(0, 1, &[100]), bounds(1, 1, STEPS));
    hold("repeated, cancelled", tasks, small, large);
}

/// The events of two tasks arrive in another order.
#[test]
fn two_tasks() {
    let steps = asked(&[(Call(0), 0), (Call(1), 0), (Work(1), 0), (Work(0), 1)]);
    let tasks = |policy| Tasks::new(policy, &[0, 0], &steps);
    hold("two", tasks, bounds(0, 0, &[]), bounds(1, 0, &[]));
}

/// The call waits for its outcome for a moment.
#[test]
fn calls_that_wait() {
    let steps = [(Call(0), 0), (Work(0), 1)];
    let tasks = |policy| Tasks::waiting(policy, &[0, 2000], &steps);
    let (small, large) = (bounds(1, 1, &[30]), bounds(2, 3, &[30, 3500]));
    hold("waiting", tasks, small, large);
}

/// The worker is suspended until its task is over.
#[test]
fn workers_that_are_suspended() {
    let steps = asked(&[(Call(0), 1), (Work(0), 0), (Get(0), 1)]);
    let tasks = |policy| {
        let mut tasks = Tasks::new(policy, &[0, 2000], &steps);
        tasks.setup.suspends = true;
        tasks
    };
    let (small, large) = (bounds(1, 1, &[10_500]), bounds(2, 1, &[10_500]));
    hold("suspended", tasks, small, large);
    if is_full() {
        let late = bounds(1, 2, LATE);
        hold("suspended, late", tasks, late, late);
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
