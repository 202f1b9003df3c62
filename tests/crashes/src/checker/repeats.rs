//! The rules for the effects of a call.

use std::{collections::BTreeSet, time::Duration};

use super::{
    Rule, Violation,
    facts::{AttemptFacts, Effect, Facts},
    violation,
};
use crate::{
    history::{CUT_OFF, Outcome, Request, Time},
    plan::{Behavior, Policy},
    run::CLOCK_MARGIN,
};

/// The difference between the times of the platform and of the function: deadlines are in whole
/// milliseconds.
pub(super) const ROUNDING: Duration = Duration::from_millis(5);

pub(super) fn check(facts: &Facts) -> Vec<Violation> {
    let mut violations = per_attempt(facts);
    if facts.policy == Policy::Idempotent {
        return violations;
    }
    violations.extend(claimed(facts));
    violations.extend(overlaps(facts));
    violations.extend(runs_again(facts));
    match facts.policy {
        Policy::AtMostOnce if facts.effects.len() > 1 => {
            let text = format!("{} effects", facts.effects.len());
            violations.push(violation(Rule::AtMostOnce, text));
        }
        Policy::Recorded => {
            let pairs = facts.effects.windows(2);
            violations.extend(pairs.filter_map(|pair| repeated(facts, &pair[0], &pair[1])));
        }
        _ => {}
    }
    violations
}

fn per_attempt(facts: &Facts) -> Vec<Violation> {
    let mut seen = BTreeSet::new();
    let effects = facts.effects.iter();
    let repeated = effects.filter(|effect| !seen.insert(effect.attempt));
    repeated
        .map(|effect| {
            let text = format!("attempt {} has several", effect.attempt);
            violation(Rule::OneEffectPerAttempt, text)
        })
        .collect()
}

fn claimed(facts: &Facts) -> impl Iterator<Item = Violation> {
    facts.attempts.iter().filter_map(|(attempt, it)| {
        let ran = it.ran?;
        let is_claimed = it.claimed.is_some_and(|claimed| claimed <= ran);
        let text = format!("attempt {attempt} ran without a claim");
        (!is_claimed).then(|| violation(Rule::Claimed, text))
    })
}

fn overlaps(facts: &Facts) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (first, one) in &facts.attempts {
        for (second, other) in &facts.attempts {
            let (Some(begun), Some(later)) = (one.ran, other.ran) else {
                continue;
            };
            let has_ended = one.tool_ended().is_some_and(|end| end <= later);
            if first != second && begun <= later && !has_ended {
                let text = format!("attempt {second} ran while attempt {first} did");
                violations.push(violation(Rule::NoOverlap, text));
            }
        }
    }
    violations
}

/// Runs after the outcome was recorded, or after a client was told that the call was cut off. Such
/// a call may run if its claim was withdrawn after all, by a request that arrived late.
fn runs_again(facts: &Facts) -> impl Iterator<Item = Violation> {
    let recorded = facts.recorder().map(|(_, _, at)| at);
    let cut_off = facts.attempts.values().filter_map(|it| match &it.answer {
        Some((at, answer)) => {
            let is_cut_off =
                matches!(&answer.outcome, Outcome::Failure(message, _) if message == CUT_OFF);
            is_cut_off.then_some(*at)
        }
        None => None,
    });
    let cut_off: Vec<_> = cut_off.collect();
    let late = facts.attempts.iter().filter(move |(_, it)| {
        it.ran.is_some_and(|ran| {
            let released = facts.attempts.values().filter_map(|it| it.released);
            let released = released.filter(|at| *at <= ran).max();
            let was_held = |at: &Time| *at < ran && released.is_none_or(|released| released < *at);
            recorded.is_some_and(|at| at < ran) || cut_off.iter().any(was_held)
        })
    });
    late.map(|(attempt, _)| {
        let text = format!("attempt {attempt} ran although the call had its outcome");
        violation(Rule::RecordedStays, text)
    })
}

/// Checks the reason for the second of two effects of a recorded tool.
fn repeated(facts: &Facts, first: &Effect, second: &Effect) -> Option<Violation> {
    let one = facts.attempts.get(&first.attempt)?;
    let other = facts.attempts.get(&second.attempt)?;
    let begun = other.ran?;
    let pair = format!(
        "attempt {} repeated the effect of attempt {}",
        second.attempt, first.attempt
    );
    if !has_reason(one) {
        return Some(violation(Rule::ReasonToRepeat, pair));
    }
    let free_at = one.deadline + CLOCK_MARGIN;
    let is_released = one.released.is_some_and(|released| released <= begun);
    if !is_released && begun + ROUNDING < free_at {
        let text = format!("{pair} before {free_at:?}");
        return Some(violation(Rule::ClaimHeld, text));
    }
    None
}

/// The documented reasons for which a call runs again.
fn has_reason(attempt: &AttemptFacts) -> bool {
    let may_retry = attempt
        .answer
        .as_ref()
        .is_some_and(|(_, answer)| matches!(answer.outcome, Outcome::Failure(_, true)));
    let is_stopped = matches!(attempt.behavior, Behavior::Panic | Behavior::Hang);
    let is_unrecorded = attempt.faults.contains(&Request::Record);
    attempt.recorded.is_none()
        && (attempt.killed.is_some()
            || attempt.frozen.is_some()
            || is_stopped
            || may_retry
            || is_unrecorded)
}
