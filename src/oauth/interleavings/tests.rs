use super::Refreshes;
use crate::store::explorer::{Bounds, Conditions, Freeze, Report, explore, is_full, sample};

fn search(name: &str, refreshes: &Refreshes, bounds: Bounds) -> Report {
    let report = explore(refreshes, bounds);
    println!("refreshes, {name}: {report}");
    report
}

#[track_caller]
fn hold(name: &str, leads: &[u64], bounds: Bounds) {
    let copies = is_full();
    let name = format!("{name}, {leads:?}");
    let report = search(&name, &Refreshes::new(leads), Bounds { copies, ..bounds });
    assert!(report.violation.is_none(), "{report}");
}

#[test]
fn faults() {
    let bounds = if is_full() {
        Bounds::new(2, 1, &[100])
    } else {
        Bounds::new(1, 0, &[])
    };
    hold("faults", &[0, 0], bounds);
}

/// No response takes longer than the time limit of its request.
#[test]
fn slow_responses_within_their_limits() {
    let leads: &[u64] = if is_full() { &[0, 0] } else { &[0] };
    hold("slow", leads, Bounds::new(0, 3, &[2900, 7900]));
}

#[test]
fn leases_that_expire() {
    let (passes, all) = if is_full() { (2, 3) } else { (1, 1) };
    for leads in &[[0, 2000], [0, 0], [2000, 0]][..all] {
        for freeze in [Freeze::Stopped, Freeze::Suspended] {
            let bounds = Bounds {
                freezes: Some(freeze),
                ..Bounds::new(1, passes, &[18_000])
            };
            hold(&format!("leases, {freeze:?}"), leads, bounds);
        }
    }
}

#[test]
fn three_processes() {
    let (faults, passes) = if is_full() { (1, 1) } else { (0, 0) };
    hold("three", &[0, 0, 0], Bounds::new(faults, passes, &[100]));
}

#[test]
fn random_executions() {
    let bounds = Bounds {
        copies: true,
        freezes: Some(Freeze::Suspended),
        ..Bounds::new(4, 6, &[100, 2900, 7900, 18_000])
    };
    let executions = if is_full() { 20_000 } else { 300 };
    let report = sample(&Refreshes::new(&[0, 2000, 1000]), bounds, executions);
    println!("refreshes, random: {report}");
    assert!(report.violation.is_none(), "{report}");
}

#[test]
fn stores_that_ignore_conditions_are_noticed() {
    for conditions in [
        Conditions::WithoutAbsence,
        Conditions::WithoutExpiry,
        Conditions::WithoutVersionInConflict,
    ] {
        let mut refreshes = Refreshes::new(&[0, 0]);
        refreshes.setup.conditions = conditions;
        let name = format!("{conditions:?}");
        let report = search(&name, &refreshes, Bounds::new(1, 1, &[100]));
        assert!(report.violation.is_some(), "{conditions:?}");
    }
}

/// The search would notice if a process did not check the time before it uses its lease.
#[test]
fn freezes_that_no_clock_shows_are_noticed() {
    let bounds = Bounds {
        freezes: Some(Freeze::Unnoticed),
        ..Bounds::new(1, 1, &[18_000])
    };
    let report = search("unnoticed", &Refreshes::new(&[0, 2000]), bounds);
    assert!(report.violation.is_some());
}
