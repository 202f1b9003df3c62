//! The event with which a function invokes itself, to perform a task.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::UNSUPPORTED_EVENT;
use crate::{
    arrival::{Invocation, InvocationError},
    call::background::Ticket,
    protocol::{admission::AppState, tasks},
};

/// The name of the event's only field, which no other event has.
pub(crate) const FIELD: &str = "lambda_tools";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskEvent {
    lambda_tools: Ticket,
}

/// Performs the task. Nobody waits for the answer; an error goes to the function's destination for
/// failed events.
pub(super) async fn answer(
    app: &Arc<AppState>,
    event: &str,
    invocation: Invocation,
) -> Result<Box<RawValue>, InvocationError> {
    let error = |kind, message: &str| InvocationError {
        kind,
        message: message.to_owned(),
    };
    let unknown = || error(UNSUPPORTED_EVENT, "The event belongs to no task.");
    let event: TaskEvent = serde_json::from_str(event).map_err(|_| unknown())?;
    match tasks::perform(app, &event.lambda_tools, invocation).await {
        Ok(true) => Ok(RawValue::NULL.to_owned()),
        Ok(false) => Err(unknown()),
        Err(cause) => Err(error("TaskNotStarted", &cause.to_string())),
    }
}
