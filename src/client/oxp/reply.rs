//! Decoding of a server's reply to a call, in any dialect.

use std::{collections::BTreeMap, time::Duration};

use http::HeaderName;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    client::{
        ClientError,
        outcome::{
            AuthorizationChallenge, CallOutcome, CallReply, MissingRequirements, ServerError,
            ToolError,
        },
        response::{ReceivedResponse, decode},
    },
    payload::JsonObject,
    tool::requirement::null_is_default,
};

const REPLAY: HeaderName = HeaderName::from_static("idempotent-replay");

impl CallReply {
    pub(super) fn of(response: &ReceivedResponse, call_id: &str) -> Result<Self, ClientError> {
        let outcome = match response.status.as_u16() {
            200 => return Self::of_success(response, call_id),
            422 => invalid_input(response)?,
            400 => rejection(response)?,
            _ => return Err(response.status_error()),
        };
        Ok(Self::new(call_id, outcome))
    }

    /// The reply in a 200 response, which may also report a failure.
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
            (Some(Value::Bool(false)), Some(Value::Object(error))) => tool_error(error)?,
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

#[derive(Deserialize)]
struct ToolFailureBody {
    message: String,
    developer_message: Option<String>,
    can_retry: Option<bool>,
    additional_prompt_content: Option<String>,
    retry_after_ms: Option<f64>,
    missing_requirements: Option<MissingBody>,
}

#[derive(Deserialize)]
struct RejectionBody {
    message: String,
    developer_message: Option<String>,
    missing_requirements: Option<MissingBody>,
}

#[derive(Deserialize)]
struct ValidationBody {
    message: String,
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
    secrets: Vec<MissingSecret>,
}

#[derive(Deserialize)]
struct MissingSecret {
    id: String,
}

impl MissingBody {
    fn with_message(
        self,
        message: String,
        developer_message: Option<String>,
    ) -> MissingRequirements {
        MissingRequirements {
            message,
            developer_message,
            challenges: self.authorization,
            user_id: self.user_id,
            secrets: self.secrets.into_iter().map(|it| it.id).collect(),
            request_state: None,
        }
    }
}

fn tool_error(error: JsonObject) -> Result<CallOutcome, ClientError> {
    let error: ToolFailureBody = decode(Value::Object(error))?;
    // Some servers report missing requirements here; the specification puts them in a 400 response.
    if let Some(missing) = error.missing_requirements {
        let missing = missing.with_message(error.message, error.developer_message);
        return Ok(CallOutcome::MissingRequirements(missing));
    }
    let out_of_range = |ms: f64| {
        if ms > 0.0 {
            Duration::MAX
        } else {
            Duration::ZERO
        }
    };
    let retry_after = error.retry_after_ms.map(|ms| {
        let time = Duration::try_from_secs_f64(ms / 1000.0);
        time.unwrap_or_else(|_| out_of_range(ms))
    });
    Ok(CallOutcome::ToolError(ToolError {
        message: error.message,
        developer_message: error.developer_message,
        can_retry: error.can_retry.unwrap_or(false),
        retry_after,
        additional_prompt_content: error.additional_prompt_content,
    }))
}

fn rejection(response: &ReceivedResponse) -> Result<CallOutcome, ClientError> {
    // A proxy may respond with a 400 in another format.
    let Ok(error) = response.decode::<RejectionBody>() else {
        return Err(response.status_error());
    };
    Ok(match error.missing_requirements {
        Some(missing) => CallOutcome::MissingRequirements(
            missing.with_message(error.message, error.developer_message),
        ),
        None => CallOutcome::ServerError(ServerError {
            message: error.message,
            developer_message: error.developer_message,
        }),
    })
}

fn invalid_input(response: &ReceivedResponse) -> Result<CallOutcome, ClientError> {
    let Ok(error) = response.decode::<ValidationBody>() else {
        return Err(response.status_error());
    };
    Ok(CallOutcome::InvalidInput {
        message: error.message,
        parameter_errors: error.parameter_errors,
    })
}
