//! Responses: their JSON, and errors of them that do not repeat credentials.

use std::error::Error;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header::CONTENT_TYPE};
use lambda_tools_core::{
    Secret,
    json::{self, JsonError, JsonScope},
    secret::redaction::Redaction,
    text::clipped,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ClientError;

/// The maximum length of a server's text in an error, in bytes.
const LONGEST_MESSAGE: usize = 500;

/// The part of an error's body that [`ReceivedResponse::message`] reads.
const MESSAGE: JsonScope = JsonScope::Fields(&[
    ("message", JsonScope::Scalar),
    (
        "error",
        JsonScope::Fields(&[("message", JsonScope::Scalar)]),
    ),
]);

/// Returns the error of a request or a body that did not arrive.
pub(super) fn unreachable(error: reqwest::Error) -> ClientError {
    ClientError::Unreachable(text_of(error))
}

/// Returns the text of an error and its causes, without the URL, which may be confidential.
pub(super) fn text_of(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = if error.is_timeout() {
        "no response in time".to_owned()
    } else {
        error.to_string()
    };
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

fn media_type(headers: &HeaderMap) -> &str {
    let kind = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let essence = kind.and_then(|it| it.split(';').next());
    essence.unwrap_or_default().trim()
}

/// A response with its whole body.
pub(super) struct ReceivedResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// The maximum size of the body, in bytes.
    limit: usize,
    /// The credentials in the request, which the server may repeat.
    pub(super) secrets: Vec<Secret>,
}

impl ReceivedResponse {
    /// Reads a body of at most this many bytes to its end.
    pub(super) async fn read(
        mut response: reqwest::Response,
        limit: usize,
        secrets: Vec<Secret>,
    ) -> Result<Self, ClientError> {
        let too_large = || ClientError::TooLarge { limit };
        let length = response.content_length();
        if length.is_some_and(|length| length > limit as u64) {
            return Err(too_large());
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if chunk.len() > limit - body.len() {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Self {
            status: response.status(),
            headers: response.headers().clone(),
            body: body.into(),
            limit,
            secrets,
        })
    }

    /// Returns a server's text for an error, without the credentials in the request.
    pub(super) fn redacted(&self, text: &str) -> String {
        let redacted = Redaction::of(&self.secrets).redacted(text);
        redacted.unwrap_or_else(|| text.to_owned())
    }

    /// Does the same for all texts and names in JSON.
    pub(super) fn redacted_json(&self, value: &Value) -> Value {
        serde_json::from_str(&self.redacted(&value.to_string())).unwrap_or_default()
    }

    /// Decodes the body as JSON; without the credentials in the request if the status is that of an
    /// error.
    pub(super) fn json(&self) -> Result<Value, ClientError> {
        let kind = media_type(&self.headers);
        let is_json = kind.ends_with("/json") || kind.ends_with("+json");
        if !is_json && self.headers.contains_key(CONTENT_TYPE) {
            let text = format!("its type is '{kind}', not JSON");
            return Err(ClientError::Unreadable(self.redacted(&text)));
        }
        let value = json::read_whole(&self.body, json::max_values(self.limit))?;
        if self.status.is_success() {
            return Ok(value);
        }
        Ok(self.redacted_json(&value))
    }

    /// Decodes the body as this type.
    pub(super) fn decode<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        decode(self.json()?)
    }

    /// Returns true if the body is empty or `null`.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self.body.trim_ascii(), b"" | b"null")
    }

    /// Returns the body's `message`, that of its JSON-RPC error, or the meaning of the status.
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

    /// Returns the error for a status that says nothing about the request.
    pub(super) fn status_error(&self) -> ClientError {
        let message = self.message();
        match self.status.as_u16() {
            401 => ClientError::Unauthorized { message },
            status => ClientError::Status { status, message },
        }
    }
}

#[doc(hidden)]
impl From<JsonError> for ClientError {
    fn from(error: JsonError) -> Self {
        Self::Unreadable(match error {
            JsonError::Syntax(error) => format!("it is not valid JSON: {error}"),
            JsonError::Rejected(sentence) => sentence,
        })
    }
}

/// Decodes a value as this type. The error does not quote the value.
pub(super) fn decode<T: DeserializeOwned>(value: Value) -> Result<T, ClientError> {
    serde_json::from_value(value).map_err(|error| {
        let mut text = format!("it does not have the expected fields and types: {error}");
        if let (Some(start), Some(end)) = (text.find(['"', '`']), text.rfind(", expected"))
            && start < end
        {
            text.replace_range(start..end, "…");
        }
        ClientError::Unreadable(clipped(&text, LONGEST_MESSAGE).into_owned())
    })
}
