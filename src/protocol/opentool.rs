//! OpenTool 1.0.0: JSON-RPC 2.0 over HTTP, below `/opentool`.
//!
//! The protocol expresses less than OXP: a call has a function's name and arguments, a response a
//! result or a message. The tools, the checks and their order are the same; everything else is
//! expressed as text. Reference: OpenTool, Client and Server, parts 1 to 3.

mod document;
mod error;
mod events;
mod request;
mod response;
mod schema;

use std::{convert::Infallible, sync::Arc};

use axum::body::Body;
use futures_util::stream;
use http::StatusCode;
use http_body_util::StreamBody;
use hyper::body::Frame;
use serde_json::json;

use super::{
    body::ResponseBody,
    codec::{Codec, Declaration, DecodedRequest, EncodedRequest, Operation, Purpose, Reply, Route},
    encoded_list::{EncodedList, KeptLists},
    json_response::to_json,
    jsonrpc::{INTERNAL_ERROR, RpcError},
    listed_tools::ListedTools,
    refusal::Refusal,
};
use crate::{
    ServerInfo,
    call::{Call, Outcome},
};
use request::RpcFormat;

/// The call whose response is a stream of events. The specification has no text about it; the SDKs
/// for Dart define it.
const STREAM_CALL: Purpose = Purpose::Call("POST /opentool/streamCall");

/// The codec of OpenTool 1.0.0.
pub(super) struct OpenToolCodec {
    info: ServerInfo,
    document: KeptLists<()>,
}

impl Codec for OpenToolCodec {
    const DECLARATION: &'static Declaration = &Declaration {
        title: Some("OpenTool"),
        routes: &[
            Route::get("/opentool/version", Purpose::Version),
            Route::get("/opentool/load", Purpose::List("load")),
            Route::post("/opentool/call", Purpose::Call("POST /opentool/call")),
            Route::post("/opentool/streamCall", STREAM_CALL).alias(),
        ],
        resource_path: "",
        list_headers: &[],
        request_headers: &[],
        response_headers: &[],
        fixed_headers: &[],
        retry_headers: &[],
        secrets: &[],
    };

    type Format = RpcFormat;

    fn new(info: &ServerInfo) -> Self {
        Self {
            info: info.clone(),
            document: KeptLists::default(),
        }
    }

    fn decode(&self, purpose: Purpose, request: &EncodedRequest<'_>) -> DecodedRequest<RpcFormat> {
        let operation = match purpose {
            Purpose::Health | Purpose::Version | Purpose::Unsupported => {
                version(self.info.version())
            }
            Purpose::List(_) => Operation::List,
            Purpose::Call(_) => return request::call(request, purpose == STREAM_CALL),
        };
        let format = RpcFormat::default();
        DecodedRequest { format, operation }
    }

    fn dialect(_: &RpcFormat) -> &'static str {
        "opentool"
    }

    fn list(&self, _: &RpcFormat, tools: &ListedTools<'_>) -> Arc<EncodedList> {
        let encode = || document::encode(&self.info, tools);
        self.document.get((), tools, encode)
    }

    fn list_error(&self, _: &RpcFormat, detail: &str) -> (StatusCode, ResponseBody) {
        let error = RpcError::new(INTERNAL_ERROR, detail);
        let body = response::encode_error(error, None);
        (StatusCode::INTERNAL_SERVER_ERROR, body.into())
    }

    fn early_chunks(format: &mut RpcFormat, _: &mut Call) -> Option<Body> {
        let start = format.events.as_mut()?.start();
        // Any chunk after it is one of the outcome.
        let start = stream::iter([Ok::<_, Infallible>(Frame::data(start))]);
        Some(Body::new(StreamBody::new(start)))
    }

    fn outcome(&self, format: &RpcFormat, outcome: &Outcome) -> (StatusCode, ResponseBody) {
        let body = response::encode_outcome(outcome, format.id.as_deref());
        match &format.events {
            None => (StatusCode::OK, body.into()),
            Some(events) => (StatusCode::OK, events.end(&body, outcome.result.is_ok())),
        }
    }

    fn refusal(&self, format: &RpcFormat, refusal: &Refusal) -> (StatusCode, ResponseBody) {
        let (status, code) = error::status_of(refusal);
        let error = RpcError::new(code, error::message_of(refusal));
        let body = response::encode_error(error, format.id.as_deref());
        match &format.events {
            None => (status, body.into()),
            // A client of a stream ignores the status.
            Some(events) => (StatusCode::OK, events.end(&body, false)),
        }
    }
}

/// Responds with the version of this server, to `GET /opentool/version`.
fn version(version: &str) -> Operation {
    let body = to_json(&json!({"version": version}));
    Operation::Respond(Reply::json(StatusCode::OK, body))
}
