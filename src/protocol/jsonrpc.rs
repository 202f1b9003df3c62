//! Reading JSON-RPC 2.0 messages, for every protocol that is based on JSON-RPC.
//!
//! As much as possible of an invalid message is read, above all its id, so that clients can match
//! the response to the request.

use serde::{Deserialize, Deserializer, Serialize, de::IgnoredAny};
use serde_json::{
    Value,
    error::Category,
    value::{RawValue, to_raw_value},
};

use super::json::{
    self, JsonError,
    JsonScope::{self, Fields, Scalar},
};
use crate::text::LONGEST_ID;

/// JSON-RPC 2.0: the body is not JSON.
pub(super) const PARSE_ERROR: i32 = -32700;
/// JSON-RPC 2.0: the body is JSON, but not a request.
pub(super) const INVALID_REQUEST: i32 = -32600;
pub(super) const METHOD_NOT_FOUND: i32 = -32601;
pub(super) const INVALID_PARAMS: i32 = -32602;
pub(super) const INTERNAL_ERROR: i32 = -32603;

/// An id exactly as sent: a JSON string or number.
pub(super) type RpcId = RawValue;

/// An error of a response: section 5.1.
#[derive(Serialize)]
pub(super) struct RpcError {
    pub(super) code: i32,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<Value>,
}

impl RpcError {
    pub(super) fn new(code: i32, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }
}

/// Fields stay raw until their types are checked.
#[derive(Deserialize)]
pub(super) struct RpcMessage<'a> {
    #[serde(borrow)]
    pub(super) jsonrpc: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) method: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) params: Option<&'a RawValue>,
    /// A number is echoed digit by digit.
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) error: Option<&'a RawValue>,
}

/// Distinguishes `null` from a missing field.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(deserializer).map(Some)
}

/// Reads the message in a body, and its id, even if the message is invalid.
pub(super) fn message_in<'a>(
    body: &'a [u8],
    id: &mut Option<Box<RpcId>>,
) -> Result<RpcMessage<'a>, RpcError> {
    let message = parse(body).inspect_err(|_| *id = id_anywhere_in(body))?;
    if message.id.is_some_and(|id| id_in(id).is_none()) {
        let detail = "'id' must be a string or a number of at most 256 bytes.";
        return Err(RpcError::new(INVALID_REQUEST, detail));
    }
    *id = message.id.map(ToOwned::to_owned);
    Ok(message)
}

/// Parses the message in a body. A body that is not an object is an error, and so is a batch.
fn parse(body: &[u8]) -> Result<RpcMessage<'_>, RpcError> {
    let body = body.trim_ascii();
    if body.is_empty() {
        return Err(RpcError::new(PARSE_ERROR, "The body is empty."));
    }
    let is_object = body.starts_with(b"{");
    if !is_object {
        serde_json::from_slice::<IgnoredAny>(body).map_err(|error| syntax_error(&error))?;
        let detail = if body.starts_with(b"[") {
            "Batches are not supported: send one request at a time."
        } else {
            "The body must be a JSON object."
        };
        return Err(RpcError::new(INVALID_REQUEST, detail));
    }
    serde_json::from_slice(body).map_err(|error| match error.classify() {
        Category::Data => {
            let detail = format!("The request cannot be read: {error}");
            RpcError::new(INVALID_REQUEST, detail)
        }
        _ => syntax_error(&error),
    })
}

fn syntax_error(error: &serde_json::Error) -> RpcError {
    RpcError::new(PARSE_ERROR, format!("The body is not valid JSON: {error}"))
}

/// Parses the params of a request, whose raw text is an object.
pub(super) fn params_in(
    params: &RawValue,
    scope: &JsonScope,
    max_values: usize,
) -> Result<Value, RpcError> {
    json::read(params.get().as_bytes(), scope, max_values).map_err(|error| match error {
        JsonError::Syntax(error) => syntax_error(&error),
        JsonError::Rejected(sentence) => RpcError::new(INVALID_REQUEST, sentence),
    })
}

/// Parses the string in a raw value.
pub(super) fn text_in(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

const ID: JsonScope = Fields(&[("id", Scalar)]);

/// Finds the last id of an unreadable request, such as one with a duplicate field.
fn id_anywhere_in(body: &[u8]) -> Option<Box<RpcId>> {
    let message = json::read_leniently(body, &ID)?;
    let id = to_raw_value(message.get("id")?).ok()?;
    id_in(&id).is_some().then_some(id)
}

/// Returns the text of an id; in OpenTool, it identifies a repeated call. Its length is limited
/// because the response echoes it and must not become too large to send.
pub(super) fn id_in(id: &RawValue) -> Option<String> {
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
