//! Decoding of requests.
//!
//! A body is parsed once, and only its known fields are kept. Order of the checks: JSON, shape,
//! types, protocol version, tool id.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::{
    dialect::{self, Dialect, ListFormat, OxpFormat},
    fields::{ObjectFields, not_understood},
};
use crate::{
    call::{Background, Call, ClientContext},
    json::JsonObject,
    observe::request_log::RequestNames,
    protocol::{
        codec::{EncodedRequest, Operation},
        idempotency_key::idempotency_key,
        json::{
            self, JsonError,
            JsonScope::{self, Fields, List, Scalar, Whole},
        },
        refusal::Refusal,
        wording::Wording,
    },
    tool::{id::Selector, reason::Reason},
};

/// The fields in which other protocols and model APIs have the input of a call.
const MISTAKEN: [&str; 5] = ["arguments", "args", "parameters", "params", "tool_input"];

/// OXP 1.0, Call Tool Request. In one place, the OTC text has `inputs` instead of `input`.
macro_rules! call_fields {
    ($($more:expr),*) => {
        Fields(&[
            ("tool_id", Scalar),
            ("call_id", Scalar),
            ("trace_id", Scalar),
            ("input", Whole),
            ("inputs", Whole),
            ("context", CONTEXT),
            (MISTAKEN[0], Scalar),
            (MISTAKEN[1], Scalar),
            (MISTAKEN[2], Scalar),
            (MISTAKEN[3], Scalar),
            (MISTAKEN[4], Scalar),
            $($more),*
        ])
    };
}

const CONTEXT: JsonScope = Fields(&[
    ("user_id", Scalar),
    (
        "authorization",
        List(&Fields(&[("id", Scalar), ("token", Scalar)])),
    ),
    (
        "secrets",
        List(&Fields(&[("id", Scalar), ("value", Scalar)])),
    ),
]);

/// The body of a call: bare, or an envelope.
const BODY: JsonScope = call_fields!(("$schema", Scalar), ("request", call_fields!()));

/// The body of `GET /tools`.
const LIST: JsonScope = Fields(&[("$schema", Scalar)]);

/// Decodes a `POST /tools/call` in any dialect.
pub(super) fn call(
    request: &EncodedRequest<'_>,
    background: Background,
    format: &mut OxpFormat,
) -> Operation {
    match call_in(format, request) {
        Ok(call) => Operation::Call(Box::new(Call { background, ..call })),
        Err(refusal) => Operation::Reject(refusal, names_in(request)),
    }
}

/// Reads the names in a refused call again: only its log line needs them.
fn names_in(request: &EncodedRequest<'_>) -> RequestNames {
    let body = object(request.body, &BODY, request.max_values).unwrap_or_default();
    let inner = body.get("request").and_then(Value::as_object);
    let inner = inner.unwrap_or(&body);
    let text = |name: &str| inner.get(name)?.as_str().map(str::to_owned);
    RequestNames {
        tool: text("tool_id"),
        call_id: text("call_id"),
        trace_id: text("trace_id"),
    }
}

/// Reads a call. What could be read of it is in `format`, even after an error.
fn call_in(format: &mut OxpFormat, request: &EncodedRequest<'_>) -> Result<Call, Refusal> {
    let headers = request.headers;
    let body = object(request.body, &BODY, request.max_values)?;
    let (body, schema) = opened(format, body)?;
    let path = match format.dialect {
        Dialect::Header => "",
        _ => "request.",
    };
    format.misplaced_input = misplaced_input(&body, path);
    let mut fields = ObjectFields::of(body, path);
    let tool_id = fields.required("tool_id")?;
    // Some clients send an empty string for an unset id.
    let call_id = fields.id("call_id")?.filter(|id| !id.is_empty());
    let trace_id = fields.text("trace_id")?;
    let input = Value::Object(input(&mut fields)?);
    let client_context = context(&mut fields)?;
    dialect::check_schema(schema.as_deref())?;
    dialect::check_header(headers)?;
    let selector = selector_in(&tool_id, request)?;
    Ok(Call {
        call_id: match call_id {
            // Other paths have the id in the header only.
            None => idempotency_key(headers).map_err(not_understood)?,
            call_id => call_id,
        },
        trace_id,
        client_context,
        ..Call::new(selector, input)
    })
}

/// Reads a tool id. The error names the id that may be meant by an invalid one.
fn selector_in(tool_id: &str, request: &EncodedRequest<'_>) -> Result<Selector, Refusal> {
    tool_id.parse::<Selector>().map_err(|error| {
        let closest = id_for(tool_id, request);
        let Wording { message, detail } = Wording::invalid_tool_id(&error, closest.as_deref());
        Refusal::Invalid {
            reason: Reason::InvalidToolId,
            message,
            detail: detail.unwrap_or_default(),
        }
    })
}

/// Returns the id of the tool whose name is, or is similar to, the text that was sent as an id:
/// some clients send a name.
fn id_for(text: &str, request: &EncodedRequest<'_>) -> Option<String> {
    let name = text.split_once('@').map_or(text, |(name, _)| name);
    let exact = request.tool_named(name);
    let exact = exact.filter(|entry| request.app.engine.is_listed(entry, request.caller));
    let entry = exact.or_else(|| {
        let closest = request.closest_name(name)?;
        request.tool_named(&closest)
    });
    entry.map(|entry| entry.id.qualified().to_owned())
}

