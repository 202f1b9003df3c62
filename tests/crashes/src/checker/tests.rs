//! Handmade histories, good and bad.

use std::time::Duration;

use super::{Rule, check};
use crate::{
    history::{Answer, Event, History, Kill, Outcome, Request, What},
    plan::{Behavior, CLEAN, Fault, Plan, Policy, Step},
};

/// A history under construction. Times are in milliseconds.
struct Story {
    plan: Plan,
    history: History,
}

fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

const CLAIM: Request = Request::Claim;
const RECORD: Request = Request::Record;
const RELEASE: Request = Request::Release;

fn failure(message: &str, may_retry: bool) -> Outcome {
    Outcome::Failure(message.to_owned(), may_retry)
}

fn running() -> Outcome {
    failure("This call is still running", true)
}

fn cut_off() -> Outcome {
    failure("This call was cut off, and may have had its effect", false)
}

impl Story {
    fn new(policy: Policy) -> Self {
        let mut plan = Plan::new(0);
        plan.policy = policy;
        plan.attempts.clear();
        Self {
            plan,
            history: History::default(),
        }
    }

    fn at(mut self, time: u64, what: What) -> Self {
        self.history.0.push(Event { at: ms(time), what });
        self
    }

    fn delivered(self, time: u64, attempt: usize) -> Self {
        self.delivered_item(time, attempt, 0)
    }

    fn delivered_item(self, time: u64, attempt: usize, item: u32) -> Self {
        let deadline = ms(time + 400);
        self.at(
            time,
            What::Delivered {
                attempt,
                instance: attempt,
                item,
                deadline,
            },
        )
    }

    /// A request to the store that was received and written.
    fn stored(self, time: u64, attempt: usize, request: Request) -> Self {
        let received = What::StoreReceived(attempt, request);
        self.at(time, received)
            .at(time, What::StoreApplied(attempt, request, true))
    }

    fn ran(self, time: u64, attempt: usize) -> Self {
        self.at(time, What::EffectReceived(attempt, 0))
    }

    /// The tool ran, and had its effect, which has the attempt's number.
    fn effect(self, time: u64, attempt: usize) -> Self {
        let applied = What::EffectApplied(attempt, 0, attempt as u64);
        self.ran(time, attempt).at(time, applied)
    }

    fn answered_with(self, time: u64, attempt: usize, outcome: Outcome, is_replay: bool) -> Self {
        let body = format!("{outcome:?}");
        let answer = Answer {
            is_replay,
            outcome,
            body,
        };
        self.at(
            time,
            What::Answered {
                attempt,
                is_accepted: true,
                answer,
            },
        )
    }

    fn answered(self, time: u64, attempt: usize, outcome: Outcome) -> Self {
        self.answered_with(time, attempt, outcome, false)
    }

    fn replayed(self, time: u64, attempt: usize, outcome: Outcome) -> Self {
        self.answered_with(time, attempt, outcome, true)
    }

    fn killed(self, time: u64, attempt: usize) -> Self {
        let kill = Kill::Step(Step::AfterEffect);
        self.at(time, What::Killed(attempt, Some(attempt), kill))
    }

    /// A call that runs, and is recorded and answered.
    fn completed(self, time: u64, attempt: usize) -> Self {
        self.delivered(time, attempt)
            .stored(time + 1, attempt, CLAIM)
            .effect(time + 2, attempt)
            .stored(time + 3, attempt, RECORD)
            .answered(time + 4, attempt, Outcome::Value(attempt as u64, 0))
    }

    /// A call whose process is killed after its effect.
    fn cut_short(self, time: u64, attempt: usize) -> Self {
        self.delivered(time, attempt)
            .stored(time + 1, attempt, CLAIM)
            .effect(time + 2, attempt)
            .killed(time + 3, attempt)
    }

    /// The broken rules.
    #[track_caller]
    fn breaks(self, expected: &[Rule]) {
        let violations = check(&self.plan, &self.history);
        let mut rules: Vec<_> = violations.iter().map(|it| it.rule).collect();
        rules.sort_unstable();
        rules.dedup();
        assert_eq!(rules, expected, "{violations:#?}\n{}", self.history);
    }
}

const RECORDED: [Policy; 2] = [Policy::Recorded, Policy::AtMostOnce];

