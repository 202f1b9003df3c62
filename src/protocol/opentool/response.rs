//! Encoding of JSON-RPC responses.
//!
//! `result` is an object in every response; `error` is `null` on success.

use serde::Serialize;

use super::error::FAILED;
use crate::{
    Failure,
    call::Outcome,
    protocol::{
        json_response::to_json,
        jsonrpc::{RpcError, RpcId},
    },
    tool::output::Output,
    wire::jsonrpc,
};

#[derive(Serialize)]
struct RpcResponse<'a> {
    jsonrpc: &'static str,
    result: ResultObject<'a>,
    error: Option<RpcError>,
    id: ResponseId<'a>,
}

/// An object is the result itself; any other value is wrapped.
#[derive(Serialize)]
#[serde(untagged)]
enum ResultObject<'a> {
    Nothing {},
    Object(&'a Output),
    Wrapped { value: &'a Output },
}

#[derive(Serialize)]
#[serde(untagged)]
enum ResponseId<'a> {
    Echoed(&'a RpcId),
    Unknown(&'static str),
}

pub(super) fn encode_outcome(outcome: &Outcome, id: Option<&RpcId>) -> Vec<u8> {
    match &outcome.result {
        Ok(output) => encode(content_of(output), None, id),
        Err(failure) => encode_error(RpcError::new(FAILED, message_of(failure)), id),
    }
}

pub(super) fn encode_error(error: RpcError, id: Option<&RpcId>) -> Vec<u8> {
    encode(ResultObject::Nothing {}, Some(error), id)
}

fn content_of(output: &Output) -> ResultObject<'_> {
    if output.is_null() {
        ResultObject::Nothing {}
    } else if output.is_object() {
        ResultObject::Object(output)
    } else {
        ResultObject::Wrapped { value: output }
    }
}

/// Returns the message of a failure with its hint for the next attempt, because the protocol has
/// only one text for an error.
fn message_of(failure: &Failure) -> String {
    let message = failure.message();
    match &failure.parts().additional_prompt_content {
        Some(prompt) => format!("{message} ({prompt})"),
        None => message.to_owned(),
    }
}

fn encode(result: ResultObject<'_>, error: Option<RpcError>, id: Option<&RpcId>) -> Vec<u8> {
    to_json(&RpcResponse {
        jsonrpc: jsonrpc::VERSION,
        result,
        error,
        id: id.map_or(ResponseId::Unknown(""), ResponseId::Echoed),
    })
}
