//! Encoding of responses.
//!
//! An error that a model can act on is a result with `isError`, because clients show JSON-RPC
//! errors to nobody; only a request that a model cannot fix gets a JSON-RPC error. Reference:
//! 2026-07-28 and 2025-11-25, Tools, Error Handling.

use std::{collections::BTreeMap, time::Duration};

use http::StatusCode;
use serde::Serialize;
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use super::{
    error::{ErrorResponse, RpcError},
    form::{CALL_ID, McpForm},
};
use crate::{
    Failure,
    call::{
        Outcome,
        rejection::{Rejection, UnmetRequirements},
    },
    protocol::{
        jsonrpc::{INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, RpcId},
        wording::Wording,
    },
    tool::{output::Output, requirement::Challenge},
};

/// The key in `_meta` that marks a replayed outcome.
const REPLAY: &str = "lambda-tools/replay";
/// The key in `_meta` of the time to wait before a retry, in milliseconds.
const RETRY_AFTER: &str = "lambda-tools/retry-after-ms";

#[derive(Serialize)]
struct RpcResponse<'a, T> {
    jsonrpc: &'static str,
    /// Left out if it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RpcId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a RpcError>,
}

/// The result of `tools/call`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallResult<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    content: [TextContent<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<&'a RawValue>,
    is_error: bool,
    #[serde(rename = "_meta", skip_serializing_if = "BTreeMap::is_empty")]
    meta: Meta<'a>,
}

type Meta<'a> = BTreeMap<&'static str, Value>;

#[derive(Serialize)]
struct TextContent<'a> {
    r#type: &'static str,
    text: &'a str,
}

/// Wraps a value that is not an object.
#[derive(Serialize)]
struct WrappedOutput<'a> {
    result: &'a Output,
}

/// A response with this result.
pub(super) fn encode(form: &McpForm, result: &impl Serialize) -> Vec<u8> {
    to_json(&RpcResponse {
        jsonrpc: "2.0",
        id: form.id.as_deref(),
        result: Some(result),
        error: None,
    })
}

pub(super) fn encode_error(form: &McpForm, error: &RpcError) -> Vec<u8> {
    to_json(&RpcResponse::<()> {
        jsonrpc: "2.0",
        id: form.id.as_deref(),
        result: None,
        error: Some(error),
    })
}

pub(super) fn encode_outcome(form: &McpForm, server_info: &Value, outcome: &Outcome) -> Vec<u8> {
    let mut meta = meta_of(form, server_info);
    if outcome.is_replay {
        meta.insert(REPLAY, true.into());
    }
    if !outcome.call_id.is_empty() {
        meta.insert(CALL_ID, outcome.call_id.as_str().into());
    }
    match &outcome.result {
        Ok(output) => {
            let structured = if form.is_wrapped || !output.is_object() {
                to_raw_value(&WrappedOutput { result: output })
            } else {
                to_raw_value(output)
            };
            let structured = structured.expect("JSON values can be serialized as JSON");
            encode(
                form,
                &CallResult::new(form, structured.get(), Some(&structured), meta),
            )
        }
        Err(failure) => {
            if let Some(wait) = failure.parts().retry_after {
                let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                meta.insert(RETRY_AFTER, ms.into());
            }
            encode(form, &CallResult::new(form, &text_of(failure), None, meta))
        }
    }
}

/// The status and the body of a rejection.
pub(super) fn encode_rejection(
    form: &McpForm,
    server_info: &Value,
    rejection: &Rejection,
) -> (StatusCode, Vec<u8>) {
    if let Some(response) = form.error.clone().or_else(|| error_of(rejection)) {
        return (response.status, encode_error(form, &response.error));
    }
    if let (Rejection::Missing(missing), true) = (rejection, form.opens_urls && !form.has_declined)
        && !missing.challenges.is_empty()
    {
        return (
            StatusCode::OK,
            encode(form, &input_required(missing, server_info)),
        );
    }
    let text = match rejection {
        Rejection::InvalidInput(errors) => {
            let lines = errors
                .iter()
                .map(|(path, error)| format!("\n- {path}: {error}."));
            format!("The input is invalid:{}", lines.collect::<String>())
        }
        Rejection::Missing(missing) if form.has_declined => format!(
            "{} The user has declined to authorize it.",
            missing_text(missing)
        ),
        Rejection::Missing(missing) => missing_text(missing),
        Rejection::CallIdReused => {
            "This call id belongs to another call, which had another input, \
             user or version. Nothing was run; a new call needs a new id."
                .to_owned()
        }
        other => {
            let wording = Wording::of(other);
            match wording.detail {
                Some(detail) => format!("{}. {detail}", wording.message),
                None => wording.message,
            }
        }
    };
    let text = if rejection.is_temporary() {
        format!("{text} Try again in a moment.")
    } else {
        text
    };
    let result = CallResult::new(form, &text, None, meta_of(form, server_info));
    let result = CallResult {
        is_error: true,
        ..result
    };
    (StatusCode::OK, encode(form, &result))
}

