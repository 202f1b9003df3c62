//! Decoding of JSON-RPC requests.
//!
//! As much as possible of an invalid request is read, above all its id, so that clients can match
//! the response to the call.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Value, error::Category, value::RawValue};

use http::StatusCode;

use super::{
    document::FunctionCatalogue,
    error::{INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR},
};
use crate::{
    call::{Call, ClientContext, rejection::Rejection},
    observe::request_log::RequestNames,
    protocol::{
        codec::{DecodedRequest, EncodedRequest, Operation},
        integers,
        json::{self, JsonError, JsonScope},
    },
    text::LONGEST_ID,
    tool::id::Selector,
};

/// An id exactly as sent: a JSON string or number.
pub(super) type RpcId = RawValue;

/// The properties of a request that its response depends on.
#[derive(Default)]
pub(crate) struct RpcForm {
    pub(super) id: Option<Box<RpcId>>,
    /// The status and code for a malformed request.
    pub(super) error: Option<(StatusCode, i32)>,
}

/// An error in the form of a body: a code and a sentence.
type FormError = (i32, String);

/// Fields stay raw until their types are checked.
#[derive(Deserialize)]
struct RpcRequest<'a> {
    #[serde(borrow)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    /// A number is echoed digit by digit.
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
}

/// Distinguishes `null` from a missing field.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(deserializer).map(Some)
}

/// Decodes the body of `POST /opentool/call`. Order of the checks: JSON, shape, id, version,
/// method, params.
pub(super) fn call(
    request: &EncodedRequest<'_>,
    document: &FunctionCatalogue,
) -> DecodedRequest<RpcForm> {
    let body = request.body;
    let rpc = match request_in(body) {
        Ok(rpc) => rpc,
        Err(error) => return reject(id_anywhere_in(body), None, error),
    };
    let (id, call_id) = match rpc.id.map(|id| (id, id_in(id))) {
        None => {
            let detail = "The request has no id: notifications are not supported.";
            return reject(None, None, (INVALID_REQUEST, detail.into()));
        }
        Some((_, None)) => {
            let detail = "'id' must be a string or a number of at most 256 bytes.";
            return reject(None, None, (INVALID_REQUEST, detail.into()));
        }
        Some((id, Some(call_id))) => (Some(id.to_owned()), call_id),
    };
    let method = match method_of(&rpc) {
        Ok(method) => method,
        Err(detail) => return reject(id, None, (INVALID_REQUEST, detail.into())),
    };
    let input = match input_in(rpc.params, request.max_values) {
        Ok(input) => input,
        Err(error) => return reject(id, Some(method), error),
    };
    let toolkit = &request.engine.toolkit;
    let operation = match document.tool_of(&method, toolkit) {
        Some(qualified) => Operation::Call(Box::new(Call {
            selector: Selector {
                qualified,
                version: None,
            },
            // Some clients send an empty string for an unset id.
            call_id: Some(call_id).filter(|id| !id.is_empty()),
            permit: None,
            lossy_integers: integers::lossy_paths(body, &["params"]),
            trace_id: None,
            input,
            client_context: ClientContext::default(),
        })),
        None => Operation::Reject(
            Rejection::UnknownTool {
                closest: document.closest(&method, toolkit),
                qualified: (&*method).into(),
            },
            RequestNames {
                tool: Some(method),
                call_id: Some(call_id),
                trace_id: None,
            },
        ),
    };
    let form = RpcForm { id, error: None };
    DecodedRequest { form, operation }
}

/// Rejects a malformed request; its readable names go into the log.
fn reject(
    id: Option<Box<RpcId>>,
    method: Option<String>,
    (code, detail): FormError,
) -> DecodedRequest<RpcForm> {
    let names = RequestNames {
        call_id: id.as_deref().and_then(id_in),
        tool: method,
        trace_id: None,
    };
    let rejection = Rejection::malformed("The request cannot be understood", detail);
    let status = match code {
        INVALID_PARAMS => StatusCode::OK,
        _ => StatusCode::BAD_REQUEST,
    };
    let error = Some((status, code));
    DecodedRequest {
        form: RpcForm { id, error },
        operation: Operation::Reject(rejection, names),
    }
}

