//! Every rule of the checker, with a handmade history that breaks it.

use std::{slice::from_ref, time::Duration};

use crate::{
    check::{Rule, check},
    history::{Answer, Attempt, History, Kind, Outcome},
    plan::{Plan, Policy, Request, Step, TaskPlan},
};

fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

fn answer(outcome: Outcome, is_replay: bool) -> Answer {
    let body = format!("{outcome:?}");
    Answer {
        is_replay,
        outcome,
        body,
    }
}

/// Returns an attempt that gets a response without running.
fn answered(time: u64, outcome: Outcome, is_replay: bool) -> Attempt {
    Attempt {
        delivered: ms(time),
        deadline: ms(time + 400),
        answer: Some((ms(time + 4), answer(outcome, is_replay))),
        ..Attempt::default()
    }
}

/// Returns an attempt that runs, has its effect, and is recorded.
fn completed(time: u64, serial: u64) -> Attempt {
    Attempt {
        claimed: Some(ms(time + 1)),
        ran: Some(ms(time + 2)),
        effects: vec![serial],
        recorded: Some(ms(time + 3)),
        ..answered(time, Outcome::Value(serial, 0), false)
    }
}

/// Returns an attempt whose process is killed after its effect.
fn cut_short(time: u64, serial: u64) -> Attempt {
    Attempt {
        recorded: None,
        answer: None,
        died: Some(Step::AfterEffect),
        ..completed(time, serial)
    }
}

fn plan(policy: Policy) -> Plan {
    let mut plan = Plan::new(0);
    plan.policy = policy;
    plan.tasks = None;
    plan
}

#[track_caller]
fn breaks(policy: Policy, attempts: &[Attempt], expected: &[Rule]) {
    let history = History {
        attempts: attempts.to_vec(),
        ..History::default()
    };
    let broken = check(&plan(policy), &history);
    let mut rules: Vec<_> = broken.iter().map(|(rule, _)| *rule).collect();
    rules.dedup();
    assert_eq!(rules, expected, "{broken:?}\n{history:#?}");
}

const POLICIES: [Policy; 2] = [Policy::Recorded, Policy::AtMostOnce];

#[test]
fn correct_histories_break_no_rule() {
    let other = Attempt {
        item: 1,
        ..answered(20, Outcome::IdReused, false)
    };
    let replay = answered(10, Outcome::Value(0, 0), true);
    let faulty = Attempt {
        faults: vec![Request::Record],
        recorded: None,
        ..completed(0, 0)
    };
    for policy in POLICIES {
        breaks(
            policy,
            &[completed(0, 0), replay.clone(), other.clone()],
            &[],
        );
        let running = answered(10, Outcome::Running, false);
        breaks(policy, &[cut_short(0, 0), running], &[]);
    }
    let again = completed(2400, 1);
    breaks(Policy::Recorded, &[cut_short(0, 0), again.clone()], &[]);
    breaks(Policy::Recorded, &[faulty, again], &[]);
    let cut_off = answered(2400, Outcome::CutOff, true);
    breaks(Policy::AtMostOnce, &[cut_short(0, 0), cut_off], &[]);
}

#[test]
fn effects_have_a_claim_and_are_repeated_for_a_reason() {
    let twice = [cut_short(0, 0), completed(2400, 1)];
    breaks(Policy::AtMostOnce, &twice, &[Rule::OneEffect]);
    let while_held = [cut_short(0, 0), completed(2300, 1)];
    breaks(Policy::Recorded, &while_held, &[Rule::ReasonToRepeat]);
    let unrecorded = Attempt {
        recorded: None,
        ..completed(0, 0)
    };
    let without_reason = [unrecorded, completed(2400, 1)];
    breaks(Policy::Recorded, &without_reason, &[Rule::ReasonToRepeat]);
    let mut twice = completed(0, 0);
    twice.effects.push(1);
    let unclaimed = Attempt {
        claimed: Some(ms(3)),
        ..completed(0, 0)
    };
    for policy in POLICIES {
        breaks(policy, from_ref(&twice), &[Rule::OneEffect]);
        breaks(policy, from_ref(&unclaimed), &[Rule::Claimed]);
    }
}

#[test]
fn a_recorded_outcome_is_replayed_as_it_is() {
    // It runs again, although without an effect.
    let again = Attempt {
        effects: Vec::new(),
        answer: None,
        ..completed(10, 1)
    };
    let mut changed = answered(10, Outcome::Value(0, 0), true);
    changed.answer.as_mut().unwrap().1.body.push(' ');
    let running = answered(10, Outcome::Running, false);
    for policy in POLICIES {
        for (attempt, rule) in [
            (&again, Rule::RecordedStays),
            (&changed, Rule::EqualReplays),
            (&running, Rule::EqualReplays),
        ] {
            breaks(policy, &[completed(0, 0), attempt.clone()], &[rule]);
        }
    }
}

