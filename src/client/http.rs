//! HTTP requests with limits on time, size and redirects.

use std::{error::Error as _, fmt, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{ACCEPT, CONTENT_TYPE},
};
use reqwest::{Url, redirect::Policy};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{ClientError, credentials::ClientCredentials};
use crate::text::clipped;

/// The default maximum size of a response: more than Lambda can send.
const MAX_RESPONSE_SIZE: usize = 16 * 1024 * 1024;

/// The maximum length of a server's text in an error, in bytes.
pub(super) const LONGEST_MESSAGE: usize = 500;

/// An HTTP client for one server.
#[derive(Clone)]
pub(super) struct HttpClient {
    client: reqwest::Client,
    base: Url,
    pub(super) credentials: ClientCredentials,
    pub(super) max_response_size: usize,
    /// The media types that the protocol's responses may have.
    pub(super) accept: HeaderValue,
}

/// A response with its whole body.
pub(super) struct ReceivedResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl HttpClient {
    pub(super) fn new(base: &str) -> Result<Self, ClientError> {
        let setup = |text: String| ClientError::Setup(text);
        let base: Url = base
            .parse()
            .map_err(|error| setup(format!("the base URL is invalid: {error}")))?;
        let is_http = matches!(base.scheme(), "http" | "https") && base.has_host();
        if !is_http || base.query().is_some() || base.fragment().is_some() {
            let text =
                "the base URL must start with http:// or https:// and have no query or fragment";
            return Err(setup(text.into()));
        }
        if !base.username().is_empty() || base.password().is_some() {
            let text = "the base URL contains credentials; pass them with api_key or jwt";
            return Err(setup(text.into()));
        }
        let client = reqwest::Client::builder()
            // A redirect could turn a POST into a GET and send credentials to another server.
            .redirect(Policy::none())
            .connect_timeout(Duration::from_secs(10))
            .build()
            .map_err(|error| setup(text_of(error)))?;
        Ok(Self {
            client,
            base,
            credentials: ClientCredentials::None,
            max_response_size: MAX_RESPONSE_SIZE,
            accept: HeaderValue::from_static("application/json"),
        })
    }

    /// Appends a path segment to the base URL, unless it already ends with it.
    pub(super) fn with_suffix(mut self, segment: &str) -> Self {
        let path = self.base.path().trim_end_matches('/');
        if path.rsplit('/').next() != Some(segment) {
            let path = format!("{path}/{segment}");
            self.base.set_path(&path);
        }
        self
    }

    /// Sets the path of a base URL that has none.
    pub(super) fn with_default_path(mut self, path: &str) -> Self {
        if self.base.path() == "/" {
            self.base.set_path(path);
        }
        self
    }

    /// The base URL followed by this path.
    pub(super) fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        let path = format!("{}/{path}", self.base.path().trim_end_matches('/'));
        url.set_path(&path);
        url
    }

    pub(super) fn base(&self) -> &Url {
        &self.base
    }

    pub(super) async fn get(
        &self,
        url: Url,
        headers: HeaderMap,
        timeout: Duration,
    ) -> Result<ReceivedResponse, ClientError> {
        let request = (Method::GET, url, headers, Bytes::new());
        self.send(request, timeout, |_, _| false).await
    }

    pub(super) async fn post(
        &self,
        url: Url,
        headers: HeaderMap,
        body: Bytes,
        timeout: Duration,
    ) -> Result<ReceivedResponse, ClientError> {
        self.post_until(url, headers, body, timeout, |_, _| false)
            .await
    }

    /// Reads the response's body to its end, or until `is_complete` returns true for what has
    /// arrived: a stream of events may stay open.
    pub(super) async fn post_until(
        &self,
        url: Url,
        headers: HeaderMap,
        body: Bytes,
        timeout: Duration,
        is_complete: impl FnMut(&HeaderMap, &[u8]) -> bool,
    ) -> Result<ReceivedResponse, ClientError> {
        let request = (Method::POST, url, headers, body);
        self.send(request, timeout, is_complete).await
    }

    async fn send(
        &self,
        (method, url, headers, body): (Method, Url, HeaderMap, Bytes),
        timeout: Duration,
        mut is_complete: impl FnMut(&HeaderMap, &[u8]) -> bool,
    ) -> Result<ReceivedResponse, ClientError> {
        // Credentials are sent only to this server, even if it names a URL on another one.
        let is_same_origin = url.origin() == self.base.origin();
        let has_body = method == Method::POST;
        let mut request = self
            .client
            .request(method, url)
            .headers(headers)
            .header(ACCEPT, self.accept.clone())
            .timeout(timeout);
        if has_body {
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        if let (true, Some((name, value))) = (is_same_origin, self.credentials.header()?) {
            request = request.header(name, value);
        }
        let unreachable = |error| ClientError::Unreachable(text_of(error));
        let mut response = request.send().await.map_err(unreachable)?;
        let limit = self.max_response_size;
        let length = response.content_length().unwrap_or_default();
        if usize::try_from(length).map_or(true, |length| length > limit) {
            return Err(ClientError::TooLarge { limit });
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if body.len() + chunk.len() > limit {
                return Err(ClientError::TooLarge { limit });
            }
            body.extend_from_slice(&chunk);
            if is_complete(response.headers(), &body) {
                break;
            }
        }
        Ok(ReceivedResponse {
            status: response.status(),
            headers: std::mem::take(response.headers_mut()),
            body: body.into(),
        })
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http")
            .field("base", &self.base.as_str())
            .field("credentials", &self.credentials)
            .finish_non_exhaustive()
    }
}

impl ReceivedResponse {
    /// The body as JSON.
    pub(super) fn json(&self) -> Result<Value, ClientError> {
        let kind = self.headers.get(CONTENT_TYPE).map(|it| it.to_str());
        if let Some(kind) = kind {
            let kind = kind.unwrap_or_default();
            let essence = kind.split(';').next().unwrap_or_default().trim();
            if !essence.ends_with("/json") && !essence.ends_with("+json") {
                return Err(ClientError::Unreadable(format!(
                    "its type is '{essence}', not JSON"
                )));
            }
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| ClientError::Unreadable(format!("it is not valid JSON: {error}")))
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
        let body = self.json().unwrap_or_default();
        let message = body["message"].as_str();
        if let Some(message) = message.or(body["error"]["message"].as_str()) {
            return clipped(message, LONGEST_MESSAGE).into_owned();
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

/// Decodes a value as this type.
pub(super) fn decode<T: DeserializeOwned>(value: Value) -> Result<T, ClientError> {
    serde_json::from_value(value).map_err(|error| {
        let text = format!("it does not have the expected form: {error}");
        ClientError::Unreadable(clipped(&text, LONGEST_MESSAGE).into_owned())
    })
}

/// The text of an error and its causes, without the URL, which may be confidential.
fn text_of(error: reqwest::Error) -> String {
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
