//! What a server says about a call, whichever dialect it speaks.

use crate::payload::JsonObject;
use std::{collections::BTreeMap, time::Duration};

use http::HeaderName;
use serde::Deserialize;
use serde_json::Value;

use super::{AuthorizationChallenge, status_error};
use crate::{
    client::{
        ClientError,
        http::{ReceivedResponse, decoded},
        retry::RetryAdvice,
    },
    tool::requirement::null_is_default,
};

const REPLAY: HeaderName = HeaderName::from_static("idempotent-replay");

/// What a server says about a call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallReply {
    /// The id of the call, as the server has it.
    pub call_id: String,
    /// How long the tool took, where the server says so.
    pub duration: Option<Duration>,
    /// Whether this is the outcome of an earlier call with the same id.
    pub is_replay: bool,
    /// How many attempts it took.
    pub attempts: u32,
    /// What came of it.
    pub outcome: CallOutcome,
}

/// What came of a call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CallOutcome {
    /// The tool's value; `null` for a tool that gives nothing.
    Value(Value),
    /// The tool failed.
    ToolError(ToolError),
    /// The input is wrong (422): what is wrong, by parameter.
    InvalidInput {
        /// For the user and the model.
        message: String,
        /// A message for each bad parameter, nested ones by path.
        parameter_errors: BTreeMap<String, String>,
    },
    /// The tool needs more than the call brings.
    MissingRequirements(MissingRequirements),
    /// The call was not run for another reason (400).
    ServerError(ServerError),
}

/// A tool's failure: OXP 1.0, Tool Error.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolError {
    /// For the user and the model.
    pub message: String,
    /// For logs.
    pub developer_message: Option<String>,
    /// Whether the same call may succeed later.
    pub can_retry: bool,
    /// When.
    pub retry_after: Option<Duration>,
    /// For the model's next attempt.
    pub additional_prompt_content: Option<String>,
}

/// What a call has to bring: OXP 1.0, `missing_requirements`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MissingRequirements {
    /// For the user and the model.
    pub message: String,
    /// For logs.
    pub developer_message: Option<String>,
    /// What the user has to allow first; see [`Client::wait_for`](super::Client::wait_for).
    pub challenges: Vec<AuthorizationChallenge>,
    /// Whether the user's id is missing.
    pub user_id: bool,
    /// The ids of the secrets that are missing.
    pub secrets: Vec<String>,
}

/// Why a call was not run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerError {
    /// For the user and the model.
    pub message: String,
    /// For logs.
    pub developer_message: Option<String>,
}

impl CallOutcome {
    /// The value, if there is one.
    #[must_use]
    pub fn value(self) -> Option<Value> {
        match self {
            Self::Value(value) => Some(value),
            _ => None,
        }
    }

    /// What a model should read where there is no value: the message, what is wrong with each
    /// parameter, and the advice for the next attempt.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Value(_) => "the tool gave a value".to_owned(),
            Self::ToolError(failed) => match &failed.additional_prompt_content {
                Some(prompt) => format!("{} ({prompt})", failed.message),
                None => failed.message.clone(),
            },
            Self::InvalidInput {
                message,
                parameter_errors,
            } => {
                let one = |(name, error): (&String, &String)| format!("{name}: {error}");
                let errors: Vec<_> = parameter_errors.iter().map(one).collect();
                format!("{message} ({})", errors.join("; "))
            }
            Self::MissingRequirements(missing) => missing.message.clone(),
            Self::ServerError(refused) => refused.message.clone(),
        }
    }
}

impl CallReply {
    pub(super) fn of(received: &ReceivedResponse, call_id: &str) -> Result<Self, ClientError> {
        let outcome = match received.status.as_u16() {
            200 => return Self::of_answer(received, call_id),
            422 => invalid(received)?,
            400 => refused(received)?,
            _ => return Err(status_error(received)),
        };
        Ok(Self {
            call_id: call_id.to_owned(),
            duration: None,
            is_replay: false,
            attempts: 1,
            outcome,
        })
    }

