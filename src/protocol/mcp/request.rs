//! Decoding of requests: a JSON-RPC message, then its method.
//!
//! The order of the checks is that of the published servers: Accept, Content-Type, JSON, the form
//! of a message, `_meta`, headers, revision, method, params. Reference: 2026-07-28, Streamable
//! HTTP, Versioning; 2025-11-25, Lifecycle, Transports.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json, value::RawValue};

use super::{
    McpCodec, call,
    error::ErrorResponse,
    form::{CALL_ID, McpForm},
    response,
    revision::Revision,
    transport::{CAPABILITIES, VERSION, check_media_types, revision_of},
};
use crate::{
    call::rejection::Rejection,
    observe::{request_log::RequestNames, trace::is_traceparent},
    protocol::{
        codec::{DecodedRequest, EncodedRequest, Operation, Reply},
        json::{self, JsonError, JsonScope},
        jsonrpc::{
            INVALID_PARAMS, METHOD_NOT_FOUND, PARSE_ERROR, RpcId, id_anywhere_in, id_in,
            message_in, text_in,
        },
        listed_tools::ListedTools,
    },
};

const META: JsonScope = JsonScope::Fields(&[
    (VERSION, JsonScope::Scalar),
    (
        CAPABILITIES,
        JsonScope::Fields(&[(
            "elicitation",
            JsonScope::Fields(&[
                ("form", JsonScope::Fields(&[])),
                ("url", JsonScope::Fields(&[])),
            ]),
        )]),
    ),
    (CALL_ID, JsonScope::Scalar),
    ("traceparent", JsonScope::Scalar),
    ("tracestate", JsonScope::Scalar),
]);

/// The params of all methods; anything else is not built.
const PARAMS: JsonScope = JsonScope::Fields(&[
    ("name", JsonScope::Scalar),
    ("arguments", JsonScope::Whole),
    ("cursor", JsonScope::Scalar),
    ("protocolVersion", JsonScope::Scalar),
    ("inputResponses", JsonScope::Whole),
    ("requestState", JsonScope::Scalar),
    ("_meta", META),
]);

/// A rejected request: its error response, and the parts that could be read.
struct FormError {
    id: Option<Box<RpcId>>,
    revision: Option<Revision>,
    tool: Option<String>,
    response: ErrorResponse,
}

impl FormError {
    fn of(response: ErrorResponse) -> Box<Self> {
        Box::new(Self {
            id: None,
            revision: None,
            tool: None,
            response,
        })
    }

    fn with_id(mut self: Box<Self>, id: Option<Box<RpcId>>) -> Box<Self> {
        self.id = id;
        self
    }
}

impl From<FormError> for DecodedRequest<McpForm> {
    fn from(error: FormError) -> Self {
        let detail = error.response.error.message.clone();
        let names = RequestNames {
            tool: error.tool,
            ..RequestNames::default()
        };
        DecodedRequest {
            form: McpForm {
                id: error.id,
                revision: error.revision,
                error: Some(error.response),
                ..McpForm::default()
            },
            operation: Operation::Reject(
                Rejection::malformed("The request cannot be understood", detail),
                names,
            ),
        }
    }
}

/// Decodes the body of `POST /mcp`.
pub(super) fn decode(request: &EncodedRequest<'_>, codec: &McpCodec) -> DecodedRequest<McpForm> {
    let decoded = match message_of(request) {
        Ok(Some(message)) => dispatch(request, codec, message),
        // A notification, or a response, although this server sends no requests.
        Ok(None) => return accepted(),
        Err(error) => Err(error),
    };
    decoded.unwrap_or_else(|error| (*error).into())
}

/// A request with an id and params.
struct Message {
    id: Box<RpcId>,
    method: String,
    params: Value,
}