impl<'a> CallResult<'a> {
    fn new(
        form: &McpForm,
        text: &'a str,
        structured_content: Option<&'a RawValue>,
        meta: Meta<'a>,
    ) -> Self {
        Self {
            result_type: form.is_modern().then_some("complete"),
            content: [TextContent {
                r#type: "text",
                text,
            }],
            is_error: structured_content.is_none(),
            structured_content,
            meta,
        }
    }
}

/// Every modern result names its server.
pub(super) fn meta_of<'a>(form: &McpForm, server_info: &Value) -> Meta<'a> {
    let mut meta = Meta::new();
    if form.is_modern() {
        meta.insert("io.modelcontextprotocol/serverInfo", server_info.clone());
    }
    meta
}

/// The JSON-RPC error for a rejection; `None` for those that a model can act on.
fn error_of(rejection: &Rejection) -> Option<ErrorResponse> {
    let wording = || Wording::of(rejection).into_detail();
    let new = |status, code| Some(ErrorResponse::new(status, code, wording()));
    match rejection {
        // Codes outside of JSON-RPC's range are the application's own.
        Rejection::Unauthenticated(_) => new(StatusCode::UNAUTHORIZED, 401),
        Rejection::Undecided | Rejection::Unavailable | Rejection::Busy => {
            new(StatusCode::SERVICE_UNAVAILABLE, 503)
        }
        Rejection::Malformed { .. } | Rejection::UnsupportedVersion => {
            new(StatusCode::BAD_REQUEST, INVALID_REQUEST)
        }
        Rejection::InvalidToolId(_)
        | Rejection::UnknownTool { .. }
        | Rejection::UnknownVersion { .. } => new(StatusCode::OK, INVALID_PARAMS),
        Rejection::Misdefined { .. } => new(StatusCode::OK, INTERNAL_ERROR),
        _ => None,
    }
}

/// The text of a failure for a model: what went wrong, and what to do next.
fn text_of(failure: &Failure) -> String {
    let parts = failure.parts();
    let mut text = failure.message().to_owned();
    if let Some(prompt) = &parts.additional_prompt_content {
        text = format!("{text}\n{prompt}");
    }
    if parts.can_retry {
        let advice = match parts.retry_after {
            Some(wait) => format!("Try again in {}.", in_words(wait)),
            None => "The same call may succeed later.".to_owned(),
        };
        text = format!("{text}\n{advice}");
    }
    text
}

fn in_words(wait: Duration) -> String {
    let seconds = wait.as_millis().div_ceil(1000);
    crate::text::counted(seconds, "second", "seconds")
}

/// 2026-07-28, Multi Round-Trip Requests: the user has to open a URL, then the call is repeated.
fn input_required(missing: &UnmetRequirements, server_info: &Value) -> Value {
    let request = |challenge: &Challenge| {
        let params = json!({
            "mode": "url",
            "message": format!("Authorize '{}' once.", challenge.provider),
            "url": challenge.url,
        });
        let request = json!({"method": "elicitation/create", "params": params});
        (challenge.provider.clone(), request)
    };
    let requests: serde_json::Map<_, _> = missing.challenges.iter().map(request).collect();
    json!({
        "resultType": "input_required",
        "inputRequests": requests,
        "_meta": {"io.modelcontextprotocol/serverInfo": server_info},
    })
}

/// The unmet requirements, and who can meet them. Calls cannot bring anything besides the input.
fn missing_text(missing: &UnmetRequirements) -> String {
    let requirements = &missing.requirements;
    let mut lines = Vec::new();
    for needed in &requirements.authorization {
        let challenge = missing
            .challenges
            .iter()
            .find(|it| it.provider == needed.id);
        lines.push(match challenge {
            Some(challenge) => format!(
                "The user has to authorize '{}' once: ask them to open {} and, once they have \
                 done so, call the tool again.",
                needed.id, challenge.url
            ),
            None => format!(
                "It needs the user's token for '{}', which this server cannot obtain.",
                needed.id
            ),
        });
    }
    if requirements.user_id {
        lines.push(
            "It has to know which user it acts for: the client must authenticate with that user's token."
                .to_owned(),
        );
    }
    for (secret, location) in requirements.secrets.iter().zip(&missing.locations) {
        let location = location.as_deref().unwrap_or("the server's secret store");
        lines.push(format!(
            "The operator of the server has to store the secret '{}' in {location}.",
            secret.id
        ));
    }
    for (id, error) in &missing.unreadable {
        lines.push(format!(
            "The server cannot read the secret '{id}': {error}."
        ));
    }
    format!("{} cannot be called yet. {}", missing.tool, lines.join(" "))
}

fn to_json(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("our own bodies have string keys only")
}
