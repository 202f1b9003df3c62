//! Encoding of answers.
//!
//! A tool's outcome is a 200 whatever the tool did; a rejection is a 400, or a 422 for the input.

use std::time::Duration;

use http::StatusCode;
use semver::Version;
use serde::Serialize;
use serde_json::{Number, Value};

use super::dialect::Dialect;
use crate::{
    Failure, Requirements, call::Outcome, rejection::Rejection, requirement::SecretRequirement,
    schema::ParameterErrors, wire::LARGEST_PAYLOAD,
};

/// OXP 1.0, Call Tool Response.
#[derive(Serialize)]
struct Answer<'a> {
    call_id: &'a str,
    success: bool,
    duration: Number,
    #[serde(flatten)]
    result: Content<'a>,
}

/// `value` or `error`, never both.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Content<'a> {
    Value(&'a Value),
    Error(ToolError<'a>),
}

/// OXP 1.0, Tool Error.
#[derive(Serialize)]
struct ToolError<'a> {
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    developer_message: Option<&'a str>,
    can_retry: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_prompt_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

#[derive(Serialize)]
struct Envelope<'a> {
    #[serde(rename = "$schema")]
    schema: &'a str,
    result: Answer<'a>,
}

/// The body of a 200, replaced by a failure's where it is larger than the platform can send.
pub(super) fn outcome(dialect: Dialect, mut outcome: Outcome) -> Vec<u8> {
    let body = encoded(dialect, &outcome);
    let size = size_as_sent(&body);
    if size <= LARGEST_PAYLOAD {
        return body;
    }
    outcome.result = Err(
        Failure::new("The tool's result is too large to send").developer_message(format!(
            "The answer would be {size} bytes; AWS Lambda sends {LARGEST_PAYLOAD} at most."
        )),
    );
    encoded(dialect, &outcome)
}

fn encoded(dialect: Dialect, outcome: &Outcome) -> Vec<u8> {
    let result = match &outcome.result {
        Ok(value) => Content::Value(value),
        Err(failure) => Content::Error(error_of(failure)),
    };
    let answer = Answer {
        call_id: &outcome.call_id,
        success: outcome.result.is_ok(),
        duration: milliseconds(outcome.duration),
        result,
    };
    let body = match dialect.schema() {
        None => serde_json::to_vec(&answer),
        Some(schema) => serde_json::to_vec(&Envelope {
            schema,
            result: answer,
        }),
    };
    body.expect("JSON values can be written as JSON")
}

fn error_of(failure: &Failure) -> ToolError<'_> {
    let parts = failure.parts();
    let whole_ms = |wait: Duration| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    ToolError {
        message: &parts.message,
        developer_message: parts.developer_message.as_deref(),
        can_retry: parts.can_retry,
        additional_prompt_content: parts.additional_prompt_content.as_deref(),
        retry_after_ms: parts.retry_after.map(whole_ms),
    }
}

/// Milliseconds to the microsecond; whole ones without a fraction.
pub(super) fn milliseconds(duration: Duration) -> Number {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    if micros % 1000 == 0 {
        return Number::from(micros / 1000);
    }
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53 microseconds")]
    let ms = micros as f64 / 1000.0;
    Number::from_f64(ms).unwrap_or_else(|| Number::from(0))
}

/// How many bytes the body takes in the event that carries it to the platform: there it is a JSON
/// string, in which quotes and backslashes are escaped, beside the headers.
pub(crate) fn size_as_sent(body: &[u8]) -> usize {
    const BESIDE: usize = 2048;
    let escaped = body.iter().filter(|byte| matches!(byte, b'"' | b'\\'));
    body.len() + escaped.count() + BESIDE
}

/// The status of a rejection.
pub(super) fn status_of(rejection: &Rejection) -> StatusCode {
    match rejection {
        Rejection::InvalidInput(_) => StatusCode::UNPROCESSABLE_ENTITY,
        _ => StatusCode::BAD_REQUEST,
    }
}

/// OXP 1.0, Server Error Response and Validation Error Response.
#[derive(Serialize)]
pub(super) struct ErrorBody<'a> {
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    schema: Option<&'a str>,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    developer_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter_errors: Option<&'a ParameterErrors>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing_requirements: Option<MissingRequirements<'a>>,
}

/// OXP 1.0, Server Error Response, `missing_requirements`.
#[derive(Serialize)]
struct MissingRequirements<'a> {
    /// The challenges that would provide a token. The list is empty, and still there, where this
    /// server can offer none: the specification's challenges need a URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    authorization: Option<[(); 0]>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    user_id: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    secrets: &'a [SecretRequirement],
}

