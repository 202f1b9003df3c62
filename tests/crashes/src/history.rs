//! The history of a run: everything that happened to one `call_id`, as seen from outside of the
//! function.

use std::time::Duration;

use serde_json::Value;

use crate::plan::{Request, Step};

/// A time since the run began.
pub(crate) type Time = Duration;

/// The attempts of a run, in the order of their events.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) attempts: Vec<Attempt>,
    /// True if a client got no outcome.
    pub(crate) gave_up: bool,
    /// True if a process ended by itself.
    pub(crate) exited: bool,
}

/// The facts about an attempt: one invocation of the function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attempt {
    pub(crate) item: u32,
    /// The time at which a process received the event.
    pub(crate) delivered: Time,
    /// The time at which the platform kills the process.
    pub(crate) deadline: Time,
    /// The time at which the claim was written.
    pub(crate) claimed: Option<Time>,
    /// The time at which the outcome was recorded.
    pub(crate) recorded: Option<Time>,
    /// The time at which the claim was withdrawn.
    pub(crate) released: Option<Time>,
    /// The time at which the tool asked for its effect.
    pub(crate) ran: Option<Time>,
    /// The numbers of its effects.
    pub(crate) effects: Vec<u64>,
    /// The requests to the store with faults.
    pub(crate) faults: Vec<Request>,
    /// The step at which the process was killed or stopped by the plan.
    pub(crate) died: Option<Step>,
    /// The time of the response, and the response, which the platform may have dropped.
    pub(crate) answer: Option<(Time, Answer)>,
}

/// A response to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) is_replay: bool,
    pub(crate) outcome: Outcome,
    pub(crate) body: String,
}

/// The outcome that a response states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The tool's value: the number of the effect, and the item.
    Value(u64, u32),
    /// A failure of the tool, and whether the call may be retried.
    Failure(bool),
    /// The call is running elsewhere, as far as the function knows.
    Running,
    /// The process died that ran the call.
    CutOff,
    /// Another call has the same id.
    IdReused,
    /// The call did not run, because the store did not respond.
    Unprotected,
    /// None of these.
    Unknown,
}

impl Outcome {
    /// Returns true if a client stops retrying.
    pub(crate) fn is_final(&self) -> bool {
        !matches!(
            self,
            Self::Failure(true) | Self::Running | Self::Unprotected
        )
    }
}

impl Answer {
    /// Reads the response to an event of an HTTP API.
    pub(crate) fn read(response: &Value) -> Self {
        let body = response["body"].as_str().unwrap_or_default().to_owned();
        let json: Value = serde_json::from_str(&body).unwrap_or_default();
        Self {
            is_replay: response["headers"]["idempotent-replay"] == "true",
            outcome: outcome(response["statusCode"].as_u64(), &json),
            body,
        }
    }
}

fn outcome(status: Option<u64>, body: &Value) -> Outcome {
    let message = |value: &Value| value["message"].as_str().unwrap_or_default().to_owned();
    match (status, body["success"].as_bool()) {
        (Some(200), Some(true)) => {
            let value = &body["value"];
            let item = value["item"].as_u64().and_then(|item| item.try_into().ok());
            match (value["serial"].as_u64(), item) {
                (Some(serial), Some(item)) => Outcome::Value(serial, item),
                _ => Outcome::Unknown,
            }
        }
        (Some(200), Some(false)) => match &*message(&body["error"]) {
            "This call is still running" => Outcome::Running,
            "This call was cut off, and may have had its effect" => Outcome::CutOff,
            _ => Outcome::Failure(body["error"]["can_retry"] == true),
        },
        (Some(400), None) => match &*message(body) {
            "This call_id belongs to another call" => Outcome::IdReused,
            "The tool server is temporarily unavailable" => Outcome::Unprotected,
            _ => Outcome::Unknown,
        },
        _ => Outcome::Unknown,
    }
}
