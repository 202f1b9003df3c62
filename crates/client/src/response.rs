//! Responses: their JSON, and errors of them that do not repeat credentials.

use std::error::Error;

use http::{HeaderMap, StatusCode, header::CONTENT_TYPE};
use lambda_tools_core::{
    Secret,
    json::{self, JsonError},
    secret::redaction::Redaction,
    text::clipped,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{ClientError, options::MAX_RESPONSE_SIZE};

/// The maximum length of a server's text in an error, in bytes.
const LONGEST_MESSAGE: usize = 500;

/// Returns the error of a request or a body that did not arrive, with its causes, and without the
/// URL, which may be confidential.
pub(super) fn unreachable(error: reqwest::Error) -> ClientError {
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
    ClientError::Unreachable(text)
}

/// A response with its whole body.
pub(super) struct ReceivedResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
    /// The secrets in the request, which the server may repeat.
    secrets: Vec<Secret>,
}

impl ReceivedResponse {
    /// Reads a body of limited size to its end.
    pub(super) async fn read(
        mut response: reqwest::Response,
        secrets: Vec<Secret>,
    ) -> Result<Self, ClientError> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if chunk.len() > MAX_RESPONSE_SIZE - body.len() {
                return Err(ClientError::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Self {
            status: response.status(),
            headers: response.headers().clone(),
            body,
            secrets,
        })
    }

    /// Returns a server's text for an error, without the secrets in the request.
    pub(super) fn redacted(&self, text: &str) -> String {
        let redacted = Redaction::of(&self.secrets).redacted(text);
        redacted.unwrap_or_else(|| text.to_owned())
    }

    /// Decodes the body as JSON.
    pub(super) fn json(&self) -> Result<Value, ClientError> {
        if let Some(kind) = self.headers.get(CONTENT_TYPE) {
            let kind = kind.to_str().unwrap_or_default();
            let essence = kind.split(';').next().unwrap_or_default().trim();
            if !essence.ends_with("/json") && !essence.ends_with("+json") {
                let text = format!("its type is '{essence}', not JSON");
                return Err(ClientError::Unreadable(self.redacted(&text)));
            }
        }
        json::read_whole(&self.body, json::max_values(MAX_RESPONSE_SIZE)).map_err(|error| {
            ClientError::Unreadable(match error {
                JsonError::Syntax(error) => format!("it is not valid JSON: {error}"),
                JsonError::Rejected(sentence) => sentence,
            })
        })
    }

    /// Decodes the body as this type.
    pub(super) fn decode<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        decode(self.json()?)
    }

    /// Returns the error for a status that says nothing about the request, with the body's
    /// `message`, that of its JSON-RPC error, or the meaning of the status.
    pub(super) fn status_error(&self) -> ClientError {
        let body = self.json().unwrap_or_default();
        let message = body["message"].as_str();
        let message = message.or(body["error"]["message"].as_str());
        let meaning = self.status.canonical_reason().unwrap_or("no message");
        let message = self.redacted(message.unwrap_or(meaning));
        let message = clipped(&message, LONGEST_MESSAGE).into_owned();
        match self.status.as_u16() {
            401 => ClientError::Unauthorized { message },
            status => ClientError::Status { status, message },
        }
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
