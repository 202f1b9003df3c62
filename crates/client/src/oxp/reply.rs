//! Decoding of a server's reply to a call, in any dialect.

use std::{collections::BTreeMap, time::Duration};

use http::{HeaderName, StatusCode};
use lambda_tools_core::{
    json::JsonObject,
    tool::requirement::{SecretRequirement, null_is_default},
    wire,
};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    ClientError,
    outcome::{
        AuthorizationChallenge, CallOutcome, CallReply, MissingRequirements, ServerError, ToolError,
    },
    response::{ReceivedResponse, decode},
};

const REPLAY: HeaderName = HeaderName::from_static(wire::REPLAY);

impl CallReply {
    pub(super) fn of(response: &ReceivedResponse, call_id: &str) -> Result<Self, ClientError> {
        let error = match response.status.as_u16() {
            200 => return Self::of_success(response, call_id),
            // A proxy may respond with a 400 in another format.
            400 | 422 => response.decode::<ErrorBody>().ok(),
            _ => None,
        };
        let outcome = error.map(|it| it.outcome(response.status));
        let outcome = outcome.ok_or_else(|| response.status_error())?;
        Ok(Self::new(call_id, outcome))
    }

    /// Returns the reply in a 200 response, which may also report a failure.
    fn of_success(response: &ReceivedResponse, call_id: &str) -> Result<Self, ClientError> {
        let mut body = object(response.json()?)?;
        // Two of the dialects have an envelope.
        let mut result = match body.swap_remove("result") {
            Some(Value::Object(result)) if !body.contains_key("success") => result,
            _ => body,
        };
        let duration = result.get("duration").and_then(Value::as_f64);
        let duration = duration.and_then(|ms| Duration::try_from_secs_f64(ms / 1000.0).ok());
        let id = result.get("call_id").and_then(Value::as_str);
        let call_id = id.unwrap_or(call_id).to_owned();
        let error = result.swap_remove("error");
        let error = error.map(|it| response.redacted_json(&it));
        let outcome = match (result.get("success"), error) {
            (Some(Value::Bool(true)), None | Some(Value::Null)) => {
                CallOutcome::Value(result.swap_remove("value").unwrap_or_default())
            }
            (Some(Value::Bool(false)), Some(error @ Value::Object(_))) => {
                decode::<ErrorBody>(error)?.outcome(response.status)
            }
            _ => {
                let text = "it reports neither success nor an error";
                return Err(ClientError::Unreadable(text.into()));
            }
        };
        Ok(Self {
            duration,
            is_replay: response.headers.contains_key(REPLAY),
            ..Self::new(&call_id, outcome)
        })
    }
}

fn object(value: Value) -> Result<JsonObject, ClientError> {
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(ClientError::Unreadable("it is not a JSON object".into())),
    }
}

/// The error of a call that has run, or of one that the server rejected.
#[derive(Deserialize)]
struct ErrorBody {
    message: String,
    developer_message: Option<String>,
    can_retry: Option<bool>,
    additional_prompt_content: Option<String>,
    retry_after_ms: Option<f64>,
    missing_requirements: Option<MissingBody>,
    #[serde(default, deserialize_with = "null_is_default")]
    parameter_errors: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct MissingBody {
    #[serde(default, deserialize_with = "null_is_default")]
    authorization: Vec<AuthorizationChallenge>,
    #[serde(default, deserialize_with = "null_is_default")]
    user_id: bool,
    #[serde(default, deserialize_with = "null_is_default")]
    secrets: Vec<SecretRequirement>,
}

impl ErrorBody {
    /// Returns the outcome of a call with this error in a response with this status.
    fn outcome(self, status: StatusCode) -> CallOutcome {
        let retry_after = self.retry_after_ms.map(duration_of);
        match (status.as_u16(), self.missing_requirements) {
            (422, _) => CallOutcome::InvalidInput {
                message: self.message,
                parameter_errors: self.parameter_errors,
            },
            // The specification puts them in a 400 response; some servers report them in a 200.
            (_, Some(missing)) => CallOutcome::MissingRequirements(MissingRequirements {
                message: self.message,
                developer_message: self.developer_message,
                challenges: missing.authorization,
                user_id: missing.user_id,
                secrets: missing.secrets.into_iter().map(|it| it.id).collect(),
            }),
            (400, None) => CallOutcome::ServerError(ServerError {
                message: self.message,
                developer_message: self.developer_message,
            }),
            (_, None) => CallOutcome::ToolError(ToolError {
                message: self.message,
                developer_message: self.developer_message,
                can_retry: self.can_retry.unwrap_or(false),
                retry_after,
                additional_prompt_content: self.additional_prompt_content,
            }),
        }
    }
}

fn duration_of(ms: f64) -> Duration {
    let out_of_range = if ms > 0.0 {
        Duration::MAX
    } else {
        Duration::ZERO
    };
    Duration::try_from_secs_f64(ms / 1000.0).unwrap_or(out_of_range)
}