#[test]
fn a_call_and_its_replays_are_correct() {
    for policy in RECORDED {
        Story::new(policy)
            .completed(0, 0)
            .delivered(10, 1)
            .replayed(11, 1, Outcome::Value(0, 0))
            .delivered_item(20, 2, 1)
            .answered(21, 2, Outcome::IdReused)
            .breaks(&[]);
    }
}

#[test]
fn a_call_may_repeat_after_the_death_of_its_process() {
    let dead = |policy| {
        Story::new(policy)
            .cut_short(0, 0)
            .delivered(100, 1)
            .answered(101, 1, running())
    };
    dead(Policy::Recorded).completed(2400, 2).breaks(&[]);
    dead(Policy::AtMostOnce)
        .delivered(2400, 2)
        .replayed(2401, 2, cut_off())
        .breaks(&[]);
    dead(Policy::AtMostOnce)
        .completed(2400, 2)
        .breaks(&[Rule::AtMostOnce, Rule::Kept]);
    // The claim is not free yet.
    dead(Policy::Recorded)
        .completed(2300, 2)
        .breaks(&[Rule::ClaimHeld, Rule::Kept]);
    // The effect of the first attempt, which did not return it.
    dead(Policy::Recorded)
        .delivered(2400, 2)
        .replayed(2401, 2, Outcome::Value(0, 0))
        .breaks(&[]);
}

#[test]
fn every_documented_reason_permits_a_repetition() {
    let released = |behavior| {
        let mut story = Story::new(Policy::Recorded);
        let attempt = crate::plan::AttemptPlan {
            behavior,
            ..CLEAN.clone()
        };
        story.plan.attempts = vec![attempt];
        story
            .delivered(0, 0)
            .stored(1, 0, CLAIM)
            .effect(2, 0)
            .stored(3, 0, RELEASE)
            .answered(4, 0, failure("The tool stopped", false))
            .completed(10, 1)
    };
    released(Behavior::Panic).breaks(&[]);
    released(Behavior::Hang).breaks(&[]);
    released(Behavior::Value).breaks(&[Rule::ReasonToRepeat]);
    Story::new(Policy::Recorded)
        .delivered(0, 0)
        .stored(1, 0, CLAIM)
        .effect(2, 0)
        .at(3, What::StoreFault(0, RECORD, Fault::Unavailable))
        .answered(300, 0, Outcome::Value(0, 0))
        .completed(2400, 1)
        .breaks(&[]);
    // A lost claim is no reason.
    Story::new(Policy::Recorded)
        .delivered(0, 0)
        .stored(1, 0, CLAIM)
        .at(1, What::StoreFault(0, CLAIM, Fault::ResponseLost))
        .effect(2, 0)
        .answered(300, 0, Outcome::Value(0, 0))
        .completed(2400, 1)
        .breaks(&[Rule::ReasonToRepeat]);
}

#[test]
fn an_attempt_has_one_effect() {
    for policy in [Policy::Idempotent, Policy::Recorded, Policy::AtMostOnce] {
        let mut story = Story::new(policy).delivered(0, 0);
        if policy != Policy::Idempotent {
            story = story.stored(1, 0, CLAIM);
        }
        let story = story.effect(2, 0).at(3, What::EffectApplied(0, 0, 7));
        let mut expected = vec![Rule::OneEffectPerAttempt];
        match policy {
            Policy::Idempotent => {}
            Policy::Recorded => expected.push(Rule::ReasonToRepeat),
            Policy::AtMostOnce => expected.push(Rule::AtMostOnce),
        }
        story.breaks(&expected);
    }
}

#[test]
fn two_attempts_do_not_run_at_once() {
    Story::new(Policy::Recorded)
        .delivered(0, 0)
        .delivered(0, 1)
        .stored(1, 0, CLAIM)
        .stored(1, 1, CLAIM)
        .ran(2, 0)
        .ran(3, 1)
        .stored(4, 0, RELEASE)
        .answered(5, 0, failure("The shop is busy", true))
        .stored(6, 1, RELEASE)
        .answered(7, 1, failure("The shop is busy", true))
        .breaks(&[Rule::NoOverlap, Rule::Kept]);
}

#[test]
fn a_tool_runs_only_with_a_claim() {
    Story::new(Policy::AtMostOnce)
        .delivered(0, 0)
        .effect(2, 0)
        .stored(3, 0, CLAIM)
        .stored(4, 0, RECORD)
        .answered(5, 0, Outcome::Value(0, 0))
        .breaks(&[Rule::Claimed]);
}

