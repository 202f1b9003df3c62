//! Decoding of JSON-RPC requests.

use serde_json::{Value, value::RawValue};

use http::StatusCode;

use super::response::encode_error;
use crate::{
    call::Call,
    observe::request_log::RequestNames,
    protocol::{
        codec::{DecodedRequest, EncodedRequest, Operation, OwnRefusal},
        json::JsonScope,
        jsonrpc::{
            INVALID_PARAMS, INVALID_REQUEST, MessageError, RpcError, RpcId, RpcMessage,
            id_anywhere_in, id_in, message_in, params_in, text_in,
        },
    },
    tool::{id::Selector, reason::Reason},
    wire::jsonrpc::VERSION,
};

/// The format of a response, as its request determines it.
#[derive(Default)]
pub(crate) struct RpcFormat {
    pub(super) id: Option<Box<RpcId>>,
}

/// Decodes the body of `POST /opentool/call`. Order of the checks: JSON, shape, id, version, method,
/// params.
pub(super) fn call(request: &EncodedRequest<'_>) -> DecodedRequest<RpcFormat> {
    let body = request.body;
    let rpc = match message_in(body) {
        Ok(rpc) => rpc,
        Err(error) => return refuse(id_anywhere_in(body), None, error),
    };
    let (id, call_id) = match rpc.id.map(|id| (id, id_in(id))) {
        None => {
            let detail = "The request has no id: notifications are not supported.";
            return refuse(None, None, (INVALID_REQUEST, detail.into()));
        }
        Some((_, None)) => {
            let detail = "'id' must be a string or a number of at most 256 bytes.";
            return refuse(None, None, (INVALID_REQUEST, detail.into()));
        }
        Some((id, Some(call_id))) => (Some(id.to_owned()), call_id),
    };
    let method = match method_of(&rpc) {
        Ok(method) => method,
        Err(detail) => return refuse(id, None, (INVALID_REQUEST, detail.into())),
    };
    let input = match input_in(rpc.params, request.max_values) {
        Ok(input) => input,
        Err(error) => return refuse(id, Some(method), error),
    };
    let operation = match request.tool_named(&method) {
        Some(entry) => {
            let selector = Selector {
                qualified: entry.id.shared(),
                version: None,
            };
            Operation::Call(Box::new(Call {
                // Some clients send an empty string for an unset id.
                call_id: Some(call_id).filter(|id| !id.is_empty()),
                ..Call::new(selector, input)
            }))
        }
        None => request.reject_unknown(method.clone(), &method, Some(call_id)),
    };
    let format = RpcFormat { id };
    DecodedRequest { format, operation }
}

/// Refuses a malformed request; its readable names go into the log.
fn refuse(
    id: Option<Box<RpcId>>,
    method: Option<String>,
    (code, detail): MessageError,
) -> DecodedRequest<RpcFormat> {
    let names = RequestNames {
        call_id: id.as_deref().and_then(id_in),
        tool: method,
        trace_id: None,
    };
    let status = match code {
        INVALID_PARAMS => StatusCode::OK,
        _ => StatusCode::BAD_REQUEST,
    };
    let operation = Operation::Refuse(OwnRefusal {
        status,
        body: encode_error(RpcError::new(code, &*detail), id.as_deref()),
        reason: Reason::Malformed,
        detail,
        names,
    });
    let format = RpcFormat { id };
    DecodedRequest { format, operation }
}

fn method_of(request: &RpcMessage<'_>) -> Result<String, &'static str> {
    // The published TypeScript client sends 2.0.0.
    let version = request.jsonrpc.and_then(text_in);
    if !version.is_some_and(|it| it == VERSION || it == "2.0.0") {
        return Err("'jsonrpc' must be \"2.0\".");
    }
    let method = request.method.and_then(text_in);
    method.ok_or("'method' must be a string: the name of a function.")
}

/// Parses the params of a request as an object.
fn input_in(params: Option<&RawValue>, max_values: usize) -> Result<Value, MessageError> {
    let Some(params) = params else {
        return Ok(Value::Object(serde_json::Map::new()));
    };
    match params.get().as_bytes().first() {
        Some(b'{') => {}
        Some(b'[') => {
            let detail = "'params' must be an object with named parameters.";
            return Err((INVALID_PARAMS, detail.into()));
        }
        _ => return Err((INVALID_REQUEST, "'params' must be an object.".into())),
    }
    params_in(params.get(), &JsonScope::Whole, max_values)
}
