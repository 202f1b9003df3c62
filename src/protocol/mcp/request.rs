//! Decoding of requests: a JSON-RPC message, then its method.
//!
//! The order of the checks is that of the published servers: Accept, Content-Type, JSON, the format
//! of a message, `_meta`, headers, revision, method, params. Reference: 2026-07-28, Streamable
//! HTTP, Versioning; 2025-11-25, Lifecycle, Transports.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::{
    McpCodec, discovery,
    format::{McpFormat, OutputKind},
    params::{arguments, elicit, list, taken},
    progress::ProgressStream,
    reading, response, tasks,
    transport::{
        CAPABILITIES, ErrorResponse, Revision, TASKS, VERSION, check_arguments, check_media_types,
        revision_of, supports_tasks,
    },
};
use crate::{
    call::{Background, Call},
    observe::{request_log::RequestNames, spans::is_traceparent},
    protocol::{
        codec::{EncodedRequest, Operation, OwnRefusal},
        idempotency_key::idempotency_key,
        json::JsonScope::{self, Fields, Scalar, Whole},
        jsonrpc::{
            INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, message_in, params_in, text_in,
        },
    },
    text::LONGEST_ID,
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
    ("_meta", META),
    ("cursor", Scalar),
    ("protocolVersion", Scalar),
    ("inputResponses", Whole),
    ("requestState", Scalar),
    ("taskId", Scalar),
    ("uri", Scalar),
    ("ref", Fields(&[("type", Scalar), ("name", Scalar)])),
    ("argument", Fields(&[("name", Scalar), ("value", Scalar)])),
]);

/// Decodes the body of `POST /mcp`.
pub(super) fn decode(
    request: &EncodedRequest<'_>,
    codec: &McpCodec,
    format: &mut McpFormat,
) -> Operation {
    let mut names = RequestNames::default();
    let operation = operation_of(request, codec, format, &mut names);
    operation.unwrap_or_else(|ErrorResponse { status, error }| {
        Operation::Refuse(OwnRefusal {
            status,
            body: response::encode_error(format, &error),
            detail: error.message,
            names,
        })
    })
}

/// Returns true for a `ping`.
pub(super) fn is_ping(body: &[u8]) -> bool {
    let method = message_in(body, &mut None).ok().and_then(|it| it.method);
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
    let Some((method, mut params)) = message_of(request, format)? else {
        // A notification, or a response, although this server sends no requests.
        return Ok(Operation::Respond(StatusCode::ACCEPTED, Vec::new()));
    };
    let meta = taken(&mut params, "_meta");
    let revision = revision_of(headers, &method, &params, &meta)?;
    format.revision = Some(revision);
    format.server_info = revision
        .is_modern()
        .then(|| Arc::clone(codec.server_info(&request.app.info)));
    names.tool = params["name"].as_str().map(str::to_owned);
    format.trace = trace_headers_in(&meta);
    let toolkit = &request.app.engine.toolkit;
    let body = match (&*method, revision.is_modern()) {
        ("tools/call", _) => return call(request, format, names.tool.as_deref(), params, meta),
        ("tasks/get" | "tasks/update" | "tasks/cancel", true) if request.app.engine.has_tasks() => {
            return tasks::decode(request, format, &method, &params, &meta);
        }
        ("tools/list", _) => return list(request, codec, format, &params),
        ("resources/list" | "resources/templates/list" | "resources/read", _)
            if toolkit.resources_with_uris().next().is_some() =>
        {
            return reading::decode(request, codec, format, &method, params, meta);
        }
        ("prompts/list" | "prompts/get" | "completion/complete", _)
            if toolkit.prompt_entries().next().is_some() =>
        {
            return reading::decode(request, codec, format, &method, params, meta);
        }
        ("server/discover", true) => discovery(format, request.app),
        ("initialize", false) => {
            format.revision = Some(revision_for(&params)?);
            codec.initialization(format, request.app)
        }
        ("ping", false) => response::encode(format, &json!({})),
        (_, is_modern) => {
            let status = if is_modern {
                StatusCode::NOT_FOUND
            } else {
                StatusCode::OK
            };
            let detail = "This server does not support this method.";
            return Err(ErrorResponse::new(status, METHOD_NOT_FOUND, detail));
        }
    };
    Ok(Operation::Respond(StatusCode::OK, body))
}

