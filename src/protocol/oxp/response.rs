//! Encoding of outcomes and refusals.
//!
//! Every outcome is a 200 response, whether the tool succeeded or failed, except at the path of a
//! single tool. The status of a refusal is 401 for invalid credentials, 403 for other web pages, 415
//! for compressed bodies, 422 for invalid input and 400 otherwise. The texts are the specification's,
//! where it has any.

use http::StatusCode;
use serde::Serialize;
use serde_json::{Number, Value, json};

use super::dialect::{Dialect, OxpFormat};
use crate::{
    Failure,
    call::{
        Outcome,
        rejection::{Rejection, UnmetRequirements},
    },
    protocol::{json_response::to_json, refusal::Refusal, wording::Wording},
    text::{milliseconds, whole_milliseconds},
    tool::{output::Output, schema::ParameterErrors},
};

/// OXP 1.0, Call Tool Response.
#[derive(Serialize)]
struct CallToolResponse<'a> {
    call_id: &'a str,
    success: bool,
    duration: Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a Output>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ToolErrorBody<'a>>,
}

/// OXP 1.0, Tool Error.
#[derive(Serialize)]
struct ToolErrorBody<'a> {
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
    result: CallToolResponse<'a>,
}

/// Encodes the body of a 200 response.
pub(super) fn encode(dialect: Dialect, outcome: &Outcome) -> Vec<u8> {
    let result = outcome.result.as_ref();
    let response = CallToolResponse {
        call_id: &outcome.call_id,
        success: result.is_ok(),
        duration: milliseconds(outcome.duration),
        value: result.ok(),
        error: result.err().map(error_of),
    };
    match dialect.schema() {
        None => to_json(&response),
        Some(schema) => to_json(&Envelope {
            schema,
            result: response,
        }),
    }
}

/// Encodes the response of a single tool's path: the value, or a failure with a status of its own.
///
/// RFC 4918, section 11.4: the request was valid, but an action that it depended on has failed.
pub(super) fn encode_bare(outcome: &Outcome) -> (StatusCode, Vec<u8>) {
    match &outcome.result {
        Ok(value) => (StatusCode::OK, to_json(value)),
        Err(failure) => (StatusCode::FAILED_DEPENDENCY, to_json(&error_of(failure))),
    }
}

fn error_of(failure: &Failure) -> ToolErrorBody<'_> {
    let parts = failure.parts();
    ToolErrorBody {
        message: &parts.message,
        developer_message: parts.developer_message.as_deref(),
        can_retry: parts.can_retry,
        additional_prompt_content: parts.additional_prompt_content.as_deref(),
        retry_after_ms: parts.retry_after.map(whole_milliseconds),
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
    missing_requirements: Option<Value>,
}

impl ErrorBody<'_> {
    pub(super) fn of(Wording { message, detail }: Wording, dialect: Dialect) -> Self {
        Self {
            schema: dialect.schema(),
            message,
            developer_message: detail,
            parameter_errors: None,
            missing_requirements: None,
        }
    }
}

pub(super) fn encode_refusal(refusal: &Refusal, format: &OxpFormat) -> (StatusCode, Vec<u8>) {
    let mut body = ErrorBody::of(Wording::of(refusal), format.dialect);
    match refusal {
        Refusal::Rejected(Rejection::InvalidInput(errors), _) => {
            body.developer_message.clone_from(&format.misplaced_input);
            body.parameter_errors = Some(errors);
        }
        Refusal::Rejected(Rejection::Missing(missing), _) => {
            if let (Dialect::Path, Some(detail)) = (format.dialect, &mut body.developer_message) {
                // That path has no place for a context.
                *detail += " Only the body of POST /tools/call has a context.";
            }
            if !missing.requirements.is_empty() {
                body.missing_requirements = Some(requirements_of(missing));
            }
        }
        _ => {}
    }
    (status_of(refusal), to_json(&body))
}

/// Returns the status of a refusal.
fn status_of(refusal: &Refusal) -> StatusCode {
    match refusal {
        Refusal::Unauthenticated(..) => StatusCode::UNAUTHORIZED,
        Refusal::ForbiddenOrigin => StatusCode::FORBIDDEN,
        Refusal::Encoded => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Refusal::Rejected(Rejection::InvalidInput(_), _) => StatusCode::UNPROCESSABLE_ENTITY,
        _ => StatusCode::BAD_REQUEST,
    }
}

/// Returns the `missing_requirements` (OXP 1.0, Server Error Response).
fn requirements_of(missing: &UnmetRequirements) -> Value {
    let requirements = &missing.requirements;
    let mut body = json!({});
    if !requirements.authorization.is_empty() {
        // The challenges that would provide a token. The list is present but empty if this server
        // cannot offer any: the specification's challenges need a URL.
        body["authorization"] = json!(missing.challenges);
    }
    if requirements.user_id {
        body["user_id"] = true.into();
    }
    if !requirements.secrets.is_empty() {
        body["secrets"] = json!(requirements.secrets);
    }
    body
}