fn method_of(request: &RpcRequest<'_>) -> Result<String, &'static str> {
    // The published TypeScript client sends 2.0.0.
    let version = request.jsonrpc.and_then(text_in);
    if !version.is_some_and(|it| it == "2.0" || it == "2.0.0") {
        return Err("'jsonrpc' must be \"2.0\".");
    }
    let method = request.method.and_then(text_in);
    method.ok_or("'method' must be a string: the name of a function.")
}

fn request_in(body: &[u8]) -> Result<RpcRequest<'_>, FormError> {
    let body = body.trim_ascii();
    if body.is_empty() {
        return Err((PARSE_ERROR, "The body is empty.".into()));
    }
    let syntax_error = |error| (PARSE_ERROR, format!("The body is not valid JSON: {error}"));
    let is_object = body.starts_with(b"{");
    if !is_object {
        serde_json::from_slice::<IgnoredAny>(body).map_err(syntax_error)?;
        let detail = if body.starts_with(b"[") {
            "Batches are not supported: send one request at a time."
        } else {
            "The body must be a JSON object."
        };
        return Err((INVALID_REQUEST, detail.into()));
    }
    serde_json::from_slice(body).map_err(|error| match error.classify() {
        Category::Data => (
            INVALID_REQUEST,
            format!("The request cannot be read: {error}"),
        ),
        _ => syntax_error(error),
    })
}

/// The params of a request as an object.
fn input_in(params: Option<&RawValue>, max_values: usize) -> Result<Value, FormError> {
    let Some(params) = params else {
        return Ok(Value::Object(serde_json::Map::new()));
    };
    match params.get().as_bytes().first() {
        Some(b'{') => {}
        Some(b'[') => {
            let detail = "'params' must be an object with named parameters.";
            return Err((INVALID_PARAMS, detail.into()));
        }
        _ => return Err((INVALID_REQUEST, "'params' must be an object.".into())),
    }
    json::read(params.get().as_bytes(), &JsonScope::Whole, max_values).map_err(
        |error| match error {
            JsonError::Syntax(error) => {
                (PARSE_ERROR, format!("The body is not valid JSON: {error}"))
            }
            JsonError::Rejected(sentence) => (INVALID_REQUEST, sentence),
        },
    )
}

fn text_in(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

/// The id of an unreadable request, such as one with a duplicate field.
fn id_anywhere_in(body: &[u8]) -> Option<Box<RpcId>> {
    let IdOnly(id) = serde_json::from_slice(body).ok()?;
    let id = id?;
    id_in(&id).is_some().then_some(id)
}

/// The last `id` field of an object; other fields are ignored.
struct IdOnly(Option<Box<RpcId>>);

impl<'de> Deserialize<'de> for IdOnly {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Self(None))
    }
}

impl<'de> Visitor<'de> for IdOnly {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<Self, A::Error> {
        while let Some(name) = fields.next_key::<String>()? {
            if name == "id" {
                self.0 = Some(fields.next_value()?);
            } else {
                fields.next_value::<IgnoredAny>()?;
            }
        }
        Ok(self)
    }
}

/// The text of an id, which identifies a repeated call. Its length is limited because the response
/// echoes it and must not become too large to send.
fn id_in(id: &RawValue) -> Option<String> {
    let is_text = id.get().starts_with('"');
    let text = if is_text {
        serde_json::from_str(id.get()).ok()?
    } else {
        // A number, digit by digit.
        serde_json::from_str::<serde_json::Number>(id.get()).ok()?;
        id.get().to_owned()
    };
    (text.len() <= LONGEST_ID).then_some(text)
}
