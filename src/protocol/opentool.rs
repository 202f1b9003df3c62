//! OpenTool 1.0.0: JSON-RPC 2.0 over HTTP, below `/opentool`.
//!
//! The protocol expresses less than OXP: a call has a function's name and arguments, a response a
//! result or a message. The tools, the checks and their order are the same; everything else is
//! expressed as text. Reference: OpenTool, Client and Server, parts 1 to 3.

mod document;
mod request;
mod response;

use std::sync::Arc;

use http::{Method, StatusCode};
use serde_json::json;

use super::{
    codec::{Codec, Declaration, EncodedRequest, Operation, Purpose, Route},
    encoded_list::{EncodedList, KeptLists},
    json_response::to_json,
    jsonrpc::{INTERNAL_ERROR, RpcError},
    listed_tools::ListedTools,
    refusal::Refusal,
};
use crate::call::Outcome;
use request::RpcFormat;

const CALL: Purpose = Purpose::Call("POST /opentool/call");

/// The codec of OpenTool 1.0.0.
#[derive(Default)]
pub(super) struct OpenToolCodec {
    document: KeptLists<()>,
}

impl Codec for OpenToolCodec {
    const DECLARATION: &'static Declaration = &Declaration {
        title: Some("OpenTool"),
        routes: &[
            Route::new(Method::GET, "/opentool/version", Purpose::Fixed("version")),
            Route::new(Method::GET, "/opentool/load", Purpose::List("load")),
            Route::new(Method::POST, "/opentool/call", CALL),
        ],
        ..Declaration::BASE
    };

    type Format = RpcFormat;

    fn decode(
        &self,
        purpose: Purpose,
        request: &EncodedRequest<'_>,
        format: &mut RpcFormat,
    ) -> Operation {
        match purpose {
            Purpose::Health | Purpose::Fixed(_) => {
                let body = to_json(&json!({"version": request.app.info.version}));
                Operation::Respond(StatusCode::OK, body)
            }
            Purpose::List(_) => Operation::List,
            Purpose::Call(_) | Purpose::Event(_) => request::call(request, format),
        }
    }

    fn dialect(_: &RpcFormat) -> &'static str {
        "opentool"
    }

    fn list(&self, _: &RpcFormat, tools: &ListedTools<'_>) -> Arc<EncodedList> {
        self.document.get((), tools, || document::encode(tools))
    }

    fn list_error(&self, _: &RpcFormat, detail: &str) -> (StatusCode, Vec<u8>) {
        let error = RpcError::new(INTERNAL_ERROR, detail);
        let body = response::encode_error(error, None);
        (StatusCode::INTERNAL_SERVER_ERROR, body)
    }

    fn outcome(&self, format: &RpcFormat, outcome: &Outcome) -> (StatusCode, Vec<u8>) {
        let body = response::encode_outcome(outcome, format.as_deref());
        (StatusCode::OK, body)
    }

    fn refusal(&self, format: &RpcFormat, refusal: &Refusal) -> (StatusCode, Vec<u8>) {
        response::encode_refusal(refusal, format.as_deref())
    }
}
