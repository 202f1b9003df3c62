//! Calls from an AgentCore Gateway: the event is the arguments, and the answer is the result of
//! `tools/call` alone.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, Request};

use super::{
    McpCodec,
    format::{McpFormat, OutputKind},
    request::similar_to,
    transport::Revision,
};
use crate::{
    arrival::Invocation,
    call::{Background, Call},
    observe::request_log::RequestNames,
    protocol::{
        app::AppState,
        codec::{EncodedRequest, Operation},
        driver::{self, Admission},
        idempotency_key::{id_in, idempotency_key},
        json::{self, JsonError, JsonScope},
        refusal::Refusal,
    },
};

/// The facts about a call that its event cannot choose.
pub(crate) struct GatewayCall {
    /// The name of the tool.
    pub(crate) tool: String,
    /// The header with the user's id.
    pub(crate) user_header: Option<HeaderName>,
}

/// Answers a call.
pub(crate) async fn answer(
    app: &Arc<AppState>,
    gateway: GatewayCall,
    request: Request<Bytes>,
    admission: Admission,
    invocation: Invocation,
) -> Bytes {
    let codec = McpCodec {
        gateway: Some(gateway),
        ..McpCodec::default()
    };
    driver::answer(app, codec, "agentcore", request, admission, invocation).await
}

/// Returns the format of the result. The gateway names no revision, and the fields that 2026-07-28
/// added are for clients that ask for that revision.
pub(super) fn bare() -> McpFormat {
    McpFormat {
        revision: Some(Revision::NEWEST_LEGACY),
        is_bare: true,
        ..McpFormat::default()
    }
}

/// Decodes an event.
pub(super) fn decode(
    request: &EncodedRequest<'_>,
    gateway: &GatewayCall,
    format: &mut McpFormat,
) -> Operation {
    let operation = operation_of(request, gateway, format);
    operation.unwrap_or_else(|refusal| {
        let names = RequestNames {
            tool: Some(gateway.tool.clone()),
            call_id: idempotency_key(request.headers).unwrap_or_default(),
            trace_id: None,
        };
        Operation::Reject(refusal, names)
    })
}

fn operation_of(
    request: &EncodedRequest<'_>,
    gateway: &GatewayCall,
    format: &mut McpFormat,
) -> Result<Operation, Refusal> {
    let call_id = idempotency_key(request.headers).map_err(refused)?;
    let user = gateway.user_header.as_ref();
    let user = user.map(|header| id_in(request.headers, header, header.as_str(), &[]));
    let user = user.transpose().map_err(refused)?.flatten();
    let read = json::read(request.body, &JsonScope::Whole, request.max_values);
    let input = read.map_err(|error| match error {
        JsonError::Syntax(error) => refused(format!("The event is not valid JSON: {error}")),
        JsonError::Rejected(sentence) => refused(sentence),
    })?;
    if !input.is_object() {
        let detail = "The event must be an object: the tool's arguments.";
        return Err(refused(detail.to_owned()));
    }
    let Some(entry) = request.tool_named(&gateway.tool) else {
        let similar = similar_to(&gateway.tool);
        return Ok(request.reject_unknown(gateway.tool.clone(), &similar, call_id));
    };
    format.output = OutputKind::of(&entry.tool);
    let mut call = Call::of_newest(entry, call_id, input);
    call.client_context.user_id = user.map(str::to_owned);
    call.background = Background::InPlace;
    Ok(Operation::Call(call))
}

fn refused(detail: String) -> Refusal {
    Refusal::malformed("The call is not valid", detail)
}
