//! Checks that a history keeps the promises of `docs/idempotency.md`.
//!
//! The rules follow from the page and from what the plan did to the run, not from the code of the
//! library. Of the store's requests they use only that a claim, an outcome or a withdrawal was
//! written.

mod facts;
mod kept;
mod repeats;
mod responses;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::{history::History, plan::Plan};
use facts::Facts;

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// A description of the violation.
    pub text: String,
}

/// A rule for histories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// An attempt has at most one effect.
    OneEffectPerAttempt,
    /// The effect of an at-most-once tool happens at most once.
    AtMostOnce,
    /// A recorded tool has a second effect only for a documented reason.
    ReasonToRepeat,
    /// A repeated call runs only when its claim is free.
    ClaimHeld,
    /// No two attempts of a call run its tool at the same time.
    NoOverlap,
    /// A tool runs only for an attempt that has claimed the call.
    Claimed,
    /// A claim or an outcome is replaced or deleted only by its own attempt, unless it is free.
    Kept,
    /// A call whose outcome is recorded does not run again.
    RecordedStays,
    /// A response states only what happened.
    TrueResponse,
    /// A response that says that nothing ran is right.
    TrueDenial,
    /// A replay equals the recorded outcome, byte for byte.
    EqualReplays,
    /// Another call with the same id is rejected, and only such a call.
    OtherCallRejected,
    /// Calls of an idempotent tool are not recorded.
    Unrecorded,
    /// A call is not blocked after its claim is free.
    NotStuck,
    /// A process ends only when it is killed.
    NoExit,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.text)
    }
}

/// Checks a history of a plan.
#[must_use]
pub fn check(plan: &Plan, history: &History) -> Vec<Violation> {
    let facts = Facts::of(plan, history);
    let mut violations = Vec::new();
    violations.extend(repeats::check(&facts));
    violations.extend(kept::check(&facts));
    violations.extend(responses::check(&facts));
    violations
}

/// A violation of a rule.
fn violation(rule: Rule, text: impl Into<String>) -> Violation {
    Violation {
        rule,
        text: text.into(),
    }
}