impl<'a> ErrorBody<'a> {
    pub(super) fn plain(message: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            schema: None,
            message: message.into(),
            developer_message: Some(detail.into()),
            parameter_errors: None,
            missing_requirements: None,
        }
    }

    pub(super) fn of(rejection: &'a Rejection) -> Self {
        match rejection {
            Rejection::Malformed { message, detail } => Self::plain(message, detail),
            Rejection::UnsupportedVersion => Self::plain(
                "This version of the protocol is not supported",
                "Supported are OXP 1.0 (OXP-Version: 1.0 or urn:oxp:1.0) and Open Tool Calling \
                 1.0 (otc://1.0).",
            ),
            Rejection::InvalidToolId(error) => {
                Self::plain("The tool ID is not valid", format!("'tool_id': {error}."))
            }
            Rejection::UnknownTool { qualified, closest } => unknown_tool(qualified, closest),
            Rejection::UnknownVersion {
                qualified,
                version,
                available,
            } => unknown_version(qualified, version, available),
            Rejection::InvalidInput(errors) => Self {
                developer_message: None,
                parameter_errors: Some(errors),
                ..Self::plain("Some input parameters are invalid", "")
            },
            Rejection::Missing { tool, missing } => missing_requirements(tool, missing),
            Rejection::Misdefined { tool, detail } => Self::plain(
                "This tool cannot be called because of a mistake in its definition",
                format!("{tool}: {detail}"),
            ),
            Rejection::Unavailable => Self::plain(
                "The tool server is temporarily unavailable",
                "The server says that it is not ready to take calls.",
            ),
        }
    }

    pub(super) fn in_dialect(self, dialect: Dialect) -> Self {
        Self {
            schema: dialect.schema(),
            ..self
        }
    }

    /// What a log should say. Parameters are the caller's own affair.
    pub(super) fn detail(&self) -> String {
        let text = self.developer_message.as_ref().unwrap_or(&self.message);
        text.clone()
    }
}

fn unknown_tool(qualified: &str, closest: &Option<String>) -> ErrorBody<'static> {
    let detail = match closest {
        Some(closest) => format!(
            "{} is not a tool of this server; did you mean {closest}?",
            clipped(qualified)
        ),
        None => format!("{} is not a tool of this server.", clipped(qualified)),
    };
    ErrorBody::plain(not_found(qualified), detail)
}

fn unknown_version(
    qualified: &str,
    version: &Version,
    available: &[Version],
) -> ErrorBody<'static> {
    let available: Vec<_> = available.iter().map(Version::to_string).collect();
    let available = available.join(", ");
    ErrorBody::plain(
        not_found(qualified),
        format!("{qualified} version {version} is not available; available: {available}"),
    )
}

/// The specification's text, with the tool's name as models know it.
fn not_found(qualified: &str) -> String {
    let name = clipped(qualified).replace('.', "_");
    format!("Tool '{name}' was not found")
}

/// An id has a grammar, but no length that would end.
fn clipped(qualified: &str) -> String {
    const LONGEST: usize = 128;
    match qualified.get(..LONGEST) {
        Some(beginning) if qualified.len() > LONGEST => format!("{beginning}…"),
        _ => qualified.to_owned(),
    }
}

fn missing_requirements<'a>(tool: &str, missing: &'a Requirements) -> ErrorBody<'a> {
    let (mut what, mut which) = (Vec::new(), Vec::new());
    if !missing.authorization.is_empty() {
        what.push("Authorization");
        which.extend(
            missing
                .authorization
                .iter()
                .map(|a| format!("a token of '{}'", a.id)),
        );
    }
    if missing.user_id {
        what.push("User ID");
        which.push("a user id".to_owned());
    }
    if !missing.secrets.is_empty() {
        what.push("Secrets");
        which.extend(
            missing
                .secrets
                .iter()
                .map(|s| format!("the secret '{}'", s.id)),
        );
    }
    let message = format!(
        "{} required before this tool can be called",
        what.join(", ")
    );
    let detail = format!("{tool} needs {}.", which.join(", "));
    ErrorBody {
        missing_requirements: Some(MissingRequirements {
            authorization: (!missing.authorization.is_empty()).then_some([]),
            user_id: missing.user_id,
            secrets: &missing.secrets,
        }),
        ..ErrorBody::plain(message, detail)
    }
}
