//! The plan of a run: which process dies at which step, and what happens to the store's requests.
//!
//! A plan is made from a seed alone, so that a seed repeats a run, except for the timing.

mod random;

use std::time::Duration;

use crate::history::Request;

/// The policy of the tool for repeated calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Policy {
    /// `Tool::idempotent`: calls are not recorded.
    Idempotent,
    /// The default.
    Recorded,
    /// `Tool::run_at_most_once`.
    AtMostOnce,
}

impl Policy {
    /// The tool with this policy.
    pub(crate) fn tool(self) -> &'static str {
        match self {
            Self::Idempotent => "Order.Repeat",
            Self::Recorded => "Order.Place",
            Self::AtMostOnce => "Order.Once",
        }
    }
}

/// A step of an attempt at which its process may die.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// The function has received the event.
    Delivered,
    /// The store has received the claim.
    BeforeClaim,
    /// The store has written the claim, and has not responded.
    AfterClaim,
    /// The request for the effect has arrived.
    InTool,
    /// The effect has happened, and the tool does not know.
    AfterEffect,
    /// The store has received the outcome, or the withdrawal of the claim.
    BeforeRecord,
    /// The store has applied it, and has not responded.
    AfterRecord,
    /// The platform has received the response, and drops it.
    BeforeAnswer,
    /// The platform has accepted the response.
    AfterAnswer,
}

/// All steps, in their order.
pub const STEPS: [Step; 9] = [
    Step::Delivered,
    Step::BeforeClaim,
    Step::AfterClaim,
    Step::InTool,
    Step::AfterEffect,
    Step::BeforeRecord,
    Step::AfterRecord,
    Step::BeforeAnswer,
    Step::AfterAnswer,
];

/// The treatment of a request to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// It is not applied, and the connection is closed.
    RequestLost,
    /// It is applied, and the connection is closed.
    ResponseLost,
    /// It is applied twice.
    Twice,
    /// It is applied later, when the client may have given up.
    Late,
    /// It is applied after another attempt has claimed the call.
    Overtaken,
    /// It is applied, and the response is late.
    ResponseLate,
    /// It gets a 500.
    Internal,
    /// It is applied, and gets a 500.
    InternalAfterwards,
    /// It gets a 503.
    Unavailable,
    /// It exceeds the table's capacity.
    ThroughputExceeded,
    /// It is throttled.
    Throttled,
    /// It gets no response.
    Ignored,
    /// It is applied, and gets no response.
    ResponseIgnored,
}

/// All faults.
pub const FAULTS: [Fault; 13] = [
    Fault::RequestLost,
    Fault::ResponseLost,
    Fault::Twice,
    Fault::Late,
    Fault::Overtaken,
    Fault::ResponseLate,
    Fault::Internal,
    Fault::InternalAfterwards,
    Fault::Unavailable,
    Fault::ThroughputExceeded,
    Fault::Throttled,
    Fault::Ignored,
    Fault::ResponseIgnored,
];

/// The response of the server of effects to a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Behavior {
    /// The effect happens, and the tool returns a value.
    Value,
    /// No effect; the tool returns a failure that may not be retried.
    Refuse,
    /// No effect; the tool returns a failure that may be retried.
    Busy,
    /// The effect happens, and the tool panics.
    Panic,
    /// The effect happens, and the tool never returns.
    Hang,
}

/// The death of a process.
#[derive(Clone, Copy, Debug)]
pub struct Death {
    /// The step at which it is killed.
    pub step: Step,
    /// The time after the step. If it is zero, nothing goes on until the process is dead.
    pub delay: Duration,
    /// The time after the death at which a request is applied that was on its way. `None` if it is
    /// lost.
    pub in_flight: Option<Duration>,
}

/// A process that stops running for some time, as on a machine that is suspended. It continues after
/// another attempt has claimed the call, when its own claim may have become free.
#[derive(Clone, Copy, Debug)]
pub struct Freeze {
    /// The step at which it stops.
    pub step: Step,
    /// The time after the claim at which it continues.
    pub delay: Duration,
}

/// A fault of some of the requests of an attempt.
#[derive(Clone, Copy, Debug)]
pub struct StoreFault {
    /// The requests' purpose.
    pub request: Request,
    /// The number of requests, because a client may try again.
    pub count: usize,
    /// Their treatment.
    pub fault: Fault,
    /// The delay of a late request or response; of an overtaken one, after the other claim.
    pub delay: Duration,
}

/// The plan of an attempt.
#[derive(Clone, Debug)]
pub struct AttemptPlan {
    /// The death of its process.
    pub death: Option<Death>,
    /// The time for which its process stops running.
    pub freeze: Option<Freeze>,
    /// The faults of the store.
    pub faults: Vec<StoreFault>,
    /// The behavior of the tool.
    pub behavior: Behavior,
}

/// An attempt in which nothing goes wrong.
pub(crate) static CLEAN: AttemptPlan = AttemptPlan {
    death: None,
    freeze: None,
    faults: Vec::new(),
    behavior: Behavior::Value,
};

/// A client that repeats its call until it has an outcome, as an agent does.
#[derive(Clone, Debug)]
pub struct ClientPlan {
    /// The input.
    pub item: u32,
    /// The time at which it begins.
    pub begin: Duration,
    /// The pauses between its attempts.
    pub pauses: Vec<Pause>,
}

/// The time that a client waits for before it tries again.
#[derive(Clone, Copy, Debug)]
pub enum Pause {
    /// A fixed time.
    For(Duration),
    /// Until all claims are free, and this many milliseconds more or less.
    UntilFree(i64),
}

/// The plan of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed that it was made from.
    pub seed: u64,
    /// The tool's policy.
    pub policy: Policy,
    /// The time limit of the platform for each attempt.
    pub limit: Duration,
    /// The first attempts, in the order of their delivery; all others are clean.
    pub attempts: Vec<AttemptPlan>,
    /// The clients, which all use the same `call_id`.
    pub clients: Vec<ClientPlan>,
}

impl Plan {
    /// The plan of an attempt, counted from 0.
    pub(crate) fn attempt(&self, number: usize) -> &AttemptPlan {
        self.attempts.get(number).unwrap_or(&CLEAN)
    }
}
