//! A server's reply to a call, in any dialect, and the outcome in it.

use std::{collections::BTreeMap, time::Duration};

use http::HeaderName;
use lambda_tools_core::{
    SecretRequirement, json::JsonObject, tool::requirement::null_is_default, wire,
};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::{
    ClientError,
    http::{ReceivedResponse, RetryAdvice, decode},
};

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

/// The outcome of a call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CallOutcome {
    /// The tool's value; `null` for a tool that returns nothing.
    Value(Value),
    /// The tool failed.
    ToolError(ToolError),
    /// The input is invalid (422).
    InvalidInput(InvalidInput),
    /// The call does not meet the tool's requirements.
    MissingRequirements(MissingRequirements),
    /// The call was rejected for another reason (400).
    ServerError(ServerError),
}

/// A tool's failure: OXP 1.0, Tool Error.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct ToolError {
    /// The message for the user and the model.
    pub message: String,
    /// The details for logs.
    pub developer_message: Option<String>,
    /// True if the same call may succeed later.
    #[serde(default, deserialize_with = "null_is_default")]
    pub can_retry: bool,
    /// The time to wait before a retry.
    #[serde(rename = "retry_after_ms", default, deserialize_with = "milliseconds")]
    pub retry_after: Option<Duration>,
    /// Advice for the model's next attempt.
    pub additional_prompt_content: Option<String>,
}

/// The reasons why an input is invalid.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct InvalidInput {
    /// The message for the user and the model.
    pub message: String,
    /// A message for each invalid parameter; nested parameters are keyed by path.
    #[serde(default, deserialize_with = "null_is_default")]
    pub parameter_errors: BTreeMap<String, String>,
}

/// The requirements that a call did not meet: OXP 1.0, `missing_requirements`.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct MissingRequirements {
    /// The message for the user and the model.
    pub message: String,
    /// The details for logs.
    pub developer_message: Option<String>,
    /// The permissions that the user must grant first.
    #[serde(
        rename = "authorization",
        default,
        deserialize_with = "null_is_default"
    )]
    pub challenges: Vec<AuthorizationChallenge>,
    /// True if the user's id is missing.
    #[serde(default, deserialize_with = "null_is_default")]
    pub user_id: bool,
    /// The missing secrets.
    #[serde(default, deserialize_with = "null_is_default")]
    pub secrets: Vec<SecretRequirement>,
}

/// A permission that the tool needs from the user: OXP 1.0, Authorization Challenges. The same call
/// succeeds after the user has granted it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct AuthorizationChallenge {
    /// The challenge's or the provider's id.
    pub id: String,
    /// The URL that the user opens.
    #[serde(default)]
    pub url: String,
    /// The URL that reports the user's decision.
    #[serde(default)]
    pub check_url: String,
}

/// The reason why a call was not run.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct ServerError {
    /// The message for the user and the model.
    pub message: String,
    /// The details for logs.
    pub developer_message: Option<String>,
}

/// Reads a number of milliseconds, whatever its size.
fn milliseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let ms = Option::<f64>::deserialize(deserializer)?;
    let duration = |ms: f64| Duration::try_from_secs_f64(ms.max(0.0) / 1000.0);
    Ok(ms.map(|ms| duration(ms).unwrap_or(Duration::MAX)))
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
        response.require_ok()?;
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

impl CallOutcome {
    /// Decodes the error of a call that has run, or of one that the server rejected, in a response
    /// with this status.
    pub(super) fn of_error(status: u16, mut error: JsonObject) -> Result<Self, ClientError> {
        let missing = error.swap_remove("missing_requirements");
        match (status, missing) {
            (422, _) => decode(Value::Object(error)).map(Self::InvalidInput),
            // The specification puts them in a 400 response; some servers report them in a 200.
            (_, Some(Value::Object(missing))) => {
                error.extend(missing);
                decode(Value::Object(error)).map(Self::MissingRequirements)
            }
            (400, _) => decode(Value::Object(error)).map(Self::ServerError),
            _ => decode(Value::Object(error)).map(Self::ToolError),
        }
    }

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
            Self::InvalidInput(invalid) => {
                let line = |(name, error): (&String, &String)| format!("{name}: {error}");
                let errors: Vec<_> = invalid.parameter_errors.iter().map(line).collect();
                format!("{} ({})", invalid.message, errors.join("; "))
            }
            Self::MissingRequirements(missing) => missing.message.clone(),
            Self::ServerError(error) => error.message.clone(),
        }
    }
}

/// Decodes the error in a response, without the secrets in the request.
fn outcome_in(response: &ReceivedResponse, error: &Value) -> Result<CallOutcome, ClientError> {
    let error = response.redacted(&error.to_string());
    let object = serde_json::from_str(&error);
    let no_object = |_| ClientError::Unreadable("its error is not a JSON object".into());
    CallOutcome::of_error(response.status.as_u16(), object.map_err(no_object)?)
}
