//! Decoding of JSON-RPC requests.
//!
//! What can be read of a wrong request is read, above all its id, so that the answer finds its
//! call.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Value, error::Category, value::RawValue};

use super::{
    document::Document,
    error::{INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, Refusal},
};
use crate::{
    Toolkit,
    call::{Call, Given, rejection::Rejection},
    observe::request::Names,
    protocol::{
        integers, json,
        json::{Shape, Unread},
    },
    text::LONGEST_ID,
    tool::id::Selector,
};

/// An id as it came: a JSON string or number.
pub(super) type Id = RawValue;

/// A request as far as it could be read.
pub(super) struct Decoded {
    pub(super) id: Option<Box<Id>>,
    /// For the log, of a request that is refused.
    pub(super) names: Names,
    pub(super) call: Result<Call, Refusal>,
}

impl Decoded {
    fn refused(id: Option<Box<Id>>, code: i32, detail: impl Into<String>) -> Self {
        Self {
            names: Names {
                call_id: id.as_deref().and_then(id_in),
                ..Names::default()
            },
            id,
            call: Err(Refusal::malformed(code, detail)),
        }
    }

    fn of_method(self, method: &str) -> Self {
        let tool = Some(method.to_owned());
        let names = Names { tool, ..self.names };
        Self { names, ..self }
    }
}

/// Raw until it is known of what kind each field has to be.
#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    /// A number has to be echoed digit by digit.
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
}

/// Tells `null` from a field that is not there.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(deserializer).map(Some)
}

/// Decodes the body of `POST /opentool/call`. Order of the checks: JSON, shape, id, version,
/// method, params.
pub(super) fn decode(
    body: &[u8],
    document: &Document,
    toolkit: &Toolkit,
    most_values: usize,
) -> Decoded {
    let request = match request_in(body) {
        Ok(request) => request,
        Err((code, detail)) => return Decoded::refused(id_somewhere_in(body), code, detail),
    };
    let (id, call_id) = match request.id.map(|id| (id, id_in(id))) {
        None => {
            let detail = "The request has no id: notifications are not supported.";
            return Decoded::refused(None, INVALID_REQUEST, detail);
        }
        Some((_, None)) => {
            let detail = "'id' must be a string or a number of at most 256 bytes.";
            return Decoded::refused(None, INVALID_REQUEST, detail);
        }
        Some((id, Some(call_id))) => (Some(id.to_owned()), call_id),
    };
    // The published TypeScript client says 2.0.0.
    let version = request.jsonrpc.and_then(text_in);
    if !version.is_some_and(|it| it == "2.0" || it == "2.0.0") {
        return Decoded::refused(id, INVALID_REQUEST, "'jsonrpc' must be \"2.0\".");
    }
    let Some(method) = request.method.and_then(text_in) else {
        let detail = "'method' must be a string: the name of a function.";
        return Decoded::refused(id, INVALID_REQUEST, detail);
    };
    let input = match input_in(request.params, most_values) {
        Ok(input) => input,
        Err((code, detail)) => {
            let mut decoded = Decoded::refused(id, code, detail).of_method(&method);
            if let (Err(refusal), INVALID_PARAMS) = (&mut decoded.call, code) {
                refusal.status = http::StatusCode::OK;
            }
            return decoded;
        }
    };
    let selector = match selector_of(&method, document, toolkit) {
        Ok(selector) => selector,
        Err(refusal) => {
            let names = Names {
                tool: Some(method),
                call_id: Some(call_id),
                trace_id: None,
            };
            let call = Err(refusal);
            return Decoded { id, names, call };
        }
    };
    let call = Ok(Call {
        selector,
        // What some clients send for what they have not set.
        call_id: Some(call_id).filter(|id| !id.is_empty()),
        made_id: None,
        turn: None,
        unkept_integers: integers::unkept(body, &["params"]),
        trace_id: None,
        input,
        given: Given::default(),
    });
    let names = Names::default();
    Decoded { id, names, call }
}

fn request_in(body: &[u8]) -> Result<Request<'_>, (i32, String)> {
    let body = body.trim_ascii();
    if body.is_empty() {
        return Err((PARSE_ERROR, "The body is empty.".into()));
    }
    let no_json = |error| (PARSE_ERROR, format!("The body is not valid JSON: {error}"));
    let is_object = body.starts_with(b"{");
    if !is_object {
        serde_json::from_slice::<IgnoredAny>(body).map_err(no_json)?;
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
        _ => no_json(error),
    })
}

/// The params of a request, or the code and the sentence with which they are refused.
fn input_in(params: Option<&RawValue>, most_values: usize) -> Result<Value, (i32, String)> {
    let Some(params) = params else {
        return Ok(Value::Object(serde_json::Map::new()));
    };
    match params.get().as_bytes().first() {
        Some(b'{') => {}
        Some(b'[') => {
            let detail = "'params' must be an object: name by name.";
            return Err((INVALID_PARAMS, detail.into()));
        }
        _ => return Err((INVALID_REQUEST, "'params' must be an object.".into())),
    }
    json::read(params.get().as_bytes(), &Shape::Whole, most_values).map_err(|unread| match unread {
        Unread::Syntax(error) => (PARSE_ERROR, format!("The body is not valid JSON: {error}")),
        Unread::Refused(sentence) => (INVALID_REQUEST, sentence),
    })
}

fn text_in(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

/// The id of a request that cannot be read: one that has a field twice, for example.
fn id_somewhere_in(body: &[u8]) -> Option<Box<Id>> {
    let OnlyId(id) = serde_json::from_slice(body).ok()?;
    let id = id?;
    id_in(&id).is_some().then_some(id)
}

/// The last `id` of an object, whatever else is in it.
struct OnlyId(Option<Box<Id>>);

impl<'de> Deserialize<'de> for OnlyId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Self(None))
    }
}

impl<'de> Visitor<'de> for OnlyId {
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

/// The text of an id, by which a repeated call is known. It comes back in the answer, which must
/// not become too large to send.
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

fn selector_of(method: &str, document: &Document, toolkit: &Toolkit) -> Result<Selector, Refusal> {
    match document.tool_of(method, toolkit) {
        Some(qualified) => Ok(Selector {
            qualified,
            version: None,
        }),
        None => Err(Refusal::of(Rejection::UnknownTool {
            closest: document.closest(method, toolkit),
            qualified: method.into(),
        })),
    }
}
