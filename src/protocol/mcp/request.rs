//! Decoding of requests: a JSON-RPC message, then its method.
//!
//! The order of the checks is that of the published servers: Accept, Content-Type, JSON, the format
//! of a message, `_meta`, headers, revision, method, params. Reference: 2026-07-28, Streamable
//! HTTP, Versioning; 2025-11-25, Lifecycle, Transports.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json, value::RawValue};

use super::{
    McpCodec, call,
    error::ErrorResponse,
    format::McpFormat,
    response,
    revision::Revision,
    tasks,
    transport::{CAPABILITIES, TASKS, VERSION, check_media_types, revision_of},
};
use crate::{
    observe::{request_log::RequestNames, spans::is_traceparent},
    protocol::{
        codec::{DecodedRequest, EncodedRequest, Operation, OwnRefusal, Reply},
        json::JsonScope::{self, Fields, Scalar, Whole},
        jsonrpc::{
            self, INVALID_PARAMS, METHOD_NOT_FOUND, id_anywhere_in, id_in, message_in, text_in,
        },
        listed_tools::ListedTools,
    },
    wire::{jsonrpc::VERSION as JSONRPC_VERSION, mcp::CALL_ID},
};

const META: JsonScope = Fields(&[
    (VERSION, Scalar),
    (CAPABILITIES, Fields(CAPABILITY_FIELDS)),
    (CALL_ID, Scalar),
    ("progressToken", Scalar),
    ("traceparent", Scalar),
    ("tracestate", Scalar),
]);

const CAPABILITY_FIELDS: &[(&str, JsonScope)] = &[
    ("elicitation", Fields(&[("form", Scalar), ("url", Scalar)])),
    ("extensions", Fields(&[(TASKS, Scalar)])),
];

/// The params that methods read; no values are built of others.
const PARAMS: JsonScope = Fields(&[
    ("name", Scalar),
    ("arguments", Whole),
    ("cursor", Scalar),
    ("protocolVersion", Scalar),
    ("inputResponses", Whole),
    ("requestState", Scalar),
    ("taskId", Scalar),
    ("_meta", META),
]);

/// Decodes the body of `POST /mcp`.
pub(super) fn decode(request: &EncodedRequest<'_>, codec: &McpCodec) -> DecodedRequest<McpFormat> {
    let mut format = McpFormat::default();
    let mut names = RequestNames::default();
    match operation_of(request, codec, &mut format, &mut names) {
        Ok(operation) => DecodedRequest { format, operation },
        Err(ErrorResponse { status, error }) => {
            let format = McpFormat {
                id: format.id,
                revision: format.revision,
                ..McpFormat::default()
            };
            let operation = Operation::Refuse(OwnRefusal {
                status,
                body: response::encode_error(&format, &error),
                detail: error.message,
                names,
            });
            DecodedRequest { format, operation }
        }
    }
}

/// Returns true for a `ping`.
pub(super) fn is_ping(body: &[u8]) -> bool {
    let method = message_in(body).ok().and_then(|it| it.method);
    method.and_then(text_in).is_some_and(|it| it == "ping")
}

/// Reads a request. What could be read of it is in `format` and `names`, even after an error.
fn operation_of(
    request: &EncodedRequest<'_>,
    codec: &McpCodec,
    format: &mut McpFormat,
    names: &mut RequestNames,
) -> Result<Operation, ErrorResponse> {
    let headers = request.headers;
    check_media_types(headers)?;
    let Some((method, params)) = message_of(request, format)? else {
        // A notification, or a response, although this server sends no requests.
        return Ok(Operation::Respond(Reply::json(
            StatusCode::ACCEPTED,
            Vec::new(),
        )));
    };
    let revision = revision_of(headers, &method, &params)?;
    format.revision = Some(revision);
    names.tool = params["name"].as_str().map(str::to_owned);
    format.trace = trace_headers_in(&params["_meta"]);
    let recognizes_call_ids = request.engine.deduplication.is_on();
    let body = match (&*method, revision.is_modern()) {
        ("tools/call", _) => return call::decode(request, format, params),
        ("tasks/get" | "tasks/update" | "tasks/cancel", true) if request.engine.has_tasks() => {
            return tasks::decode(request, codec, format, &method, &params);
        }
        ("tools/list", _) => return list(request, codec, format, &params),
        ("server/discover", true) => codec.discovery(format, request.engine),
        ("initialize", false) => {
            format.revision = Some(revision_for(&params)?);
            codec.initialization(format, recognizes_call_ids)
        }
        ("ping", false) => response::encode(format, &json!({})),
        (_, is_modern) => return Err(unknown_method(is_modern)),
    };
    Ok(Operation::Respond(Reply::json(StatusCode::OK, body)))
}

