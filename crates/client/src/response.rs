//! Responses: their JSON, and errors of them that do not repeat credentials.

use std::{error::Error, sync::Arc};

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

use super::{ClientError, budget::ResponseBudget};

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

/// A response whose body has not been read.
pub(super) struct OpenResponse {
    response: reqwest::Response,
    budget: Arc<ResponseBudget>,
    secrets: Vec<Secret>,
}

impl OpenResponse {
    pub(super) fn new(
        response: reqwest::Response,
        budget: Arc<ResponseBudget>,
        secrets: Vec<Secret>,
    ) -> Result<Self, ClientError> {
        budget.check_length(response.content_length())?;
        Ok(Self {
            response,
            budget,
            secrets,
        })
    }

    /// Reads the body to its end.
    pub(super) async fn read(mut self) -> Result<ReceivedResponse, ClientError> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            body.extend_from_slice(&chunk);
        }
        Ok(self.received(body.into()))
    }

    /// Reads the body's JSON or, in a stream of server-sent events, that of the first event for which
    /// `is_wanted` returns true: a server may leave the stream open after it.
    pub(super) async fn read_message(
        mut self,
        is_wanted: impl Fn(&Value) -> bool,
    ) -> Result<(ReceivedResponse, Result<Value, ClientError>), ClientError> {
        let kind = media_type(self.response.headers());
        let is_stream = kind.eq_ignore_ascii_case("text/event-stream");
        if !is_stream || !self.response.status().is_success() {
            let response = self.read().await?;
            let message = response.json();
            return Ok((response, message));
        }
        let response = self.received(Bytes::new());
        let (mut event, mut is_open) = (Vec::new(), true);
        while is_open {
            let chunk = self.chunk().await?;
            is_open = chunk.is_some();
            // The last event counts although no empty line follows it.
            for byte in chunk.unwrap_or(Bytes::from_static(b"\n\n")) {
                event.push(byte);
                // An empty line. After `\r\n\r`, `\n` begins the next event, without any effect.
                if !matches!(&*event, [.., b'\n', b'\n' | b'\r'] | [.., b'\r', b'\r']) {
                    continue;
                }
                let data = data_of(&std::mem::take(&mut event));
                match data.map(|it| response.budget.read(it.as_bytes())) {
                    Some(Ok(message)) if is_wanted(&message) => return Ok((response, Ok(message))),
                    Some(Err(error @ JsonError::Rejected(_))) => return Err(error.into()),
                    _ => {}
                }
            }
        }
        let text = "the stream ended without a response";
        Err(ClientError::Unreachable(text.to_owned()))
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>, ClientError> {
        let chunk = self.response.chunk().await.map_err(unreachable)?;
        self.budget.take(chunk.as_ref().map_or(0, Bytes::len))?;
        Ok(chunk)
    }

    fn received(&mut self, body: Bytes) -> ReceivedResponse {
        ReceivedResponse {
            status: self.response.status(),
            headers: self.response.headers().clone(),
            body,
            budget: Arc::clone(&self.budget),
            secrets: std::mem::take(&mut self.secrets),
        }
    }
}

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

/// Returns the data of a server-sent event (HTML, 9.2.6) that is a message. `sse-stream` rejects
/// lines that have to be ignored.
fn data_of(event: &[u8]) -> Option<String> {
    let event = String::from_utf8_lossy(event);
    let (mut kind, mut data) = ("", String::new());
    for line in event.trim_start_matches('\u{feff}').split(['\r', '\n']) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => data = data + value + "\n",
            "event" => kind = value,
            _ => {}
        }
    }
    matches!(kind, "" | "message").then_some(data)
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
    pub(super) budget: Arc<ResponseBudget>,
    /// The credentials in the request, which the server may repeat.
    pub(super) secrets: Vec<Secret>,
}

impl ReceivedResponse {
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
        let value = self.budget.read(&self.body)?;
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
