//! The outcomes of duplicate calls, which do not run.

use crate::tool::reason::Reason;
use std::time::{Duration, SystemTime};

use super::{Deduplication, RecordedOutcome, attempt::CLOCK_MARGIN};
use crate::{
    Failure,
    idempotency::{
        CallRecord, CallState,
        outcome::{TimedResult, decode},
    },
};

impl Deduplication {
    /// Returns the outcome that the record of a call determines. `None` while the call is running,
    /// or if it may soon run again.
    pub(super) fn recorded_outcome(&self, record: &CallRecord) -> Option<RecordedOutcome> {
        let now = self.clock.now();
        match &record.state {
            // The call is over, but not free yet: it must not run again.
            CallState::Running { until }
                if record.at_most_once && is_over(*until, now) && now < record.free_at =>
            {
                Some(replay((Duration::ZERO, Err(cut_off()))))
            }
            // The call is still running, or will soon be free.
            CallState::Running { .. } => None,
            state => Some(state.outcome()),
        }
    }
}

impl CallState {
    /// Returns the outcome of a call that has ended.
    pub(super) fn outcome(&self) -> RecordedOutcome {
        let kept = match self {
            Self::Finished(bytes) => decode(bytes),
            Self::Running { .. } | Self::OutcomeDropped => None,
        };
        replay(kept.unwrap_or_else(|| (Duration::ZERO, Err(not_kept()))))
    }
}

fn replay((duration, result): TimedResult) -> RecordedOutcome {
    RecordedOutcome {
        duration,
        result,
        is_replay: true,
        task: None,
    }
}

/// Returns true if the call is over even by the clock of the process that runs it.
pub(super) fn is_over(until: SystemTime, now: SystemTime) -> bool {
    now.duration_since(until)
        .is_ok_and(|since| since >= CLOCK_MARGIN)
}

pub(super) fn still_running(waited: Duration) -> RecordedOutcome {
    RecordedOutcome {
        duration: waited,
        result: Err(
            Failure::internal(Reason::Running, "This call is still running")
                .developer_message("A call with the same call_id has not ended yet.")
                .retry_after(Duration::from_secs(1)),
        ),
        is_replay: false,
        task: None,
    }
}

pub(super) fn cut_off() -> Failure {
    Failure::internal(
        Reason::CutOff,
        "This call was cut off, and may have had its effect",
    )
    .developer_message("The process that ran the tool ended before it recorded an outcome.")
    .prompt(
        "Do not call the tool again without asking the user whether the first call did its work.",
    )
}

fn not_kept() -> Failure {
    let message = "This call has run, and its outcome is no longer available";
    Failure::internal(Reason::NotKept, message)
        .developer_message(
            "The outcome was too large to be kept, had to make room for others, or cannot be read.",
        )
        .prompt("Do not call the tool again for its effect, which may already have happened.")
}
