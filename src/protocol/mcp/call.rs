//! Decoding of `tools/call`.
//!
//! Reference: 2026-07-28 and 2025-11-25, Tools, Calling Tools.

use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::{
    McpCodec,
    elicitation::Elicitation,
    error::ErrorResponse,
    form::{CALL_ID, McpForm, OutputKind},
    schema,
};
use crate::{
    Tool,
    call::{Call, ClientContext, rejection::Rejection},
    observe::request_log::RequestNames,
    protocol::{
        codec::{EncodedRequest, Operation},
        idempotency_key::idempotency_key,
        integers,
        jsonrpc::INVALID_PARAMS,
    },
    text::LONGEST_ID,
    tool::id::Selector,
};

/// Decodes the params of a call.
pub(super) fn decode(
    request: &EncodedRequest<'_>,
    codec: &McpCodec,
    form: &mut McpForm,
    mut params: Value,
) -> Result<Operation, ErrorResponse> {
    let invalid = |detail: &str| ErrorResponse::new(StatusCode::OK, INVALID_PARAMS, detail);
    let name = params["name"].as_str().filter(|name| !name.is_empty());
    let Some(name) = name.map(str::to_owned) else {
        return Err(invalid(
            "'name' must be the name of a tool: a string that is not empty.",
        ));
    };
    let mut input = match params["arguments"].take() {
        Value::Null => json!({}),
        input @ Value::Object(_) => input,
        _ => return Err(invalid("'arguments' must be an object.")),
    };
    let rounded = integers::restore(request.body, &["params.arguments"], &mut input);
    let call_id = call_id_of(&request.parts.headers, &params).map_err(invalid)?;
    if form.is_modern() {
        let elicitation = Elicitation::of(&mut params, &name, &input, request.max_values);
        form.elicitation = elicitation.map_err(invalid)?;
    }
    let toolkit = &request.engine.toolkit;
    let Some(qualified) = codec.names.tool_of(&name, toolkit) else {
        let rejection = Rejection::UnknownTool {
            closest: closest(codec, &name, request),
            qualified: (&*name).into(),
        };
        let names = RequestNames {
            tool: Some(name),
            call_id,
            trace_id: None,
        };
        return Ok(Operation::Reject(rejection, names));
    };
    let selector = Selector {
        qualified,
        version: None,
    };
    // The schema of this tool alone: a first call must not take longer with more tools.
    let tool = toolkit.newest_of(&selector.qualified);
    form.output = tool.map_or(OutputKind::Object, |it| output_kind_of(&it.tool));
    Ok(Operation::Call(Box::new(Call {
        selector,
        call_id,
        permit: None,
        rounded,
        trace_id: None,
        input,
        client_context: ClientContext {
            answers: form.elicitation.answers(),
            ..ClientContext::default()
        },
    })))
}

/// The name that comes closest to an unknown one, which may be a tool's id.
fn closest(codec: &McpCodec, name: &str, request: &EncodedRequest<'_>) -> Option<String> {
    let qualified = name.split('@').next().unwrap_or_default();
    codec.names.closest(&qualified.replace('.', "_"), request)
}

/// The id that identifies a repeated call: never the JSON-RPC id, because clients number their
/// requests from 0.
fn call_id_of(headers: &HeaderMap, params: &Value) -> Result<Option<String>, &'static str> {
    let call_id = match &params["_meta"][CALL_ID] {
        Value::Null => idempotency_key(headers)?,
        Value::String(text) => Some(text.clone()),
        _ => return Err("'lambda-tools/call-id' must be a string."),
    };
    match call_id {
        Some(it) if it.len() > LONGEST_ID => Err("The call id is longer than 256 bytes."),
        call_id => Ok(call_id.filter(|it| !it.is_empty())),
    }
}

fn output_kind_of(tool: &Tool) -> OutputKind {
    if tool.returns_content {
        OutputKind::Content
    } else if schema::is_object(tool.output.value()) {
        OutputKind::Object
    } else {
        OutputKind::Other
    }
}
