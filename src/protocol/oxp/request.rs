//! Decoding of requests.
//!
//! A body is parsed once, and only its known fields are kept. They are read by hand, because an
//! error has to name the invalid field. Order of the checks: JSON, shape, types, protocol version,
//! tool id.

use crate::payload::JsonObject;
use std::{borrow::Cow, collections::BTreeMap};

use http::{HeaderMap, request::Parts};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::{
    catalogue::OxpForm,
    dialect::{self, Dialect},
    query::form_in,
};
use crate::{
    Secret,
    call::{Call, ClientContext, rejection::Rejection},
    observe::request_log::RequestNames,
    protocol::{
        codec::{DecodedRequest, Operation},
        http::LONGEST_SECRET,
        idempotency_key::idempotency_key,
        integers,
        json::{self, JsonError, JsonScope},
    },
    text::LONGEST_ID,
};

const NOT_UNDERSTOOD: &str = "The request cannot be understood";

/// OXP 1.0, Call Tool Request. In one place, the OTC text has `inputs` instead of `input`.
macro_rules! call_fields {
    ($($more:expr),*) => {
        JsonScope::Fields(&[
            ("tool_id", JsonScope::Scalar),
            ("call_id", JsonScope::Scalar),
            ("trace_id", JsonScope::Scalar),
            ("input", JsonScope::Whole),
            ("inputs", JsonScope::Whole),
            ("context", CONTEXT),
            $($more),*
        ])
    };
}

const CONTEXT: JsonScope = JsonScope::Fields(&[
    ("user_id", JsonScope::Scalar),
    (
        "authorization",
        JsonScope::List(&JsonScope::Fields(&[
            ("id", JsonScope::Scalar),
            ("token", JsonScope::Scalar),
        ])),
    ),
    (
        "secrets",
        JsonScope::List(&JsonScope::Fields(&[
            ("id", JsonScope::Scalar),
            ("value", JsonScope::Scalar),
        ])),
    ),
]);

/// The body of a call: bare, or an envelope.
const BODY: JsonScope = call_fields!(("$schema", JsonScope::Scalar), ("request", call_fields!()));

/// The body of `GET /tools`.
const LIST: JsonScope = JsonScope::Fields(&[("$schema", JsonScope::Scalar)]);

const NAMES: JsonScope = JsonScope::Fields(&[
    ("tool_id", JsonScope::Scalar),
    ("call_id", JsonScope::Scalar),
    ("trace_id", JsonScope::Scalar),
    (
        "request",
        JsonScope::Fields(&[
            ("tool_id", JsonScope::Scalar),
            ("call_id", JsonScope::Scalar),
            ("trace_id", JsonScope::Scalar),
        ]),
    ),
]);

/// Decodes the body of `POST /tools/call` in any dialect, with at most `max_values` values.
pub(super) fn call(
    headers: &HeaderMap,
    bytes: &[u8],
    max_values: usize,
) -> DecodedRequest<OxpForm> {
    let (dialect, call) = match object(bytes, &BODY, max_values) {
        Ok(body) => call_in(headers, body, bytes),
        Err(rejection) => (Dialect::Header, Err(rejection)),
    };
    let call = call.and_then(|call| identified(call, headers));
    let operation = match call {
        Ok(call) => Operation::Call(Box::new(call)),
        Err(rejection) => Operation::Reject(rejection, names_in(bytes)),
    };
    let form = dialect.into();
    DecodedRequest { form, operation }
}

/// Decodes a request to the path of a single tool, whose body is the input.
pub(super) fn single_tool(
    parts: &Parts,
    bytes: &[u8],
    max_values: usize,
) -> (Result<Call, Rejection>, RequestNames) {
    let tool_id = tool_id_in(parts.uri.path());
    let call_id = idempotency_key(&parts.headers);
    let names = RequestNames {
        tool: Some(tool_id.clone().into_owned()),
        call_id: call_id.clone().ok().flatten(),
        trace_id: None,
    };
    let call = || {
        let mut input = Value::Object(match bytes.trim_ascii() {
            [] => JsonObject::new(),
            bytes => object(bytes, &JsonScope::Whole, max_values)?,
        });
        dialect::check_header(&parts.headers)?;
        let call_id = call_id.map_err(|it| Rejection::malformed(NOT_UNDERSTOOD, it))?;
        Ok(Call {
            selector: tool_id.parse().map_err(Rejection::from)?,
            call_id,
            permit: None,
            rounded: integers::restore(bytes, &[""], &mut input),
            trace_id: None,
            input,
            client_context: ClientContext::default(),
        })
    };
    (call(), names)
}

/// The tool id in `/tools/{tool_id}/call`, decoded.
fn tool_id_in(path: &str) -> Cow<'_, str> {
    let id = path.strip_prefix("/tools/");
    let id = id.and_then(|id| id.strip_suffix("/call"));
    percent_decode_str(id.unwrap_or_default()).decode_utf8_lossy()
}

