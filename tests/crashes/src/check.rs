//! Checks that a history keeps the promises of `docs/idempotency.md`.
//!
//! The rules follow from the page and from what the plan did to the run, not from the code of the
//! library. Of the store's requests they use only that a claim, an outcome or a withdrawal was
//! written.

use std::time::Duration;

mod tasks;

use crate::{
    history::{Answer, Attempt, History, Kind, Outcome, Time},
    plan::{Behavior, Plan, Policy, Request},
    run::CLOCK_MARGIN,
};

/// The difference between the times of the platform and of the function: deadlines are in whole
/// milliseconds.
const ROUNDING: Duration = Duration::from_millis(5);

/// A broken promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rule {
    /// An attempt has at most one effect, and so has a call of a tool that runs at most once.
    OneEffect,
    /// A tool runs only for an attempt that has claimed the call.
    Claimed,
    /// A recorded tool has a second effect only for a documented reason, when its claim is free.
    ReasonToRepeat,
    /// A call whose outcome is recorded does not run again.
    RecordedStays,
    /// A call whose outcome is recorded gets this outcome, byte for byte.
    EqualReplays,
    /// A response states only what happened.
    TrueResponse,
    /// The end of a task does not change.
    OneEnd,
    /// A task that was cancelled before it started does not run.
    Cancelled,
    /// Every client gets an outcome, and every task ends that has started.
    NotStuck,
    /// A process ends only when it is killed.
    NoExit,
}

/// Checks a history of a plan. Returns the broken promises, with the attempts that broke them.
pub(crate) fn check(plan: &Plan, history: &History) -> Vec<(Rule, usize)> {
    let checks = Checks {
        plan,
        attempts: &history.attempts,
    };
    let mut broken: Vec<_> = checks.stuck(&history.stuck).collect();
    for (number, attempt) in history.attempts.iter().enumerate() {
        let mut add = |rule, is_broken: bool| {
            if is_broken {
                broken.push((rule, number));
            }
        };
        add(Rule::OneEffect, checks.repeats_effect(number));
        add(Rule::Claimed, runs_unclaimed(attempt));
        add(Rule::ReasonToRepeat, checks.repeats_without_reason(number));
        add(Rule::RecordedStays, checks.runs_again(attempt));
        add(Rule::Cancelled, checks.runs_cancelled(attempt));
        if let Some((at, answer)) = &attempt.answer {
            add(Rule::EqualReplays, checks.ignores_record(attempt, answer));
            add(Rule::OneEnd, checks.ends_differently(attempt, answer));
            let is_true = if plan.tasks.is_some() {
                checks.is_true_of_task(attempt, *at, answer)
            } else {
                checks.is_true(attempt, *at, answer)
            };
            add(Rule::TrueResponse, !is_true);
        }
    }
    if history.gave_up {
        broken.push((Rule::NotStuck, 0));
    }
    if history.exited {
        broken.push((Rule::NoExit, 0));
    }
    broken
}

fn runs_unclaimed(attempt: &Attempt) -> bool {
    let is_claimed = |ran: Time| attempt.claimed.is_some_and(|claimed| claimed <= ran);
    attempt.ran.is_some_and(|ran| !is_claimed(ran))
}

struct Checks<'a> {
    plan: &'a Plan,
    attempts: &'a [Attempt],
}

