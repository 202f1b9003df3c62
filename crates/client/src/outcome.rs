//! The outcome of a call over OXP.

use std::{collections::BTreeMap, time::Duration};

use serde::Deserialize;
use serde_json::Value;

use super::{ClientError, retry::RetryAdvice};

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
    /// The number of attempts made.
    pub attempts: u32,
    /// The call's outcome.
    pub outcome: CallOutcome,
}

impl CallReply {
    /// Creates the reply to a single attempt.
    pub(super) fn new(call_id: &str, outcome: CallOutcome) -> Self {
        Self {
            call_id: call_id.to_owned(),
            duration: None,
            is_replay: false,
            attempts: 1,
            outcome,
        }
    }
}

/// The outcome of a call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CallOutcome {
    /// The tool's value; `null` for a tool that returns nothing.
    Value(Value),
    /// The tool failed.
    ToolError(ToolError),
    /// The input is invalid (422).
    InvalidInput {
        /// The message for the user and the model.
        message: String,
        /// A message for each invalid parameter; nested parameters are keyed by path.
        parameter_errors: BTreeMap<String, String>,
    },
    /// The call does not meet the tool's requirements.
    MissingRequirements(MissingRequirements),
    /// The call was rejected for another reason (400).
    ServerError(ServerError),
}

/// A tool's failure: OXP 1.0, Tool Error.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolError {
    /// The message for the user and the model.
    pub message: String,
    /// The details for logs.
    pub developer_message: Option<String>,
    /// True if the same call may succeed later.
    pub can_retry: bool,
    /// The time to wait before a retry.
    pub retry_after: Option<Duration>,
    /// Advice for the model's next attempt.
    pub additional_prompt_content: Option<String>,
}

/// The requirements that a call did not meet: OXP 1.0, `missing_requirements`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MissingRequirements {
    /// The message for the user and the model.
    pub message: String,
    /// The details for logs.
    pub developer_message: Option<String>,
    /// The permissions that the user must grant first; see
    /// [`OxpClient::wait_for`](super::oxp::OxpClient::wait_for).
    pub challenges: Vec<AuthorizationChallenge>,
    /// True if the user's id is missing.
    pub user_id: bool,
    /// The ids of the missing secrets.
    pub secrets: Vec<String>,
}

/// The reason why a call was not run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerError {
    /// The message for the user and the model.
    pub message: String,
    /// The details for logs.
    pub developer_message: Option<String>,
}

impl CallOutcome {
    /// Returns the outcome's own advice on retrying.
    pub(super) fn advice(&self) -> Option<RetryAdvice> {
        match self {
            Self::ToolError(failure) if failure.can_retry => {
                Some(RetryAdvice::Again(failure.retry_after))
            }
            Self::ServerError(_) | Self::MissingRequirements(_) => None,
            _ => Some(RetryAdvice::Done),
        }
    }

    /// Returns the value, if there is one.
    #[must_use]
    pub fn value(self) -> Option<Value> {
        match self {
            Self::Value(value) => Some(value),
            _ => None,
        }
    }

    pub(super) fn into_value(self) -> Result<Value, ClientError> {
        match self {
            Self::Value(value) => Ok(value),
            other => Err(ClientError::NoValue(Box::new(other))),
        }
    }

    /// Explains to a model why there is no value: the message, the error of each parameter, and the
    /// advice for the next attempt.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Value(_) => "the tool returned a value".to_owned(),
            Self::ToolError(failure) => match &failure.additional_prompt_content {
                Some(prompt) => format!("{} ({prompt})", failure.message),
                None => failure.message.clone(),
            },
            Self::InvalidInput {
                message,
                parameter_errors,
            } => {
                let line = |(name, error): (&String, &String)| format!("{name}: {error}");
                let errors: Vec<_> = parameter_errors.iter().map(line).collect();
                format!("{message} ({})", errors.join("; "))
            }
            Self::MissingRequirements(missing) => missing.message.clone(),
            Self::ServerError(error) => error.message.clone(),
        }
    }
}

/// A permission that the tool needs from the user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct AuthorizationChallenge {
    /// The challenge's or the provider's id.
    pub id: String,
    /// The URL that the user opens.
    #[serde(default)]
    pub url: String,
    /// The URL that a client polls for the user's decision.
    #[serde(default)]
    pub check_url: String,
}
