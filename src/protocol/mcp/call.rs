//! Decoding of `tools/call`.
//!
//! Reference: 2026-07-28 and 2025-11-25, Tools, Calling Tools.

use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::{
    elicitation::Elicitation,
    error::ErrorResponse,
    format::{McpFormat, OutputKind},
    progress::ProgressStream,
    schema,
    transport::{CAPABILITIES, check_arguments, supports_tasks},
};
use crate::{
    call::{Background, Call},
    protocol::{
        codec::{EncodedRequest, Operation},
        idempotency_key::idempotency_key,
        jsonrpc::INVALID_PARAMS,
    },
    text::LONGEST_ID,
    tool::parts::ToolParts,
    wire::mcp::CALL_ID,
};

/// Decodes the params of a call.
pub(super) fn decode(
    request: &EncodedRequest<'_>,
    format: &mut McpFormat,
    mut params: Value,
) -> Result<Operation, ErrorResponse> {
    let invalid = |detail: &str| ErrorResponse::new(StatusCode::OK, INVALID_PARAMS, detail);
    let name = params["name"].as_str().filter(|name| !name.is_empty());
    let Some(name) = name.map(str::to_owned) else {
        return Err(invalid(
            "'name' must be the name of a tool: a string that is not empty.",
        ));
    };
    let input = match params["arguments"].take() {
        Value::Null => json!({}),
        input @ Value::Object(_) => input,
        _ => return Err(invalid("'arguments' must be an object.")),
    };
    let mut meta = params["_meta"].take();
    let call_id = call_id_of(request.headers, &meta).map_err(|it| invalid(&it))?;
    let capabilities = &meta[CAPABILITIES];
    if format.is_modern() {
        let elicitation = Elicitation::of(
            capabilities,
            &mut params,
            (&name, &input),
            request.max_values,
        );
        format.elicitation = elicitation.map_err(invalid)?;
    }
    let Some(entry) = request.tool_named(&name) else {
        let similar = similar_to(&name);
        return Ok(request.reject_unknown(name, &similar, call_id));
    };
    if format.is_modern() {
        check_arguments(request.headers, entry.tool.input.value(), &input)?;
    }
    format.output = output_kind_of(&entry.tool);
    let mut call = Call::of_newest(entry, call_id, input);
    call.client_context.answers = format.elicitation.answers();
    if format.is_modern() && supports_tasks(capabilities) {
        format.takes_tasks = true;
        call.background = Background::Task;
    }
    format.progress = ProgressStream::of(request.headers, &mut meta);
    Ok(Operation::Call(call))
}

/// Returns the name to look for among the known ones, in place of one that may be a tool's id.
pub(super) fn similar_to(name: &str) -> String {
    let qualified = name.split('@').next().unwrap_or_default();
    qualified.replace('.', "_")
}

/// Returns the id that identifies a repeated call: never the JSON-RPC id, because clients number
/// their requests from 0.
fn call_id_of(headers: &HeaderMap, meta: &Value) -> Result<Option<String>, String> {
    let call_id = match &meta[CALL_ID] {
        Value::Null => idempotency_key(headers)?,
        Value::String(text) => Some(text.clone()),
        _ => return Err("'lambda-tools/call-id' must be a string.".into()),
    };
    match call_id {
        Some(it) if it.len() > LONGEST_ID => Err("The call id is longer than 256 bytes.".into()),
        call_id => Ok(call_id.filter(|it| !it.is_empty())),
    }
}

/// Derives the schema of this tool alone: a first call must not take longer with more tools.
pub(super) fn output_kind_of(tool: &ToolParts) -> OutputKind {
    if tool.returns_content {
        OutputKind::Content
    } else if schema::is_object(tool.output.value()) {
        OutputKind::Object
    } else {
        OutputKind::Other
    }
}
