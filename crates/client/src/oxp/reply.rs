//! A server's reply to a call, in any dialect.

use std::time::Duration;

use http::{HeaderName, StatusCode};
use lambda_tools_core::wire;
use serde_json::Value;

use super::CallOutcome;
use crate::{ClientError, response::ReceivedResponse};

const REPLAY: HeaderName = HeaderName::from_static(wire::REPLAY);

/// A server's reply to a call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallReply {
    /// The id of the call, as the server reports it.
    pub call_id: String,
    /// The tool's running time, if the server reports it.
    pub duration: Option<Duration>,
    /// True if this is the outcome of an earlier call with the same id.
    pub is_replay: bool,
    /// The call's outcome.
    pub outcome: CallOutcome,
}

impl CallReply {
    pub(super) fn of(response: &ReceivedResponse, call_id: &str) -> Result<Self, ClientError> {
        // A proxy may respond with these statuses in another format.
        if matches!(response.status.as_u16(), 400 | 422)
            && let Ok(outcome) = response.json().and_then(|it| outcome_in(response, &it))
        {
            return Ok(Self {
                call_id: call_id.to_owned(),
                duration: None,
                is_replay: false,
                outcome,
            });
        }
        if response.status != StatusCode::OK {
            return Err(response.status_error());
        }
        let mut body = response.json()?;
        // Two of the dialects have an envelope.
        if body.get("success").is_none() && body["result"].is_object() {
            body = body["result"].take();
        }
        // A call that has run may have failed.
        let outcome = match (&body["success"], &body["error"]) {
            (Value::Bool(true), Value::Null) => CallOutcome::Value(body["value"].take()),
            (Value::Bool(false), error) => outcome_in(response, error)?,
            _ => {
                let text = "it reports neither success nor an error";
                return Err(ClientError::Unreadable(text.into()));
            }
        };
        let duration = body["duration"].as_f64();
        Ok(Self {
            call_id: body["call_id"].as_str().unwrap_or(call_id).to_owned(),
            duration: duration.and_then(|ms| Duration::try_from_secs_f64(ms / 1000.0).ok()),
            is_replay: response.headers.contains_key(REPLAY),
            outcome,
        })
    }
}

/// Decodes the error in a response, without the secrets in the request.
fn outcome_in(response: &ReceivedResponse, error: &Value) -> Result<CallOutcome, ClientError> {
    let error = response.redacted(&error.to_string());
    let object = serde_json::from_str(&error);
    let no_object = |_| ClientError::Unreadable("its error is not a JSON object".into());
    CallOutcome::of_error(response.status.as_u16(), object.map_err(no_object)?)
}