#[test]
fn responses_state_only_what_happened() {
    let claimed = Attempt {
        effects: Vec::new(),
        ..cut_short(0, 0)
    };
    let replayed_nothing = answered(10, Outcome::Failure(false), true);
    let no_such_effect = answered(10, Outcome::Value(7, 0), false);
    let only_call = answered(10, Outcome::IdReused, false);
    for attempt in [replayed_nothing, no_such_effect, only_call] {
        let attempts = [claimed.clone(), attempt];
        breaks(Policy::Recorded, &attempts, &[Rule::TrueResponse]);
    }
    let has_run = Attempt {
        answer: Some((ms(4), answer(Outcome::Running, false))),
        ..claimed
    };
    breaks(Policy::Recorded, &[has_run], &[Rule::TrueResponse]);
}

/// Returns an attempt that is about a task.
fn of_task(kind: Kind, attempt: Attempt) -> Attempt {
    Attempt {
        kind,
        task: Some("task".to_owned()),
        ..attempt
    }
}

/// Returns an attempt that does the work of a task.
fn work(time: u64, serial: u64) -> Attempt {
    let answer = Some((ms(time + 4), answer(Outcome::Done, false)));
    of_task(
        Kind::Work,
        Attempt {
            answer,
            ..completed(time, serial)
        },
    )
}

/// Returns a question about a task, and its answer.
fn asked(time: u64, outcome: Outcome) -> Attempt {
    of_task(Kind::Get, answered(time, outcome, false))
}

#[track_caller]
fn task_breaks(attempts: &[Attempt], stuck: &[&str], expected: &[Rule]) {
    let mut plan = plan(Policy::Recorded);
    plan.tasks = Some(TaskPlan::default());
    let history = History {
        attempts: attempts.to_vec(),
        stuck: stuck.iter().map(ToString::to_string).collect(),
        ..History::default()
    };
    let broken = check(&plan, &history);
    let rules: Vec<_> = broken.iter().map(|(rule, _)| *rule).collect();
    assert_eq!(rules, expected, "{broken:?}\n{history:#?}");
}

#[test]
fn a_task_runs_once_and_ends_once() {
    let (value, cut_off) = (asked(10, Outcome::Value(0, 0)), asked(10, Outcome::CutOff));
    let later = asked(20, Outcome::Value(0, 0));
    let cut_short = || of_task(Kind::Work, cut_short(0, 0));
    task_breaks(&[work(0, 0), value.clone(), later.clone()], &[], &[]);
    let cancelled = of_task(Kind::Cancel, answered(0, Outcome::Done, false));
    task_breaks(&[cut_short(), cut_off.clone()], &[], &[]);
    task_breaks(&[cut_short(), work(2400, 1)], &[], &[Rule::OneEffect]);
    task_breaks(&[cut_short(), cut_off, later], &[], &[Rule::OneEnd]);
    task_breaks(&[cancelled, work(10, 0)], &[], &[Rule::Cancelled]);
    task_breaks(&[cut_short()], &["task"], &[Rule::NotStuck]);
    let never_ran = Attempt {
        claimed: None,
        ran: None,
        effects: Vec::new(),
        recorded: None,
        ..work(0, 0)
    };
    task_breaks(from_ref(&never_ran), &["task"], &[Rule::NotStuck]);
    task_breaks(&[never_ran, value], &[], &[Rule::TrueResponse]);
    let other_end = answered(20, Outcome::Value(7, 0), true);
    let told = asked(10, Outcome::Value(0, 0));
    let rules = [Rule::EqualReplays, Rule::TrueResponse];
    task_breaks(&[work(0, 0), told, other_end], &[], &rules);
    // Cancelled while it ran, it has failed: a repeated call gets the failure.
    let cancelled = of_task(Kind::Cancel, answered(3, Outcome::Done, false));
    let told = asked(10, Outcome::Cancelled);
    let ends = [Outcome::Failure(false), Outcome::Value(0, 0)];
    let [failed, completed] = ends.map(|end| answered(20, end, true));
    let cancelled = [work(0, 0), cancelled, told];
    task_breaks(&[&cancelled[..], &[failed]].concat(), &[], &[]);
    let completed = [&cancelled[..], &[completed]].concat();
    task_breaks(&completed, &[], &[Rule::EqualReplays]);
}

#[test]
fn every_client_gets_an_outcome_and_no_process_ends_by_itself() {
    let history = History {
        gave_up: true,
        exited: true,
        ..History::default()
    };
    let broken = check(&plan(Policy::Recorded), &history);
    assert_eq!(broken, [(Rule::NotStuck, 0), (Rule::NoExit, 0)]);
}
