//! The history of a run: everything that happened to one `call_id`, as seen from outside of the
//! function.

use std::{fmt, time::Duration};

use crate::plan::{Fault, Step};

/// A time since the run began.
pub type Time = Duration;

/// The events of a run, in order.
#[derive(Clone, Debug, Default)]
pub struct History(pub Vec<Event>);

/// Something that happened.
#[derive(Clone, Debug)]
pub struct Event {
    /// When it happened.
    pub at: Time,
    /// The event itself.
    pub what: What,
}

/// The number of an attempt: one invocation of the function.
pub type Attempt = usize;

/// The number of an effect.
pub type Serial = u64;

/// A kind of event.
#[derive(Clone, Debug)]
pub enum What {
    /// A process received the event of an attempt.
    Delivered {
        /// The attempt.
        attempt: Attempt,
        /// The process.
        instance: usize,
        /// The input.
        item: u32,
        /// The time at which the platform kills the process.
        deadline: Time,
    },
    /// The store received a request.
    StoreReceived(Attempt, Request),
    /// The store applied it. The flag is true if it was written, so that its condition was met.
    StoreApplied(Attempt, Request, bool),
    /// Something other than its response happened to a request.
    StoreFault(Attempt, Request, Fault),
    /// The tool asked for the effect.
    EffectReceived(Attempt, u32),
    /// The effect happened.
    EffectApplied(Attempt, u32, Serial),
    /// The function returned a response. The client gets it if it was accepted.
    Answered {
        /// The attempt.
        attempt: Attempt,
        /// False if the platform dropped the response.
        is_accepted: bool,
        /// The response.
        answer: Answer,
    },
    /// A process was killed, together with its attempt, if it had one.
    Killed(usize, Option<Attempt>, Kill),
    /// A process stopped running, during this attempt.
    Frozen(usize, Attempt),
    /// It continued.
    Thawed(usize, Attempt),
    /// A process ended by itself.
    Exited(usize),
    /// A client with this input got no outcome.
    GaveUp(u32),
}

/// The reason why a process was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kill {
    /// The plan.
    Step(Step),
    /// The deadline of its invocation.
    Deadline,
}

/// The purpose of a request to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Request {
    /// Writes the claim.
    Claim,
    /// Writes the outcome.
    Record,
    /// Deletes the claim.
    Release,
}

/// A response to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// True if the response is marked as a replay.
    pub is_replay: bool,
    /// The outcome.
    pub outcome: Outcome,
    /// The whole body.
    pub body: String,
}

/// The outcome that a response states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The tool's value: the number of the effect, and the item.
    Value(Serial, u32),
    /// A failure: its message, and whether the call may be retried.
    Failure(String, bool),
    /// Another call has the same id.
    IdReused,
    /// The call did not run, because the store did not respond.
    Unprotected,
    /// None of these.
    Unknown,
}

/// The message for a call that another process runs.
pub(crate) const STILL_RUNNING: &str = "This call is still running";
/// The message for a call whose process died.
pub(crate) const CUT_OFF: &str = "This call was cut off, and may have had its effect";

impl Outcome {
    /// True if a client stops retrying.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            Self::Value(..) | Self::IdReused | Self::Unknown => true,
            Self::Failure(_, may_retry) => !may_retry,
            Self::Unprotected => false,
        }
    }

    /// True if the call is running elsewhere, as far as the function knows.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self, Self::Failure(message, _) if message == STILL_RUNNING)
    }

    /// True if the response says that the tool did not run for this attempt.
    pub(crate) fn denies_run(&self) -> bool {
        self.is_running() || matches!(self, Self::IdReused | Self::Unprotected)
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Event { at, what } in &self.0 {
            writeln!(f, "{:>10.3} ms  {what:?}", at.as_secs_f64() * 1000.0)?;
        }
        Ok(())
    }
}
