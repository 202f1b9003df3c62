//! Encoding of JSON-RPC responses.
//!
//! `result` is an object in every answer; `error` is `null` in a good one.

use serde::Serialize;

use super::{
    error::{FAILED, RpcError},
    request::Id,
};
use crate::{Failure, call::Outcome, tool::output::Output};

#[derive(Serialize)]
struct Answer<'a> {
    jsonrpc: &'static str,
    result: Content<'a>,
    error: Option<RpcError>,
    id: IdOf<'a>,
}

/// A value that is an object is the result itself; anything else is wrapped.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Nothing {},
    Object(&'a Output),
    Wrapped { value: &'a Output },
}

#[derive(Serialize)]
#[serde(untagged)]
enum IdOf<'a> {
    Given(&'a Id),
    Unknown(&'static str),
}

pub(super) fn encoded(outcome: &Outcome, id: Option<&Id>) -> Vec<u8> {
    match &outcome.result {
        Ok(output) => written(content_of(output), None, id),
        Err(failure) => {
            let (code, message) = (FAILED, message_of(failure));
            written(Content::Nothing {}, Some(RpcError { code, message }), id)
        }
    }
}

pub(super) fn refused(error: RpcError, id: Option<&Id>) -> Vec<u8> {
    written(Content::Nothing {}, Some(error), id)
}

fn content_of(output: &Output) -> Content<'_> {
    if output.is_null() {
        Content::Nothing {}
    } else if output.is_object() {
        Content::Object(output)
    } else {
        Content::Wrapped { value: output }
    }
}

/// There is one text: what would help the next attempt goes into it.
fn message_of(failure: &Failure) -> String {
    let message = failure.message();
    match &failure.parts().additional_prompt_content {
        Some(prompt) => format!("{message} ({prompt})"),
        None => message.to_owned(),
    }
}

fn written(result: Content<'_>, error: Option<RpcError>, id: Option<&Id>) -> Vec<u8> {
    let answer = Answer {
        jsonrpc: "2.0",
        result,
        error,
        id: id.map_or(IdOf::Unknown(""), IdOf::Given),
    };
    serde_json::to_vec(&answer).expect("JSON values can be written as JSON")
}