#[test]
fn a_recorded_call_does_not_run_again() {
    Story::new(Policy::Recorded)
        .completed(0, 0)
        .completed(10, 1)
        .breaks(&[Rule::ReasonToRepeat, Rule::Kept, Rule::RecordedStays]);
    // Not even if its tool does nothing.
    Story::new(Policy::AtMostOnce)
        .completed(0, 0)
        .delivered(10, 1)
        .stored(11, 1, CLAIM)
        .ran(12, 1)
        .killed(13, 1)
        .breaks(&[Rule::Kept, Rule::RecordedStays]);
    // A client was told that the call was cut off.
    Story::new(Policy::AtMostOnce)
        .delivered(0, 0)
        .stored(1, 0, CLAIM)
        .killed(2, 0)
        .delivered(2500, 1)
        .replayed(2501, 1, cut_off())
        .completed(2600, 2)
        .breaks(&[Rule::Kept, Rule::RecordedStays]);
}

#[test]
fn a_withdrawal_may_arrive_late() {
    let cut_off = || {
        Story::new(Policy::AtMostOnce)
            .delivered(0, 0)
            .stored(1, 0, CLAIM)
            .answered(2, 0, failure("The shop is busy", true))
            .delivered(2500, 1)
            .replayed(2501, 1, cut_off())
    };
    cut_off()
        .stored(2502, 0, RELEASE)
        .completed(2510, 2)
        .breaks(&[]);
    cut_off()
        .completed(2510, 2)
        .breaks(&[Rule::Kept, Rule::RecordedStays]);
}

#[test]
fn what_is_kept_of_a_call_is_replaced_only_by_its_own_attempt() {
    let overtaken = || {
        Story::new(Policy::Recorded)
            .cut_short(0, 0)
            .delivered(2400, 1)
            .stored(2401, 1, CLAIM)
            .effect(2402, 1)
    };
    let answered = |story: Story| story.answered(2410, 1, Outcome::Value(1, 0));
    answered(overtaken().stored(2405, 1, RECORD)).breaks(&[]);
    // The claim of the other attempt is deleted while its tool runs.
    answered(overtaken().stored(2404, 0, RELEASE)).breaks(&[Rule::Kept]);
    // Its outcome is replaced.
    answered(overtaken().stored(2405, 1, RECORD))
        .stored(2420, 0, RECORD)
        .breaks(&[Rule::ReasonToRepeat, Rule::Kept]);
    answered(overtaken().stored(2405, 1, RECORD))
        .stored(2420, 2, CLAIM)
        .breaks(&[Rule::Kept]);
}

#[test]
fn a_frozen_process_is_like_a_dead_one() {
    let frozen = || {
        Story::new(Policy::Recorded)
            .delivered(0, 0)
            .stored(1, 0, CLAIM)
            .effect(2, 0)
            .at(3, What::Frozen(0, 0))
    };
    frozen()
        .completed(2400, 1)
        .at(2450, What::Thawed(0, 0))
        .answered(2460, 0, Outcome::Value(0, 0))
        .delivered(2500, 2)
        .replayed(2501, 2, Outcome::Value(1, 0))
        .breaks(&[]);
    // The request for the effect was on its way.
    Story::new(Policy::Recorded)
        .delivered(0, 0)
        .stored(1, 0, CLAIM)
        .at(2, What::Frozen(0, 0))
        .effect(3, 0)
        .completed(2400, 1)
        .breaks(&[]);
    frozen()
        .completed(2300, 1)
        .breaks(&[Rule::ClaimHeld, Rule::Kept]);
    // A tool that is started after its claim has become free.
    Story::new(Policy::Recorded)
        .delivered(0, 0)
        .stored(1, 0, CLAIM)
        .at(2, What::Frozen(0, 0))
        .completed(2400, 1)
        .at(2450, What::Thawed(0, 0))
        .ran(2451, 0)
        .breaks(&[Rule::RecordedStays]);
}

