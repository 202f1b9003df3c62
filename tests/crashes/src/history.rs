//! The history of a run: everything that happened to one `call_id`, as seen from outside of the
//! function.

use std::time::Duration;

use serde_json::Value;

use crate::plan::{AttemptPlan, Request, Step};

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
    /// The tasks that had not ended when nothing was left that could change it.
    pub(crate) stuck: Vec<String>,
}

/// What an invocation is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A call, which may become a task.
    #[default]
    Call,
    /// The work of a task.
    Work,
    /// A question about a task.
    Get,
    /// A request to cancel a task.
    Cancel,
}

impl Kind {
    /// Returns true if the plan has attempts of this kind.
    pub(crate) fn is_planned(self) -> bool {
        matches!(self, Self::Call | Self::Work)
    }
}

/// The facts about an attempt: one invocation of the function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attempt {
    pub(crate) kind: Kind,
    pub(crate) plan: AttemptPlan,
    pub(crate) item: u32,
    /// The task that it is about.
    pub(crate) task: Option<String>,
    /// The time at which a process received the event.
    pub(crate) delivered: Time,
    /// The time at which the platform kills the process.
    pub(crate) deadline: Time,
    /// The time at which the claim was written, or a task started.
    pub(crate) claimed: Option<Time>,
    /// The time at which the outcome was recorded.
    pub(crate) recorded: Option<Time>,
    /// The time at which the claim was withdrawn, or the end of a task was recorded whose call may be
    /// repeated.
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

impl Attempt {
    /// Returns true if this is the work of a task.
    pub(crate) fn is_work_of(&self, task: &str) -> bool {
        self.kind == Kind::Work && self.task.as_deref() == Some(task)
    }
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
    /// The call has become this task.
    Task(String),
    /// The task was withdrawn before it started.
    NeverStarted,
    /// The task was cancelled.
    Cancelled,
    /// There is no such task.
    NoTask,
    /// The request was carried out.
    Done,
    /// None of these.
    Unknown,
}

impl Outcome {
    /// Returns true if a client stops retrying.
    pub(crate) fn is_final(&self) -> bool {
        !matches!(
            self,
            Self::Failure(true)
                | Self::Running
                | Self::Unprotected
                | Self::NeverStarted
                | Self::NoTask
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
            outcome: if json["jsonrpc"].is_null() {
                outcome(response["statusCode"].as_u64(), &json)
            } else {
                outcome_of_rpc(&json)
            },
            body,
        }
    }

    /// Reads the report of the work of a task.
    pub(crate) fn of_work(is_error: bool, response: &Value) -> Self {
        Self {
            is_replay: false,
            outcome: match (is_error, response["errorType"].as_str()) {
                (false, _) => Outcome::Done,
                (true, Some("TaskNotStarted")) => Outcome::Unprotected,
                (true, Some("UnsupportedEvent")) => Outcome::NoTask,
                _ => Outcome::Unknown,
            },
            body: response.to_string(),
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

/// Reads the response to a request of MCP.
fn outcome_of_rpc(body: &Value) -> Outcome {
    let (result, error) = (&body["result"], &body["error"]);
    let error = error["message"].as_str().unwrap_or_default();
    let failure = result["error"]["message"].as_str().unwrap_or_default();
    match result["status"].as_str() {
        Some("working") if result["resultType"] == "task" => {
            Outcome::Task(result["taskId"].as_str().unwrap_or_default().to_owned())
        }
        Some("working") => Outcome::Running,
        Some("cancelled") => Outcome::Cancelled,
        Some("failed") if failure.starts_with("This call was cut off") => Outcome::CutOff,
        Some("failed") if failure.starts_with("The task did not start") => Outcome::NeverStarted,
        Some("failed") if failure.starts_with("The tool stopped") => Outcome::Failure(false),
        Some("completed") => outcome_of_result(&result["result"]),
        None if result["content"].is_array() => outcome_of_result(result),
        None if result.is_object() => Outcome::Done,
        None if error.contains("'taskId'") => Outcome::NoTask,
        None if error.contains("call_id belongs") => Outcome::IdReused,
        None if error.contains("temporarily unavailable") => Outcome::Unprotected,
        _ => Outcome::Unknown,
    }
}

/// Reads the result of a tool.
fn outcome_of_result(result: &Value) -> Outcome {
    let value = &result["structuredContent"];
    let item = value["item"].as_u64().and_then(|item| item.try_into().ok());
    if let (Some(serial), Some(item)) = (value["serial"].as_u64(), item) {
        return Outcome::Value(serial, item);
    }
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    let (message, advice) = text.split_once('\n').unwrap_or((text, ""));
    let begins = |with| message.starts_with(with);
    match () {
        () if begins("This call is still running") => Outcome::Running,
        () if begins("This call was cut off") => Outcome::CutOff,
        () if begins("This call id belongs to another call") => Outcome::IdReused,
        () if begins("The tool server is temporarily unavailable") => Outcome::Unprotected,
        () => Outcome::Failure(advice.contains("The same call may succeed later")),
    }
}
