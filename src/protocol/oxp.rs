//! OXP 1.0 and its predecessor Open Tool Calling 1.0: one model in three dialects.
//!
//! The shape of a request determines its dialect, and the response uses the same one. Reference:
//! OXP 1.0, Call Tool and List Tools; OTC 1.0, Call Tool.

mod catalogue;
mod dialect;
mod fields;
#[cfg(feature = "openapi")]
pub(super) mod openapi;
mod request;
mod response;

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use serde_json::json;

use super::{
    app::AppState,
    codec::{Codec, Declaration, EncodedRequest, Operation, Purpose, Route},
    driver::{self, Admission},
    encoded_list::{EncodedList, KeptLists},
    json_response::to_json,
    listed_tools::ListedTools,
    refusal::Refusal,
    wording::Wording,
};
use crate::{
    Caller,
    arrival::Invocation,
    call::{Background, Outcome},
    wire::{
        IDEMPOTENCY_KEY,
        oxp::{SHOULD_RETRY, VERSION, VERSION_HEADER},
    },
};
use dialect::{Dialect, ListFormat, OxpFormat};

/// The codec of OXP 1.0 and Open Tool Calling 1.0.
#[derive(Default)]
pub(super) struct OxpCodec {
    /// By their formats; the `OpenAPI` document by its URL, too.
    lists: KeptLists<(ListFormat, Option<String>)>,
}

/// The name of the span of a call.
const CALL_SPAN: &str = "POST /tools/call";
const CALL: Purpose = Purpose::Call(CALL_SPAN);
const CALL_OF_SINGLE_TOOL: Purpose = Purpose::Call("POST /tools/{tool_id}/call");

impl Codec for OxpCodec {
    const DECLARATION: &'static Declaration = &Declaration {
        routes: &[
            Route::new(Method::GET, "/health", Purpose::Health),
            Route::new(Method::GET, "/tools", Purpose::List("list")),
            Route::new(Method::POST, "/tools/call", CALL),
            Route::new(Method::POST, "/tools/{tool_id}/call", CALL_OF_SINGLE_TOOL),
            #[cfg(feature = "openapi")]
            Route::new(Method::GET, "/openapi.json", Purpose::OPENAPI),
        ],
        // The path in the specification's examples.
        aliases: &[Route::new(Method::POST, "/call", CALL)],
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

    fn decode(
        &self,
        purpose: Purpose,
        request: &EncodedRequest<'_>,
        format: &mut OxpFormat,
    ) -> Operation {
        match purpose {
            Purpose::Health | Purpose::Fixed(_) => health(request.app.engine.is_healthy()),
            Purpose::OPENAPI => {
                *format = ListFormat::OpenApi.into();
                Operation::List
            }
            Purpose::List(_) => request::list(request, format),
            CALL_OF_SINGLE_TOOL => request::single_tool(request, format),
            Purpose::Call(_) => request::call(request, Background::Elsewhere, format),
            Purpose::Event(_) => request::call(request, Background::InPlace, format),
        }
    }

    fn dialect(format: &OxpFormat) -> &'static str {
        format.dialect.name()
    }

    fn list(&self, format: &OxpFormat, tools: &ListedTools<'_>) -> Arc<EncodedList> {
        // Only the document has the server's URL.
        let url = tools
            .server_url
            .filter(|_| format.list == ListFormat::OpenApi);
        let encode = || match format.list {
            #[cfg(feature = "openapi")]
            ListFormat::OpenApi => EncodedList::of(&openapi::document_of(tools)),
            list => catalogue::encode(list, tools),
        };
        let key = (format.list, url.map(str::to_owned));
        self.lists.get(key, tools, encode)
    }

    fn list_error(&self, format: &OxpFormat, detail: &str) -> (StatusCode, Vec<u8>) {
        let message = match format.list {
            ListFormat::OpenApi => "The OpenAPI document cannot be sent",
            _ => "The list of tools cannot be sent",
        };
        let body = response::ErrorBody::of(Wording::new(message, detail), Dialect::Header);
        (StatusCode::BAD_REQUEST, to_json(&body))
    }

    fn outcome(&self, format: &OxpFormat, outcome: &Outcome) -> (StatusCode, Vec<u8>) {
        match format.dialect {
            Dialect::Path => response::encode_bare(outcome),
            dialect => (StatusCode::OK, response::encode(dialect, outcome)),
        }
    }

    fn refusal(&self, format: &OxpFormat, refusal: &Refusal) -> (StatusCode, Vec<u8>) {
        response::encode_refusal(refusal, format)
    }
}

/// Responds to `GET /health`: 200 if healthy, 503 if not (OXP 1.0).
fn health(is_healthy: bool) -> Operation {
    let (code, status) = if is_healthy {
        (StatusCode::OK, "ok")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "unavailable")
    };
    Operation::Respond(code, to_json(&json!({"status": status})))
}

/// Returns true for the `$schema` of a call in an envelope: `urn:oxp:1.0`, `otc://1.0`, or OXP's
/// URL.
pub(crate) fn is_schema_of_call(schema: &str) -> bool {
    schema.starts_with("urn:oxp:") || schema.starts_with("otc://") || schema.contains("oxp")
}

/// Answers a direct call: an event that has the format of a body of `POST /tools/call`, in any
/// dialect.
pub(crate) async fn answer_direct_call(
    app: &Arc<AppState>,
    event: &str,
    invocation: Invocation,
) -> Bytes {
    let request = Request::new(Bytes::copy_from_slice(event.as_bytes()));
    // IAM has admitted whoever invokes the function itself, so the call needs no credentials.
    let admission = Admission::Admitted(Caller::Invoker);
    let codec = OxpCodec::default();
    driver::answer(app, codec, CALL_SPAN, request, admission, invocation).await
}