/// Reads the method and the params of a message; `None` for one that needs no response.
fn message_of(
    request: &EncodedRequest<'_>,
    format: &mut McpFormat,
) -> Result<Option<(String, Value)>, ErrorResponse> {
    let message = message_in(request.body, &mut format.id)?;
    let invalid = |detail: &str| ErrorResponse::bad_request(INVALID_REQUEST, detail);
    let version = message.jsonrpc.and_then(text_in);
    if version.is_none_or(|it| it != JSONRPC_VERSION) {
        return Err(invalid("'jsonrpc' must be \"2.0\"."));
    }
    let is_response = message.result.is_some() || message.error.is_some();
    if message.method.is_none() && is_response {
        return Ok(None);
    }
    let Some(method) = message.method.and_then(text_in) else {
        return Err(invalid("'method' must be a string."));
    };
    if message.id.is_none() {
        return Ok(None);
    }
    let params = match message.params {
        None => json!({}),
        Some(params) if params.get().starts_with('{') => {
            params_in(params, &PARAMS, request.max_values)?
        }
        Some(_) => {
            let detail = "'params' must be an object.";
            return Err(ErrorResponse::bad_request(INVALID_PARAMS, detail));
        }
    };
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

/// Returns the revision for `initialize`: the client's if it is a supported legacy one, else the
/// newest legacy one.
fn revision_for(params: &Value) -> Result<Revision, ErrorResponse> {
    let Some(requested) = params["protocolVersion"].as_str() else {
        let detail = "'protocolVersion' must be a string.";
        return Err(ErrorResponse::invalid_params(detail));
    };
    let served = Revision::parse(requested).filter(|it| !it.is_modern());
    Ok(served.unwrap_or(Revision::NEWEST_LEGACY))
}

/// Decodes the params of a call, of which the name and `_meta` have been read.
fn call(
    request: &EncodedRequest<'_>,
    format: &mut McpFormat,
    name: Option<&str>,
    mut params: Value,
    mut meta: Value,
) -> Result<Operation, ErrorResponse> {
    let invalid = |detail: &str| ErrorResponse::invalid_params(detail);
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Err(invalid(
            "'name' must be the name of a tool: a string that is not empty.",
        ));
    };
    let input = arguments(&mut params)?;
    let call_id = call_id_of(request.headers, &meta).map_err(|it| invalid(&it))?;
    elicit(request, format, &mut params, &meta, (name, &input))?;
    let Some(entry) = request.tool_named(name) else {
        let similar = similar_to(name);
        return Ok(request.reject_unknown(name.to_owned(), &similar, call_id));
    };
    if format.is_modern() {
        check_arguments(request.headers, entry.tool.input.value(), &input)?;
    }
    format.output = OutputKind::of(&entry.tool);
    let mut call = Call::of_newest(entry, call_id, input);
    call.client_context.answers = format.elicitation.answers();
    if format.is_modern() && supports_tasks(&meta[CAPABILITIES]) {
        format.takes_tasks = true;
        call.background = Background::Task;
    }
    format.progress = ProgressStream::of(request.headers, &mut meta);
    Ok(Operation::Call(call))
}

/// Returns the name to look for among the known ones, in place of one that may be a tool's id.
pub(super) fn similar_to(name: &str) -> String {
    let qualified = name.split('@').next().unwrap_or_default();
    qualified.replace('.', "_")
}

/// Returns the id that identifies a repeated call: never the JSON-RPC id, because clients number
/// their requests from 0.
fn call_id_of(headers: &HeaderMap, meta: &Value) -> Result<Option<String>, String> {
    let call_id = match &meta[CALL_ID] {
        Value::Null => idempotency_key(headers)?,
        Value::String(text) => Some(text.clone()),
        _ => return Err("'lambda-tools/call-id' must be a string.".into()),
    };
    match call_id {
        Some(it) if it.len() > LONGEST_ID => Err("The call id is longer than 256 bytes.".into()),
        call_id => Ok(call_id.filter(|it| !it.is_empty())),
    }
}