#[test]
fn a_response_states_what_happened() {
    for outcome in [
        // No such effect, another input, and unreadable.
        Outcome::Value(9, 0),
        Outcome::Value(0, 1),
        Outcome::Unknown,
    ] {
        Story::new(Policy::Recorded)
            .delivered(0, 0)
            .stored(1, 0, CLAIM)
            .effect(2, 0)
            .stored(3, 0, RECORD)
            .answered(4, 0, outcome)
            .breaks(&[Rule::TrueResponse]);
    }
    // An effect that happened later.
    Story::new(Policy::Recorded)
        .delivered(0, 0)
        .stored(1, 0, CLAIM)
        .stored(2, 0, RECORD)
        .answered(3, 0, Outcome::Value(0, 0))
        .effect(4, 0)
        .breaks(&[Rule::RecordedStays, Rule::TrueResponse]);
    // A replay of what was never recorded.
    Story::new(Policy::Recorded)
        .delivered(0, 0)
        .replayed(1, 0, failure("The order was refused", false))
        .breaks(&[Rule::TrueResponse]);
    // The effect of another attempt, without the mark of a replay.
    Story::new(Policy::Idempotent)
        .delivered(0, 0)
        .effect(1, 0)
        .answered(2, 0, Outcome::Value(0, 0))
        .delivered(3, 1)
        .answered(4, 1, Outcome::Value(0, 0))
        .breaks(&[Rule::TrueResponse]);
}

#[test]
fn a_response_that_denies_a_run_is_right() {
    for outcome in [Outcome::Unprotected, running()] {
        Story::new(Policy::Recorded)
            .delivered(0, 0)
            .stored(1, 0, CLAIM)
            .effect(2, 0)
            .stored(3, 0, RELEASE)
            .answered(4, 0, outcome.clone())
            .breaks(if outcome == Outcome::Unprotected {
                &[Rule::TrueDenial]
            } else {
                &[Rule::TrueDenial, Rule::NotStuck]
            });
    }
}

#[test]
fn replays_are_equal() {
    let mut story = Story::new(Policy::Recorded)
        .completed(0, 0)
        .delivered(10, 1);
    let outcome = Outcome::Value(0, 0);
    let body = "another body".to_owned();
    let answer = Answer {
        is_replay: true,
        outcome,
        body,
    };
    story = story.at(
        11,
        What::Answered {
            attempt: 1,
            is_accepted: true,
            answer,
        },
    );
    story.breaks(&[Rule::EqualReplays]);
}

#[test]
fn a_recorded_outcome_is_replayed() {
    for (outcome, expected) in [
        (running(), vec![Rule::RecordedStays, Rule::NotStuck]),
        (cut_off(), vec![Rule::RecordedStays]),
        (
            Outcome::IdReused,
            vec![Rule::RecordedStays, Rule::OtherCallRejected],
        ),
        (Outcome::Unprotected, vec![]),
    ] {
        Story::new(Policy::AtMostOnce)
            .completed(0, 0)
            .delivered(10, 1)
            .answered(11, 1, outcome)
            .breaks(&expected);
    }
}

#[test]
fn another_call_with_the_same_id_is_rejected() {
    Story::new(Policy::Recorded)
        .completed(0, 0)
        .delivered_item(10, 1, 1)
        .replayed(11, 1, Outcome::Value(0, 0))
        .breaks(&[Rule::RecordedStays, Rule::TrueResponse]);
    Story::new(Policy::Recorded)
        .delivered(0, 0)
        .answered(1, 0, Outcome::IdReused)
        .breaks(&[Rule::OtherCallRejected]);
}

#[test]
fn calls_of_an_idempotent_tool_are_not_recorded() {
    Story::new(Policy::Idempotent)
        .completed(0, 0)
        .breaks(&[Rule::Unrecorded]);
    Story::new(Policy::Idempotent)
        .delivered(0, 0)
        .effect(1, 0)
        .answered(2, 0, Outcome::Value(0, 0))
        .delivered(3, 1)
        .effect(4, 1)
        .answered(5, 1, Outcome::Value(1, 0))
        .breaks(&[]);
}

#[test]
fn a_call_is_not_blocked_for_longer_than_its_claim() {
    let dead = || Story::new(Policy::Recorded).cut_short(0, 0);
    dead()
        .delivered(2390, 1)
        .answered(2400, 1, running())
        .breaks(&[]);
    dead()
        .delivered(2500, 1)
        .answered(2600, 1, running())
        .breaks(&[Rule::NotStuck]);
    dead().at(9000, What::GaveUp(0)).breaks(&[Rule::NotStuck]);
}

#[test]
fn processes_do_not_end_by_themselves() {
    Story::new(Policy::Recorded)
        .completed(0, 0)
        .at(5, What::Exited(0))
        .breaks(&[Rule::NoExit]);
}