    fn of_answer(received: &ReceivedResponse, call_id: &str) -> Result<Self, ClientError> {
        let mut body = object(received.json()?)?;
        // An envelope around it in two of the dialects.
        let mut answer = match body.swap_remove("result") {
            Some(Value::Object(answer)) if !body.contains_key("success") => answer,
            _ => body,
        };
        let duration = answer.get("duration").and_then(Value::as_f64);
        let duration = duration.and_then(|ms| Duration::try_from_secs_f64(ms / 1000.0).ok());
        let id = answer.get("call_id").and_then(Value::as_str);
        let call_id = id.unwrap_or(call_id).to_owned();
        let error = answer.swap_remove("error");
        let outcome = match (answer.get("success"), error) {
            (Some(Value::Bool(true)), None | Some(Value::Null)) => {
                CallOutcome::Value(answer.swap_remove("value").unwrap_or_default())
            }
            (Some(Value::Bool(false)), Some(Value::Object(error))) => failed(error)?,
            _ => {
                let text = "it has neither a success nor an error";
                return Err(ClientError::Unreadable(text.into()));
            }
        };
        Ok(Self {
            call_id,
            duration,
            is_replay: received.headers.contains_key(REPLAY),
            attempts: 1,
            outcome,
        })
    }

    /// What the answer itself says about asking again.
    pub(super) fn advice(&self) -> Option<RetryAdvice> {
        match &self.outcome {
            CallOutcome::ToolError(failed) if failed.can_retry => {
                Some(RetryAdvice::Again(failed.retry_after))
            }
            CallOutcome::ServerError(_) | CallOutcome::MissingRequirements(_) => None,
            _ => Some(RetryAdvice::Done),
        }
    }
}

fn object(value: Value) -> Result<JsonObject, ClientError> {
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(ClientError::Unreadable("it is no JSON object".into())),
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
    fn said(self, message: String, developer_message: Option<String>) -> MissingRequirements {
        MissingRequirements {
            message,
            developer_message,
            challenges: self.authorization,
            user_id: self.user_id,
            secrets: self.secrets.into_iter().map(|it| it.id).collect(),
        }
    }
}

fn failed(error: JsonObject) -> Result<CallOutcome, ClientError> {
    let error: ToolFailureBody = decoded(Value::Object(error))?;
    // Some servers report here what the specification reports in a 400.
    if let Some(missing) = error.missing_requirements {
        let missing = missing.said(error.message, error.developer_message);
        return Ok(CallOutcome::MissingRequirements(missing));
    }
    let too_long = |ms: f64| {
        if ms > 0.0 {
            Duration::MAX
        } else {
            Duration::ZERO
        }
    };
    let retry_after = error.retry_after_ms.map(|ms| {
        let time = Duration::try_from_secs_f64(ms / 1000.0);
        time.unwrap_or_else(|_| too_long(ms))
    });
    Ok(CallOutcome::ToolError(ToolError {
        message: error.message,
        developer_message: error.developer_message,
        can_retry: error.can_retry.unwrap_or(false),
        retry_after,
        additional_prompt_content: error.additional_prompt_content,
    }))
}

fn refused(received: &ReceivedResponse) -> Result<CallOutcome, ClientError> {
    // Something in between may answer in words of its own.
    let Ok(error) = received.decoded::<RejectionBody>() else {
        return Err(status_error(received));
    };
    Ok(match error.missing_requirements {
        Some(missing) => {
            CallOutcome::MissingRequirements(missing.said(error.message, error.developer_message))
        }
        None => CallOutcome::ServerError(ServerError {
            message: error.message,
            developer_message: error.developer_message,
        }),
    })
}

fn invalid(received: &ReceivedResponse) -> Result<CallOutcome, ClientError> {
    let Ok(error) = received.decoded::<ValidationBody>() else {
        return Err(status_error(received));
    };
    Ok(CallOutcome::InvalidInput {
        message: error.message,
        parameter_errors: error.parameter_errors,
    })
}
