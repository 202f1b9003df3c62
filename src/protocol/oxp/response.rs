//! Encoding of outcomes.
//!
//! Every outcome is a 200 response, whether the tool succeeded or failed, except at the path of a
//! single tool.

use crate::text::{milliseconds, whole_milliseconds};
use http::StatusCode;
use serde::Serialize;
use serde_json::Number;

use super::dialect::Dialect;
use crate::{Failure, call::Outcome, protocol::json_response::to_json, tool::output::Output};

/// OXP 1.0, Call Tool Response.
#[derive(Serialize)]
struct CallToolResponse<'a> {
    call_id: &'a str,
    success: bool,
    duration: Number,
    #[serde(flatten)]
    result: ValueOrError<'a>,
}

/// `value` or `error`, never both.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum ValueOrError<'a> {
    Value(&'a Output),
    Error(ToolErrorBody<'a>),
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
    let result = match &outcome.result {
        Ok(value) => ValueOrError::Value(value),
        Err(failure) => ValueOrError::Error(error_of(failure)),
    };
    let response = CallToolResponse {
        call_id: &outcome.call_id,
        success: outcome.result.is_ok(),
        duration: milliseconds(outcome.duration),
        result,
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