/// A call without a `call_id` in its body has that of the header, which other paths have too.
fn identified(mut call: Call, headers: &HeaderMap) -> Result<Call, Rejection> {
    if call.call_id.is_none() {
        let call_id = idempotency_key(headers);
        call.call_id = call_id.map_err(|it| Rejection::malformed(NOT_UNDERSTOOD, it))?;
    }
    Ok(call)
}

/// A dialect, and the call in it.
type DialectCall = (Dialect, Result<Call, Rejection>);

fn call_in(headers: &HeaderMap, body: JsonObject, bytes: &[u8]) -> DialectCall {
    let detail = match (body.contains_key("request"), body.contains_key("tool_id")) {
        (false, true) => return (Dialect::Header, bare(headers, body, bytes)),
        (true, false) => return enveloped(headers, body, bytes),
        (true, true) => "The body has both 'request' (an envelope) and 'tool_id' (a bare request).",
        (false, false) => {
            "The body has neither 'tool_id' (a bare request) nor 'request' (an envelope)."
        }
    };
    let rejection = Rejection::malformed(NOT_UNDERSTOOD, detail);
    (Dialect::Header, Err(rejection))
}

/// The names in a rejected request, for the log.
fn names_in(body: &[u8]) -> RequestNames {
    let Some(Value::Object(mut body)) = json::read_leniently(body, &NAMES) else {
        return RequestNames::default();
    };
    if let Some(Value::Object(request)) = body.swap_remove("request") {
        body = request;
    }
    let mut text = |name: &str| match body.swap_remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    RequestNames {
        tool: text("tool_id"),
        call_id: text("call_id"),
        trace_id: text("trace_id"),
    }
}

fn bare(headers: &HeaderMap, body: JsonObject, bytes: &[u8]) -> Result<Call, Rejection> {
    let request = CallToolRequest::of(body, "")?;
    dialect::check_header(headers)?;
    request.into_call(&["input", "inputs"], bytes)
}

fn enveloped(headers: &HeaderMap, body: JsonObject, bytes: &[u8]) -> DialectCall {
    let mut envelope = ObjectFields::of(body, "");
    let schema = match envelope.text("$schema") {
        Ok(schema) => schema,
        Err(rejection) => return (Dialect::Schema, Err(rejection)),
    };
    let schema = schema.as_deref();
    let call = envelope
        .object("request")
        .and_then(|request| CallToolRequest::of(request.unwrap_or_default(), "request."))
        .and_then(|request| {
            dialect::check_schema(schema)?;
            dialect::check_header(headers)?;
            request.into_call(&["request.input", "request.inputs"], bytes)
        });
    (Dialect::of_envelope(schema), call)
}

/// Decodes a `GET /tools`.
pub(super) fn list(
    headers: &HeaderMap,
    query: Option<&str>,
    body: &[u8],
) -> DecodedRequest<OxpForm> {
    let (form, operation) = match form_of_list(headers, query, body) {
        Ok(form) => (form, Operation::List),
        Err((dialect, rejection)) => {
            let operation = Operation::Reject(rejection, RequestNames::default());
            (dialect.into(), operation)
        }
    };
    DecodedRequest { form, operation }
}

/// The form of the catalogue that a `GET /tools` requests by query, header or body, or else the
/// default.
fn form_of_list(
    headers: &HeaderMap,
    query: Option<&str>,
    body: &[u8],
) -> Result<OxpForm, (Dialect, Rejection)> {
    let bare = |rejection| (Dialect::Header, rejection);
    let schema = if body.trim_ascii().is_empty() {
        None
    } else {
        let mut body = ObjectFields::of(object(body, &LIST, usize::MAX).map_err(bare)?, "");
        body.text("$schema").map_err(bare)?
    };
    let schema = schema.as_deref();
    let form = match schema.map(|schema| Dialect::of_envelope(Some(schema))) {
        _ if headers.contains_key(dialect::VERSION_HEADER) => OxpForm::Header,
        Some(Dialect::Otc) => OxpForm::Otc,
        _ => OxpForm::Universal,
    };
    // An error uses the client's form; without a `$schema` it is bare.
    let dialect = schema.map_or(Dialect::Header, |_| form.dialect());
    dialect::check_schema(schema)
        .and_then(|()| dialect::check_header(headers))
        .and_then(|()| form_in(query))
        .map(|requested| requested.unwrap_or(form))
        .map_err(|rejection| (dialect, rejection))
}

fn object(body: &[u8], scope: &JsonScope, max_values: usize) -> Result<JsonObject, Rejection> {
    match json::read(body, scope, max_values) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Rejection::malformed(
            NOT_UNDERSTOOD,
            "The body must be a JSON object.",
        )),
        Err(_) if body.is_empty() => Err(Rejection::malformed(
            "The request is empty",
            "The body must be a JSON object with the call.",
        )),
        Err(JsonError::Syntax(error)) => Err(Rejection::malformed(
            "The request is not valid JSON",
            format!("The body is not valid JSON: {error}"),
        )),
        Err(JsonError::Rejected(sentence)) => Err(Rejection::malformed(NOT_UNDERSTOOD, sentence)),
    }
}