/// Reads the method and the params of a message; `None` for one that needs no response.
fn message_of(
    request: &EncodedRequest<'_>,
    format: &mut McpFormat,
) -> Result<Option<(String, Value)>, ErrorResponse> {
    let body = request.body;
    let message = message_in(body).map_err(|(code, detail)| {
        format.id = id_anywhere_in(body);
        ErrorResponse::bad_request(code, detail)
    })?;
    let id = message.id.filter(|id| id_in(id).is_some());
    format.id = id.map(ToOwned::to_owned);
    let invalid = |detail: &str| ErrorResponse::invalid_request(detail);
    if message.id.is_some() && id.is_none() {
        return Err(invalid(
            "'id' must be a string or a number of at most 256 bytes.",
        ));
    }
    let is_version = |it: &RawValue| {
        // Without a copy, unless it has escapes.
        it.get() == r#""2.0""# || text_in(it).is_some_and(|it| it == JSONRPC_VERSION)
    };
    if !message.jsonrpc.is_some_and(is_version) {
        return Err(invalid("'jsonrpc' must be \"2.0\"."));
    }
    let is_response = message.result.is_some() || message.error.is_some();
    if message.method.is_none() && is_response {
        return Ok(None);
    }
    let Some(method) = message.method.and_then(text_in) else {
        return Err(invalid("'method' must be a string."));
    };
    if id.is_none() {
        return Ok(None);
    }
    let params = params_in(message.params.map(RawValue::get), request.max_values)?;
    Ok(Some((method, params)))
}

/// Returns the headers of W3C Trace Context in `_meta`, which may bring them instead of the HTTP
/// headers (2026-07-28, `_meta`).
fn trace_headers_in(meta: &Value) -> Option<Box<HeaderMap>> {
    let header = |name: &'static str| {
        let value = HeaderValue::from_str(meta[name].as_str()?).ok()?;
        Some((HeaderName::from_static(name), value))
    };
    let parent = meta["traceparent"].as_str();
    parent.filter(|it| is_traceparent(it))?;
    let headers = [header("traceparent"), header("tracestate")];
    Some(Box::new(headers.into_iter().flatten().collect()))
}

pub(super) fn unknown_method(is_modern: bool) -> ErrorResponse {
    let status = if is_modern {
        StatusCode::NOT_FOUND
    } else {
        StatusCode::OK
    };
    let detail = "This server does not support this method.";
    ErrorResponse::new(status, METHOD_NOT_FOUND, detail)
}

/// Reads the params of a request. Without any, they are an empty object.
fn params_in(params: Option<&str>, max_values: usize) -> Result<Value, ErrorResponse> {
    let Some(params) = params else {
        return Ok(json!({}));
    };
    if !params.starts_with('{') {
        let detail = "'params' must be an object.";
        return Err(ErrorResponse::bad_request(INVALID_PARAMS, detail));
    }
    jsonrpc::params_in(params, &PARAMS, max_values)
        .map_err(|(code, detail)| ErrorResponse::bad_request(code, detail))
}

/// Returns the revision for `initialize`: the client's if it is a supported legacy one, else the
/// newest legacy one.
fn revision_for(params: &Value) -> Result<Revision, ErrorResponse> {
    let Some(requested) = params["protocolVersion"].as_str() else {
        let detail = "'protocolVersion' must be a string.";
        return Err(ErrorResponse::new(StatusCode::OK, INVALID_PARAMS, detail));
    };
    let served = Revision::parse(requested).filter(|it| !it.is_modern());
    Ok(served.unwrap_or(Revision::NEWEST_LEGACY))
}

fn list(
    request: &EncodedRequest<'_>,
    codec: &McpCodec,
    format: &mut McpFormat,
    params: &Value,
) -> Result<Operation, ErrorResponse> {
    let engine = request.engine;
    let tools = ListedTools::complete(&engine.toolkit, &engine.auth, None);
    let pages = codec.catalogue.pages(&tools);
    let cursor = &params["cursor"];
    if !cursor.is_null() {
        let page = cursor.as_str().and_then(|it| it.parse().ok());
        let Some(page) = page.filter(|page| *page > 0 && *page < pages.len()) else {
            let detail = "'cursor' was not issued by this server.";
            return Err(ErrorResponse::new(StatusCode::OK, INVALID_PARAMS, detail));
        };
        format.page = page;
    }
    Ok(Operation::List)
}
