//! OXP 1.0 and its predecessor Open Tool Calling 1.0: one model in three dialects.
//!
//! The shape of a request determines its dialect, and the response uses the same one. Reference:
//! OXP 1.0, Call Tool and List Tools; OTC 1.0, Call Tool.

mod catalogue;
mod dialect;
pub(crate) mod direct;
mod error;
mod fields;
mod format;
#[cfg_attr(not(feature = "openapi"), path = "oxp/openapi/off.rs")]
pub(super) mod openapi;
mod request;
mod response;

use std::sync::Arc;

use http::StatusCode;
use serde_json::json;

use super::{
    codec::{Codec, Declaration, DecodedRequest, EncodedRequest, Operation, Purpose, Reply, Route},
    encoded_list::{EncodedList, KeptLists},
    json_response::to_json,
    listed_tools::ListedTools,
    refusal::Refusal,
    wording::Wording,
};
use crate::{
    ServerInfo,
    call::{Background, Outcome},
    wire::{
        IDEMPOTENCY_KEY,
        oxp::{SHOULD_RETRY, VERSION, VERSION_HEADER},
    },
};
use dialect::Dialect;
use error::{ErrorBody, status_of};
use format::{ListFormat, OxpFormat};

/// The codec of OXP 1.0 and Open Tool Calling 1.0.
pub(super) struct OxpCodec {
    /// By their formats; the `OpenAPI` document by its URL, too.
    lists: KeptLists<(ListFormat, Option<String>)>,
    info: ServerInfo,
}

/// The name of the span of a call.
const CALL_SPAN: &str = "POST /tools/call";
const CALL: Purpose = Purpose::Call(CALL_SPAN);
const CALL_OF_SINGLE_TOOL: Purpose = Purpose::Call("POST /tools/{tool_id}/call");
const OPENAPI: Purpose = Purpose::List("openapi");

impl OxpCodec {
    pub(super) fn new(info: &ServerInfo) -> Self {
        Self {
            lists: KeptLists::default(),
            info: info.clone(),
        }
    }
}

impl Codec for OxpCodec {
    const DECLARATION: &'static Declaration = &Declaration {
        routes: &[
            Route::get("/health", Purpose::Health),
            Route::get("/tools", Purpose::List("list")),
            Route::post("/tools/call", CALL),
            Route::post("/tools/{tool_id}/call", CALL_OF_SINGLE_TOOL),
            #[cfg(feature = "openapi")]
            Route::get("/openapi.json", OPENAPI),
            // The path in the specification's examples.
            Route::post("/call", CALL).alias(),
        ],
        // RFC 9110, section 12.5.5.
        list_headers: &[("vary", VERSION_HEADER)],
        request_headers: &[IDEMPOTENCY_KEY, "if-none-match", VERSION_HEADER],
        response_headers: &[VERSION_HEADER, SHOULD_RETRY],
        // Every response names the protocol version that it follows.
        fixed_headers: &[(VERSION_HEADER, VERSION)],
        // The published clients retry after a 400 only with this header.
        retry_headers: &[(SHOULD_RETRY, "true")],
        secrets: &[
            ("/context/secrets", "value"),
            ("/context/authorization", "token"),
            ("/request/context/secrets", "value"),
            ("/request/context/authorization", "token"),
            // Wrong places, outside of the context; values there are still secret.
            ("/secrets", "value"),
            ("/authorization", "token"),
            ("/request/secrets", "value"),
            ("/request/authorization", "token"),
        ],
        ..Declaration::BASE
    };

    type Format = OxpFormat;

    fn decode(&self, purpose: Purpose, request: &EncodedRequest<'_>) -> DecodedRequest<OxpFormat> {
        match purpose {
            Purpose::Health | Purpose::Version | Purpose::Unsupported => {
                health(request.engine.is_healthy())
            }
            OPENAPI => DecodedRequest {
                format: ListFormat::OpenApi.into(),
                operation: Operation::List,
            },
            Purpose::List(_) => request::list(request),
            CALL_OF_SINGLE_TOOL => request::single_tool(request),
            Purpose::Call(_) => request::call(request, Background::Elsewhere),
            Purpose::Event(_) => request::call(request, Background::InPlace),
        }
    }

    fn dialect(format: &OxpFormat) -> &'static str {
        format.dialect.name()
    }

    fn list(&self, format: &OxpFormat, tools: &ListedTools<'_>) -> Arc<EncodedList> {
        if format.list == ListFormat::OpenApi {
            let url = tools.server_url().map(str::to_owned);
            let encode = || EncodedList::of(&openapi::document_of(&self.info, tools));
            return self.lists.get((format.list, url), tools, encode);
        }
        let encode = || catalogue::encode(format.list, tools);
        self.lists.get((format.list, None), tools, encode)
    }

    fn list_error(&self, format: &OxpFormat, detail: &str) -> (StatusCode, Vec<u8>) {
        let message = match format.list {
            ListFormat::OpenApi => "The OpenAPI document cannot be sent",
            _ => "The list of tools cannot be sent",
        };
        let body = ErrorBody::worded(Wording::new(message, detail), &OxpFormat::default());
        (StatusCode::BAD_REQUEST, to_json(&body))
    }

    fn outcome(&self, format: &OxpFormat, outcome: &Outcome) -> (StatusCode, Vec<u8>) {
        match format.dialect {
            Dialect::Path => response::encode_bare(outcome),
            dialect => (StatusCode::OK, response::encode(dialect, outcome)),
        }
    }

    fn refusal(&self, format: &OxpFormat, refusal: &Refusal) -> (StatusCode, Vec<u8>) {
        let body = ErrorBody::of(refusal, format);
        (status_of(refusal), to_json(&body))
    }
}

/// Responds to `GET /health`: 200 if healthy, 503 if not (OXP 1.0).
fn health(is_healthy: bool) -> DecodedRequest<OxpFormat> {
    let (code, status) = if is_healthy {
        (StatusCode::OK, "ok")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "unavailable")
    };
    DecodedRequest {
        format: OxpFormat::default(),
        operation: Operation::Respond(Reply::json(code, to_json(&json!({"status": status})))),
    }
}