/// OXP 1.0, Call Tool Request, with the fields' types checked.
struct CallToolRequest {
    tool_id: String,
    call_id: Option<String>,
    trace_id: Option<String>,
    input: JsonObject,
    context: ClientContext,
}

impl CallToolRequest {
    fn of(body: JsonObject, path: &str) -> Result<Self, Rejection> {
        let mut body = ObjectFields::of(body, path);
        let tool_id = body.text("tool_id")?;
        let tool_id =
            tool_id.ok_or_else(|| invalid_field(&format!("{path}tool_id"), "is missing"))?;
        Ok(Self {
            tool_id,
            // Some clients send an empty string for an unset id.
            call_id: body.id("call_id")?.filter(|id| !id.is_empty()),
            trace_id: body.text("trace_id")?,
            input: input(&mut body)?,
            context: context(&mut body)?,
        })
    }

    /// `bytes` is the text of the body, and the input is at one of the paths `roots`.
    fn into_call(self, roots: &[&str], bytes: &[u8]) -> Result<Call, Rejection> {
        let mut input = Value::Object(self.input);
        Ok(Call {
            selector: self.tool_id.parse().map_err(Rejection::from)?,
            call_id: self.call_id,
            permit: None,
            rounded: integers::restore(bytes, roots, &mut input),
            trace_id: self.trace_id,
            input,
            client_context: self.context,
        })
    }
}

/// Reads `input` or `inputs`: the OTC text has the latter in one place.
fn input(body: &mut ObjectFields<'_>) -> Result<JsonObject, Rejection> {
    match (body.object("input")?, body.object("inputs")?) {
        (Some(_), Some(_)) => Err(Rejection::malformed(
            NOT_UNDERSTOOD,
            format!("The body has both '{0}input' and '{0}inputs'.", body.path),
        )),
        (input, inputs) => Ok(input.or(inputs).unwrap_or_default()),
    }
}

fn context(body: &mut ObjectFields<'_>) -> Result<ClientContext, Rejection> {
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

/// An object whose fields are taken out one by one, and its path in the body.
struct ObjectFields<'a> {
    object: JsonObject,
    path: &'a str,
}

impl<'a> ObjectFields<'a> {
    fn of(object: JsonObject, path: &'a str) -> Self {
        Self { object, path }
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, Rejection> {
        match self.object.swap_remove(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.invalid_field(name, "must be a string")),
        }
    }

    /// A string whose length is limited because it is stored, hashed or echoed.
    fn id(&mut self, name: &str) -> Result<Option<String>, Rejection> {
        let id = self.text(name)?;
        if id.as_ref().is_some_and(|id| id.len() > LONGEST_ID) {
            let problem = format!("must have at most {LONGEST_ID} bytes");
            return Err(self.invalid_field(name, &problem));
        }
        Ok(id)
    }

    fn object(&mut self, name: &str) -> Result<Option<JsonObject>, Rejection> {
        match self.object.swap_remove(name) {
            None => Ok(None),
            Some(Value::Object(object)) => Ok(Some(object)),
            Some(_) => Err(self.invalid_field(name, "must be an object")),
        }
    }

    /// A list of `{"id": …, VALUE: …}`.
    fn secrets(&mut self, name: &str, value: &str) -> Result<BTreeMap<String, Secret>, Rejection> {
        let items = match self.object.swap_remove(name) {
            None => return Ok(BTreeMap::new()),
            Some(Value::Array(items)) => items,
            Some(_) => return Err(self.invalid_field(name, "must be an array")),
        };
        let item_of = |(index, item)| {
            let path = format!("{}{name}[{index}]", self.path);
            let Value::Object(item) = item else {
                return Err(invalid_field(&path, "must be an object"));
            };
            let path = path + ".";
            let mut item = ObjectFields::of(item, &path);
            let mut text = |name: &str| {
                let text = item.text(name)?;
                text.ok_or_else(|| invalid_field(&format!("{path}{name}"), "is missing"))
            };
            let (id, secret) = (text("id")?, text(value)?);
            if secret.len() > LONGEST_SECRET {
                let problem = format!("must have at most {LONGEST_SECRET} bytes");
                return Err(invalid_field(&format!("{path}{value}"), &problem));
            }
            Ok((id, Secret::from(secret)))
        };
        let mut secrets = BTreeMap::new();
        for (index, item) in items.into_iter().enumerate() {
            let (id, secret) = item_of((index, item))?;
            if secrets.insert(id, secret).is_some() {
                let path = format!("{}{name}[{index}].id", self.path);
                return Err(invalid_field(&path, "occurs twice"));
            }
        }
        Ok(secrets)
    }

    fn invalid_field(&self, name: &str, problem: &str) -> Rejection {
        invalid_field(&format!("{}{name}", self.path), problem)
    }
}

fn invalid_field(path: &str, problem: &str) -> Rejection {
    Rejection::malformed(NOT_UNDERSTOOD, format!("'{path}' {problem}."))
}