/// Reads a message; `None` for one that needs no response.
fn message_of(request: &EncodedRequest<'_>) -> Result<Option<Message>, Box<FormError>> {
    check_media_types(&request.parts.headers).map_err(FormError::of)?;
    let body = request.body;
    let message = message_in(body).map_err(|(code, detail)| {
        FormError::of(ErrorResponse::bad_request(code, detail)).with_id(id_anywhere_in(body))
    })?;
    let id = message.id.filter(|id| id_in(id).is_some());
    let invalid = |detail: &str| {
        FormError::of(ErrorResponse::invalid_request(detail)).with_id(id.map(ToOwned::to_owned))
    };
    if message.id.is_some() && id.is_none() {
        return Err(invalid(
            "'id' must be a string or a number of at most 256 bytes.",
        ));
    }
    let is_version = |it: &RawValue| {
        // Without a copy, unless it has escapes.
        it.get() == r#""2.0""# || text_in(it).is_some_and(|it| it == "2.0")
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
    let Some(id) = id else {
        return Ok(None);
    };
    let params = params_in(message.params.map(RawValue::get), request.max_values);
    let id = id.to_owned();
    match params {
        Ok(params) => Ok(Some(Message { id, method, params })),
        Err(response) => Err(FormError::of(response).with_id(Some(id))),
    }
}

fn dispatch(
    request: &EncodedRequest<'_>,
    codec: &McpCodec,
    message: Message,
) -> Result<DecodedRequest<McpForm>, Box<FormError>> {
    let Message { id, method, params } = message;
    let revision = match revision_of(&request.parts.headers, &method, &params) {
        Ok(revision) => revision,
        Err(response) => return Err(FormError::of(response).with_id(Some(id))),
    };
    let tool = params["name"].as_str().map(str::to_owned);
    let form = McpForm {
        id: Some(id.clone()),
        revision: Some(revision),
        trace: trace_headers_in(&params["_meta"]),
        ..McpForm::default()
    };
    let recognizes_call_ids = request.engine.deduplication.is_on();
    let decoded = match (&*method, revision.is_modern()) {
        ("tools/call", _) => call::decode(request, codec, form, params),
        ("tools/list", _) => list(request, codec, form, &params),
        ("server/discover", true) => Ok(respond(form, |form| {
            codec.discovery(form, recognizes_call_ids)
        })),
        ("initialize", false) => initialize(codec, form, &params, recognizes_call_ids),
        ("ping", false) => Ok(respond(form, |form| response::encode(form, &json!({})))),
        (_, is_modern) => Err(unknown_method(is_modern)),
    };
    decoded.map_err(|response| {
        Box::new(FormError {
            id: Some(id),
            revision: Some(revision),
            tool,
            response,
        })
    })
}

/// W3C Trace Context, which `_meta` may bring instead of the HTTP headers (2026-07-28, `_meta`).
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

fn unknown_method(is_modern: bool) -> ErrorResponse {
    let status = if is_modern {
        StatusCode::NOT_FOUND
    } else {
        StatusCode::OK
    };
    let detail = "This server does not support this method.";
    ErrorResponse::new(status, METHOD_NOT_FOUND, detail)
}

/// A 202 without a body, for a message that is not a request.
fn accepted() -> DecodedRequest<McpForm> {
    DecodedRequest {
        form: McpForm::default(),
        operation: Operation::Respond(Reply::json(StatusCode::ACCEPTED, Vec::new())),
    }
}

fn respond(form: McpForm, encode: impl FnOnce(&McpForm) -> Vec<u8>) -> DecodedRequest<McpForm> {
    let body = encode(&form);
    let operation = Operation::Respond(Reply::json(StatusCode::OK, body));
    DecodedRequest { form, operation }
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
    json::read(params.as_bytes(), &PARAMS, max_values).map_err(|error| match error {
        JsonError::Syntax(error) => {
            let detail = format!("The body is not valid JSON: {error}");
            ErrorResponse::bad_request(PARSE_ERROR, detail)
        }
        JsonError::Rejected(sentence) => ErrorResponse::invalid_request(sentence),
    })
}

/// `initialize`: the client's version if it is a supported legacy one, else the newest legacy one.
fn initialize(
    codec: &McpCodec,
    mut form: McpForm,
    params: &Value,
    recognizes_call_ids: bool,
) -> Result<DecodedRequest<McpForm>, ErrorResponse> {
    let Some(requested) = params["protocolVersion"].as_str() else {
        let detail = "'protocolVersion' must be a string.";
        return Err(ErrorResponse::new(StatusCode::OK, INVALID_PARAMS, detail));
    };
    let served = Revision::parse(requested).filter(|it| !it.is_modern());
    form.revision = Some(served.unwrap_or(Revision::NEWEST_LEGACY));
    Ok(respond(form, |form| {
        codec.initialization(form, recognizes_call_ids)
    }))
}

fn list(
    request: &EncodedRequest<'_>,
    codec: &McpCodec,
    mut form: McpForm,
    params: &Value,
) -> Result<DecodedRequest<McpForm>, ErrorResponse> {
    let pages = codec.catalogue.pages(&ListedTools::complete(
        &request.engine.toolkit,
        &request.engine.auth,
        None,
    ));
    let cursor = &params["cursor"];
    if !cursor.is_null() {
        let page = cursor.as_str().and_then(|it| it.parse().ok());
        let exists = |page: &usize| *page > 0 && *page < pages.len();
        let Some(page) = page.filter(exists) else {
            let detail = "'cursor' was not issued by this server.";
            return Err(ErrorResponse::new(StatusCode::OK, INVALID_PARAMS, detail));
        };
        form.page = page;
    }
    let operation = Operation::List;
    Ok(DecodedRequest { form, operation })
}
