//! The rules for the responses to a call.

use std::time::Duration;

use super::{
    Rule, Violation,
    facts::{AttemptFacts, Facts},
    violation,
};
use crate::{
    history::{Answer, Attempt, CUT_OFF, Outcome, Time},
    plan::Policy,
    run::CLOCK_MARGIN,
};

/// The time that a claim may count as held beyond its end: times are rounded, and the function
/// looks at the claim after it was delivered.
const TOLERANCE: Duration = Duration::from_millis(10);

pub(super) fn check(facts: &Facts) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (attempt, it) in &facts.attempts {
        if facts.policy == Policy::Idempotent && it.has_store_requests {
            let text = format!("attempt {attempt} used the store");
            violations.push(violation(Rule::Unrecorded, text));
        }
        if let Some((at, answer)) = &it.answer {
            let response = Response {
                facts,
                attempt: *attempt,
                it,
                at: *at,
                answer,
            };
            violations.extend(response.check());
        }
    }
    if facts.gave_up > 0 {
        violations.push(violation(Rule::NotStuck, "a client got no outcome"));
    }
    if facts.exits > 0 {
        violations.push(violation(Rule::NoExit, "a process ended by itself"));
    }
    violations.extend(replays_differ(facts));
    violations
}

/// The replays of recorded outcomes, which are all the same bytes.
fn replays_differ(facts: &Facts) -> Option<Violation> {
    let (_, recorder, _) = facts.recorder()?;
    let replays = facts.attempts.iter().filter_map(|(attempt, it)| {
        let (_, answer) = it.answer.as_ref()?;
        let is_recorded = answer.is_replay && !is_cut_off(&answer.outcome);
        is_recorded.then_some((*attempt, &*answer.body))
    });
    let mut replays: Vec<_> = replays.collect();
    // The recorder's own response; it may have been dropped, but is the recorded outcome.
    replays.extend(
        recorder
            .answer
            .as_ref()
            .map(|(_, answer)| (0, &*answer.body)),
    );
    let (_, first) = replays.first()?;
    let (attempt, other) = replays.iter().find(|(_, body)| body != first)?;
    let text = format!("attempt {attempt} got {other}, but another got {first}");
    Some(violation(Rule::EqualReplays, text))
}

fn is_cut_off(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failure(message, _) if message == CUT_OFF)
}

/// A response, and what is known about its attempt.
struct Response<'a> {
    facts: &'a Facts,
    attempt: Attempt,
    it: &'a AttemptFacts,
    at: Time,
    answer: &'a Answer,
}

impl Response<'_> {
    fn check(&self) -> Vec<Violation> {
        let mut violations = Vec::new();
        let attempt = self.attempt;
        let outcome = &self.answer.outcome;
        let mut add = |rule, is_broken: bool, text: &str| {
            if is_broken {
                violations.push(violation(
                    rule,
                    format!("attempt {attempt} {text}: {outcome:?}"),
                ));
            }
        };
        let has_run = self.it.ran.is_some();
        add(
            Rule::TrueResponse,
            self.is_untrue(),
            "got what did not happen",
        );
        add(
            Rule::TrueDenial,
            outcome.denies_run() && has_run,
            "ran in spite of its response",
        );
        add(
            Rule::TrueDenial,
            self.answer.is_replay && has_run,
            "ran for a replay",
        );
        let is_unrecorded = self.facts.policy == Policy::Idempotent;
        add(
            Rule::Unrecorded,
            is_unrecorded && self.answer.is_replay,
            "got a replay",
        );
        add(
            Rule::OtherCallRejected,
            self.is_wrongly_rejected(),
            "is the only call",
        );
        add(Rule::NotStuck, self.is_stuck(), "was blocked");
        add(
            Rule::RecordedStays,
            self.ignores_record(),
            "did not get the recorded outcome",
        );
        violations
    }

    /// A value whose effect did not happen, or happened for another input or attempt; a replay of
    /// nothing.
    fn is_untrue(&self) -> bool {
        match &self.answer.outcome {
            Outcome::Unknown => true,
            Outcome::Value(serial, item) => {
                let effects = self.facts.effects.iter();
                let mut effects = effects.filter(|effect| effect.serial == *serial);
                !effects.any(|effect| {
                    let is_own = effect.attempt == self.attempt;
                    let is_input = effect.item == *item && *item == self.it.item;
                    is_input && effect.at <= self.at && is_own != self.answer.is_replay
                })
            }
            outcome if self.answer.is_replay && !is_cut_off(outcome) => {
                self.recorded_by_now().is_none()
            }
            _ => false,
        }
    }

    /// The input of the recorded call, if its outcome was recorded before this response.
    fn recorded_by_now(&self) -> Option<u32> {
        let (_, recorder, at) = self.facts.recorder()?;
        (at <= self.at).then_some(recorder.item)
    }

    fn is_wrongly_rejected(&self) -> bool {
        let others = self.facts.attempts.values();
        let mut others = others.filter(|it| it.item != self.it.item && it.claimed.is_some());
        let is_other = others.any(|it| it.claimed.is_some_and(|claimed| claimed <= self.at));
        self.answer.outcome == Outcome::IdReused && !is_other
    }

    /// True if a call counted as running although every claim was free or settled.
    fn is_stuck(&self) -> bool {
        let others = self.facts.attempts.iter();
        let mut others = others.filter(|(attempt, _)| **attempt != self.attempt);
        let is_held = others.any(|(_, it)| {
            let is_claimed = it.claimed.is_some_and(|claimed| claimed <= self.at);
            let is_settled = it
                .settled()
                .is_some_and(|settled| settled < self.it.delivered);
            let is_free = it.deadline + CLOCK_MARGIN + TOLERANCE < self.it.delivered;
            is_claimed && !is_settled && !is_free
        });
        self.answer.outcome.is_running() && !is_held
    }

    /// True if the outcome was recorded before this attempt, and it got something else.
    fn ignores_record(&self) -> bool {
        let Some((_, recorder, at)) = self.facts.recorder() else {
            return false;
        };
        if at >= self.it.delivered || self.answer.outcome == Outcome::Unprotected {
            return false;
        }
        if recorder.item == self.it.item {
            !self.answer.is_replay || is_cut_off(&self.answer.outcome)
        } else {
            self.answer.outcome != Outcome::IdReused
        }
    }
}