impl Checks<'_> {
    /// Returns the first attempt whose outcome was recorded, and when.
    fn recorder(&self) -> Option<(&Attempt, Time)> {
        let recorded = self.attempts.iter();
        let recorded = recorded.filter_map(|it| Some((it, it.recorded?)));
        recorded.min_by_key(|(_, at)| *at)
    }

    /// Returns the last attempt that had an effect before this one did.
    fn previous(&self, number: usize) -> Option<usize> {
        let serial = self.attempts[number].effects.first()?;
        let effects = self.attempts.iter().enumerate();
        let effects = effects.filter_map(|(number, it)| Some((it.effects.first()?, number)));
        let previous = effects.filter(|(other, _)| *other < serial).max();
        previous.map(|(_, number)| number)
    }

    fn repeats_effect(&self, number: usize) -> bool {
        let is_once = self.plan.policy == Policy::AtMostOnce;
        let has_previous = self.previous(number).is_some();
        let repeats_task = self.repeats_task(&self.attempts[number]);
        self.attempts[number].effects.len() > 1 || (is_once && has_previous) || repeats_task
    }

    /// Returns true if the attempt repeats an effect without one of the documented reasons, or
    /// before the claim of that effect's attempt is free.
    fn repeats_without_reason(&self, number: usize) -> bool {
        let last = self.previous(number);
        let last = last.filter(|_| self.plan.policy == Policy::Recorded);
        let (Some(last), Some(ran)) = (last, self.attempts[number].ran) else {
            return false;
        };
        let previous = &self.attempts[last];
        let is_released = previous.released.is_some_and(|released| released <= ran);
        let is_free = is_released || previous.deadline + CLOCK_MARGIN <= ran + ROUNDING;
        !self.may_repeat(last) || !is_free
    }

    /// Returns true for the documented reasons for which a call runs again.
    fn may_repeat(&self, number: usize) -> bool {
        let attempt = &self.attempts[number];
        let answer = attempt
            .answer
            .as_ref()
            .filter(|(at, _)| *at <= attempt.deadline);
        let answer = answer.map(|(_, answer)| &answer.outcome);
        let behavior = attempt.plan.behavior;
        attempt.recorded.is_none()
            && (attempt.died.is_some()
                || matches!(answer, None | Some(Outcome::Failure(true)))
                || matches!(behavior, Behavior::Panic | Behavior::Hang)
                || attempt.faults.contains(&Request::Record)
                || self.was_stopped(attempt))
    }

    fn runs_again(&self, attempt: &Attempt) -> bool {
        let recorded = self.recorder().map(|(_, at)| at);
        recorded.is_some_and(|at| attempt.ran.is_some_and(|ran| at < ran))
    }

    /// Returns true if the outcome was recorded before this attempt, and it got something else.
    fn ignores_record(&self, attempt: &Attempt, answer: &Answer) -> bool {
        let recorder = self.recorder().filter(|_| attempt.kind == Kind::Call);
        let Some((recorder, at)) = recorder else {
            return false;
        };
        if at >= attempt.delivered || answer.outcome == Outcome::Unprotected {
            return false;
        }
        if recorder.item != attempt.item {
            return answer.outcome != Outcome::IdReused;
        }
        if self.plan.tasks.is_some() {
            return self.ignores_end(recorder, at, answer);
        }
        // The recorder's own response may have been lost.
        let replays = self.attempts.iter().filter_map(|it| it.answer.as_ref());
        let mut replays = replays.map(|(_, other)| other).filter(|it| it.is_replay);
        let own = recorder.answer.as_ref().map(|(_, answer)| answer);
        let first = own.or_else(|| replays.find(|it| it.outcome != Outcome::CutOff));
        let is_equal = first.is_some_and(|first| first.body == answer.body);
        !(answer.is_replay && is_equal)
    }

    fn is_true(&self, attempt: &Attempt, at: Time, answer: &Answer) -> bool {
        let (has_run, is_replay) = (attempt.ran.is_some(), answer.is_replay);
        let is_recorded = self.recorder().is_some_and(|(_, recorded)| recorded <= at);
        match &answer.outcome {
            Outcome::Value(serial, item) => {
                let mut effects = self
                    .attempts
                    .iter()
                    .filter(|it| it.effects.contains(serial));
                let is_such = effects.any(|it| it.item == attempt.item && it.item == *item);
                let is_own = attempt.effects.contains(serial);
                is_such && is_own == has_run && is_own != is_replay
            }
            Outcome::Failure(_) => !is_replay || (is_recorded && !has_run),
            Outcome::CutOff => is_replay && !has_run,
            Outcome::Running | Outcome::Unprotected => !has_run,
            Outcome::IdReused => {
                let others = self.attempts.iter().filter(|it| it.item != attempt.item);
                let mut claims = others.filter_map(|it| it.claimed);
                !has_run && claims.any(|claimed| claimed <= at)
            }
            _ => false,
        }
    }
}
