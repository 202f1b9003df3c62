//! Responses: their JSON, and errors of them that do not repeat credentials.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header::CONTENT_TYPE};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{ClientError, budget::ResponseBudget};
use crate::{
    Secret,
    json::{self, JsonScope},
    secrets::redaction::Redaction,
    text::clipped,
};

/// The maximum length of a server's text in an error, in bytes.
pub(super) const LONGEST_MESSAGE: usize = 500;

/// The part of an error's body that [`ReceivedResponse::message`] reads.
const MESSAGE: JsonScope = JsonScope::Fields(&[
    ("message", JsonScope::Scalar),
    (
        "error",
        JsonScope::Fields(&[("message", JsonScope::Scalar)]),
    ),
]);

/// A response with its whole body.
pub(super) struct ReceivedResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) budget: Arc<ResponseBudget>,
    /// The credentials in the request, which the server may repeat.
    pub(super) secrets: Vec<Secret>,
}

impl ReceivedResponse {
    /// A server's text for an error, without the credentials in the request.
    pub(super) fn redacted(&self, text: &str) -> String {
        let redacted = Redaction::of(&self.secrets).redacted(text);
        redacted.unwrap_or_else(|| text.to_owned())
    }

    /// The same for all texts and names in JSON.
    pub(super) fn redacted_json(&self, value: &Value) -> Value {
        serde_json::from_str(&self.redacted(&value.to_string())).unwrap_or_default()
    }

    /// The body as JSON; without the credentials in the request if the status is that of an error.
    pub(super) fn json(&self) -> Result<Value, ClientError> {
        let kind = self.headers.get(CONTENT_TYPE).map(|it| it.to_str());
        if let Some(kind) = kind {
            let kind = kind.unwrap_or_default();
            let essence = kind.split(';').next().unwrap_or_default().trim();
            if !essence.ends_with("/json") && !essence.ends_with("+json") {
                let text = format!("its type is '{essence}', not JSON");
                return Err(ClientError::Unreadable(self.redacted(&text)));
            }
        }
        let value = self.budget.read(&self.body)?;
        if self.status.is_success() {
            return Ok(value);
        }
        Ok(self.redacted_json(&value))
    }

    /// The body as this type.
    pub(super) fn decode<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        decode(self.json()?)
    }

    /// True if the body is empty or `null`.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self.body.trim_ascii(), b"" | b"null")
    }

    /// The body's `message`, that of its JSON-RPC error, or the meaning of the status.
    pub(super) fn message(&self) -> String {
        let body = json::read_leniently(&self.body, &MESSAGE).unwrap_or_default();
        let message = body["message"].as_str();
        if let Some(message) = message.or(body["error"]["message"].as_str()) {
            return clipped(&self.redacted(message), LONGEST_MESSAGE).into_owned();
        }
        if self.status.is_redirection() {
            return "redirects are not followed".to_owned();
        }
        let reason = self.status.canonical_reason();
        reason.unwrap_or("no message").to_owned()
    }

    /// The error for a status that says nothing about the request.
    pub(super) fn status_error(&self) -> ClientError {
        let message = self.message();
        match self.status.as_u16() {
            401 => ClientError::Unauthorized { message },
            status => ClientError::Status { status, message },
        }
    }
}

/// Decodes a value as this type. The error does not quote the value.
pub(super) fn decode<T: DeserializeOwned>(value: Value) -> Result<T, ClientError> {
    serde_json::from_value(value).map_err(|error| {
        let mut text = format!("it does not have the expected form: {error}");
        if let (Some(start), Some(end)) = (text.find(['"', '`']), text.rfind(", expected"))
            && start < end
        {
            text.replace_range(start..end, "…");
        }
        ClientError::Unreadable(clipped(&text, LONGEST_MESSAGE).into_owned())
    })
}

/// A response for the fuzz targets.
#[cfg(fuzzing)]
pub(super) fn received(status: StatusCode, body: &[u8]) -> ReceivedResponse {
    ReceivedResponse {
        status,
        headers: HeaderMap::new(),
        body: Bytes::copy_from_slice(body),
        budget: ResponseBudget::new(usize::MAX),
        secrets: Vec::new(),
    }
}