/// Returns the request in a body, which may be bare or an envelope with a `$schema`.
fn opened(
    format: &mut OxpFormat,
    body: JsonObject,
) -> Result<(JsonObject, Option<String>), Refusal> {
    let detail = match (has(&body, "request"), has(&body, "tool_id")) {
        (false, true) => return Ok((body, None)),
        (true, false) => {
            format.dialect = Dialect::Schema;
            let mut envelope = ObjectFields::of(body, "");
            let schema = envelope.text("$schema")?;
            format.dialect = Dialect::of_envelope(schema.as_deref());
            let request = envelope.object("request")?.unwrap_or_default();
            return Ok((request, schema));
        }
        (true, true) => "The body has both 'request' (an envelope) and 'tool_id' (a bare request).",
        (false, false) => {
            "The body has neither 'tool_id' (a bare request) nor 'request' (an envelope)."
        }
    };
    Err(not_understood(detail))
}

/// Decodes a request to the path of a single tool, whose body is the input.
pub(super) fn single_tool(request: &EncodedRequest<'_>, format: &mut OxpFormat) -> Operation {
    format.dialect = Dialect::Path;
    let tool_id = tool_id_in(request.uri.path());
    match call_of_single_tool(&tool_id, request) {
        Ok(call) => Operation::Call(Box::new(call)),
        Err(refusal) => {
            let names = RequestNames {
                tool: Some(tool_id.into_owned()),
                call_id: idempotency_key(request.headers).unwrap_or_default(),
                trace_id: None,
            };
            Operation::Reject(refusal, names)
        }
    }
}

fn call_of_single_tool(tool_id: &str, request: &EncodedRequest<'_>) -> Result<Call, Refusal> {
    let bytes = request.body;
    let input = Value::Object(match bytes.trim_ascii() {
        [] => JsonObject::new(),
        bytes => object(bytes, &Whole, request.max_values)?,
    });
    dialect::check_header(request.headers)?;
    let call_id = idempotency_key(request.headers).map_err(not_understood)?;
    let selector = selector_in(tool_id, request)?;
    Ok(Call {
        call_id,
        ..Call::new(selector, input)
    })
}

/// Decodes the tool id in `/tools/{tool_id}/call`.
fn tool_id_in(path: &str) -> Cow<'_, str> {
    let id = path.strip_prefix("/tools/");
    let id = id.and_then(|id| id.strip_suffix("/call"));
    percent_decode_str(id.unwrap_or_default()).decode_utf8_lossy()
}

/// Decodes a `GET /tools`, whose header or body names the format of the list.
pub(super) fn list(request: &EncodedRequest<'_>, format: &mut OxpFormat) -> Operation {
    match list_format_of(request, format) {
        Ok(list) => {
            *format = list.into();
            Operation::List
        }
        Err(refusal) => Operation::Reject(refusal, RequestNames::default()),
    }
}

fn list_format_of(
    request: &EncodedRequest<'_>,
    format: &mut OxpFormat,
) -> Result<ListFormat, Refusal> {
    let headers = request.headers;
    let schema = match request.body.trim_ascii() {
        [] => None,
        _ => ObjectFields::of(object(request.body, &LIST, usize::MAX)?, "").text("$schema")?,
    };
    let schema = schema.as_deref();
    let list = match schema.map(|schema| Dialect::of_envelope(Some(schema))) {
        _ if headers.contains_key(dialect::VERSION_HEADER) => ListFormat::Header,
        Some(Dialect::Otc) => ListFormat::Otc,
        _ => ListFormat::Universal,
    };
    if schema.is_some() {
        // An error uses the client's format; without a `$schema` it is bare.
        format.dialect = list.dialect();
    }
    dialect::check_schema(schema)?;
    dialect::check_header(headers)?;
    Ok(list)
}

fn object(body: &[u8], scope: &JsonScope, max_values: usize) -> Result<JsonObject, Refusal> {
    match json::read(body, scope, max_values) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(not_understood("The body must be a JSON object.")),
        Err(_) if body.is_empty() => Err(Refusal::malformed(
            "The request is empty",
            "The body must be a JSON object with the call.",
        )),
        Err(JsonError::Syntax(error)) => Err(Refusal::malformed(
            "The request is not valid JSON",
            format!("The body is not valid JSON: {error}"),
        )),
        Err(JsonError::Rejected(sentence)) => Err(not_understood(sentence)),
    }
}

/// The body's known fields are so few that comparing their names costs less than hashing one.
fn has(body: &JsonObject, name: &str) -> bool {
    body.iter()
        .any(|(it, value)| it == name && !value.is_null())
}

/// Returns a sentence about the field that a request without an input has in place of it.
fn misplaced_input(body: &JsonObject, path: &str) -> Option<String> {
    if has(body, "input") || has(body, "inputs") {
        return None;
    }
    // An object, or JSON as a text, as in OpenAI's API.
    let name = MISTAKEN.iter().find(|name| has(body, name))?;
    Some(format!(
        "The body has '{path}{name}', but a call's input is in '{path}input'."
    ))
}

/// Reads `input` or `inputs`: the OTC text has the latter in one place.
fn input(body: &mut ObjectFields<'_>) -> Result<JsonObject, Refusal> {
    match (body.object("input")?, body.object("inputs")?) {
        (Some(_), Some(_)) => Err(not_understood(format!(
            "The body has both '{0}input' and '{0}inputs'.",
            body.path
        ))),
        (input, inputs) => Ok(input.or(inputs).unwrap_or_default()),
    }
}

fn context(body: &mut ObjectFields<'_>) -> Result<ClientContext, Refusal> {
    let Some(context) = body.object("context")? else {
        return Ok(ClientContext::default());
    };
    let path = format!("{}context.", body.path);
    let mut context = ObjectFields::of(context, &path);
    Ok(ClientContext {
        user_id: context.id("user_id")?,
        tokens: context.secrets("authorization", "token")?,
        secrets: context.secrets("secrets", "value")?,
        answers: None,
    })
}
