//! The rule for what is kept of a call: the claim, and then the outcome.

use super::{Rule, Violation, facts::Facts, repeats::ROUNDING, violation};
use crate::{
    history::{Attempt, Request, Time},
    plan::Policy,
    run::CLOCK_MARGIN,
};

pub(super) fn check(facts: &Facts) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut kept: Option<Kept> = None;
    for (at, attempt, request) in &facts.writes {
        let is_own = kept.as_ref().is_some_and(|kept| kept.attempt == *attempt);
        let is_allowed = match (request, &kept) {
            (Request::Claim, None) => true,
            (Request::Claim, Some(kept)) => is_own || kept.is_free(facts, *at),
            (Request::Record | Request::Release, _) => is_own,
        };
        if !is_allowed {
            let text = format!("the {request:?} of attempt {attempt}, after {kept:?}");
            violations.push(violation(Rule::Kept, text));
        }
        kept = (*request != Request::Release).then_some(Kept {
            attempt: *attempt,
            is_outcome: *request == Request::Record,
        });
    }
    violations
}

/// A claim or an outcome.
#[derive(Debug)]
struct Kept {
    attempt: Attempt,
    is_outcome: bool,
}

impl Kept {
    /// True if another attempt may claim the call.
    fn is_free(&self, facts: &Facts, now: Time) -> bool {
        let Some(it) = facts.attempts.get(&self.attempt) else {
            return false;
        };
        // A claim without any time left is free at once: nothing runs.
        let had_time = it.claimed.is_some_and(|claimed| claimed < it.deadline);
        let free_at = it.deadline + if had_time { CLOCK_MARGIN } else { Time::ZERO };
        let is_over = free_at <= now + ROUNDING;
        !self.is_outcome && facts.policy != Policy::AtMostOnce && is_over
    }
}
