//! Encoding of responses.
//!
//! Reference: 2026-07-28 and 2025-11-25, Tools, Tool Result.

use std::time::Duration;

use serde::Serialize;
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use super::{
    content::ContentBlock,
    error::MISSING_CAPABILITY,
    format::{McpFormat, OutputKind},
};
use crate::{
    Failure,
    call::Outcome,
    json::JsonObject,
    protocol::{
        json_response::to_json,
        jsonrpc::{RpcError, RpcId},
    },
    text::whole_milliseconds,
    tool::output::Output,
    wire::{
        jsonrpc,
        mcp::{CALL_ID, REPLAY, RETRY_AFTER},
    },
};

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
pub(super) struct CallResult<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    content: Vec<ContentBlock<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<&'a RawValue>,
    is_error: bool,
    #[serde(rename = "_meta", skip_serializing_if = "is_empty")]
    meta: Value,
}

/// Wraps a value that is not an object.
#[derive(Serialize)]
struct WrappedOutput<'a> {
    result: &'a Output,
}

/// Encodes a response with this result.
pub(super) fn encode(format: &McpFormat, result: &impl Serialize) -> Vec<u8> {
    if format.is_bare {
        return to_json(result);
    }
    to_json(&RpcResponse {
        jsonrpc: jsonrpc::VERSION,
        id: format.id.as_deref(),
        result: Some(result),
        error: None,
    })
}

pub(super) fn encode_error(format: &McpFormat, error: &RpcError) -> Vec<u8> {
    to_json(&RpcResponse::<()> {
        jsonrpc: jsonrpc::VERSION,
        id: format.id.as_deref(),
        result: None,
        error: Some(error),
    })
}

pub(super) fn encode_outcome(
    format: &McpFormat,
    server_info: &Value,
    outcome: &Outcome,
) -> Vec<u8> {
    let mut meta = meta_of(format, server_info);
    if !outcome.call_id.is_empty() {
        meta[CALL_ID] = json!(outcome.call_id);
    }
    if outcome.is_replay {
        meta[REPLAY] = true.into();
    }
    match &outcome.result {
        Ok(output) => {
            let is_content = format.output == OutputKind::Content;
            if let Some(content) = is_content.then(|| output.content()).flatten() {
                let blocks = content.iter().zip(1..);
                let blocks =
                    blocks.map(|(it, number)| ContentBlock::of(format, outcome, number, it));
                return encode(format, &CallResult::of(format, blocks.collect(), meta));
            }
            let structured = if format.output == OutputKind::Other || !output.is_object() {
                to_raw_value(&WrappedOutput { result: output })
            } else {
                to_raw_value(output)
            };
            let structured = structured.expect("JSON values can be serialized as JSON");
            let text = vec![ContentBlock::text(structured.get())];
            let result = CallResult {
                structured_content: Some(&structured),
                ..CallResult::of(format, text, meta)
            };
            encode(format, &result)
        }
        Err(failure) => {
            let question = failure.parts().question.as_ref();
            if let Some(question) = question.filter(|_| !format.is_bare) {
                let mut result = format.elicitation.question(failure, question);
                result["_meta"] = meta;
                return encode(format, &result);
            }
            if let Some(wait) = failure.parts().retry_after {
                meta[RETRY_AFTER] = whole_milliseconds(wait).into();
            }
            encode(format, &CallResult::error(format, &text_of(failure), meta))
        }
    }
}

/// Returns the error for a client without capabilities that a request requires.
pub(super) fn missing_capability(required: &Value) -> RpcError {
    let mut error = RpcError::new(
        MISSING_CAPABILITY,
        "The client lacks a capability that this requires.",
    );
    error.data = Some(json!({"requiredCapabilities": required}));
    error
}

impl<'a> CallResult<'a> {
    fn of(format: &McpFormat, content: Vec<ContentBlock<'a>>, meta: Value) -> Self {
        Self {
            result_type: format.is_modern().then_some("complete"),
            content,
            structured_content: None,
            is_error: false,
            meta: if format.is_bare { Value::Null } else { meta },
        }
    }

    pub(super) fn error(format: &McpFormat, text: &'a str, meta: Value) -> Self {
        Self {
            is_error: true,
            ..Self::of(format, vec![ContentBlock::text(text)], meta)
        }
    }
}

/// Returns `_meta` of a result. Every modern result names its server.
pub(super) fn meta_of(format: &McpFormat, server_info: &Value) -> Value {
    let mut meta = json!({});
    if format.is_modern() {
        meta["io.modelcontextprotocol/serverInfo"] = server_info.clone();
    }
    meta
}

pub(super) fn is_empty(meta: &Value) -> bool {
    meta.as_object().is_none_or(JsonObject::is_empty)
}

/// Returns the text of a failure for a model: what went wrong, and what to do next.
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

pub(super) fn in_words(wait: Duration) -> String {
    let seconds = wait.as_millis().div_ceil(1000);
    crate::text::counted(seconds, "second", "seconds")
}
