//! Decoding of JSON-RPC requests.

use serde_json::{Value, value::RawValue};

use http::StatusCode;

use super::response::encode_error;
use crate::{
    call::Call,
    observe::request_log::RequestNames,
    protocol::{
        codec::{EncodedRequest, Operation, OwnRefusal},
        json::JsonScope,
        jsonrpc::{
            INVALID_PARAMS, INVALID_REQUEST, RpcError, RpcId, RpcMessage, id_in, message_in,
            params_in, text_in,
        },
    },
    wire::jsonrpc::VERSION,
};

/// The format of a response, as its request determines it: with this id.
pub(super) type RpcFormat = Option<Box<RpcId>>;

/// Decodes the body of `POST /opentool/call`. What could be read of a malformed request goes into its
/// response and the log.
pub(super) fn call(request: &EncodedRequest<'_>, format: &mut RpcFormat) -> Operation {
    let mut names = RequestNames::default();
    let operation = operation_of(request, format, &mut names);
    operation.unwrap_or_else(|error| {
        names.call_id = format.as_deref().and_then(id_in);
        Operation::Refuse(OwnRefusal {
            status: match error.code {
                INVALID_PARAMS => StatusCode::OK,
                _ => StatusCode::BAD_REQUEST,
            },
            detail: error.message.clone(),
            body: encode_error(error, format.as_deref()),
            names,
        })
    })
}

/// Order of the checks: JSON, shape, id, version, method, params.
fn operation_of(
    request: &EncodedRequest<'_>,
    format: &mut RpcFormat,
    names: &mut RequestNames,
) -> Result<Operation, RpcError> {
    let rpc = message_in(request.body, format)?;
    let invalid = |detail: &str| RpcError::new(INVALID_REQUEST, detail);
    let call_id = rpc.id.and_then(id_in);
    if call_id.is_none() {
        return Err(invalid(
            "The request has no id: notifications are not supported.",
        ));
    }
    let method = method_of(&rpc).map_err(invalid)?;
    names.tool = Some(method.clone());
    let input = input_in(rpc.params, request.max_values)?;
    let Some(entry) = request.tool_named(&method) else {
        return Ok(request.reject_unknown(method.clone(), &method, call_id));
    };
    // Some clients send an empty string for an unset id.
    let call_id = call_id.filter(|id| !id.is_empty());
    Ok(Operation::Call(Call::of_newest(entry, call_id, input)))
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
fn input_in(params: Option<&RawValue>, max_values: usize) -> Result<Value, RpcError> {
    let Some(params) = params else {
        return Ok(Value::Object(serde_json::Map::new()));
    };
    let (code, detail) = match params.get().as_bytes().first() {
        Some(b'{') => return params_in(params, &JsonScope::Whole, max_values),
        Some(b'[') => (
            INVALID_PARAMS,
            "'params' must be an object with named parameters.",
        ),
        _ => (INVALID_REQUEST, "'params' must be an object."),
    };
    Err(RpcError::new(code, detail))
}
