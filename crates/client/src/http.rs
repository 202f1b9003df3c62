//! HTTP requests to one server, with limits on time and size, and their retries.
//!
//! The protocols' own clients send everything through this one, which also decides where credentials
//! may go, and keeps them out of errors.

use std::{
    error::Error,
    iter,
    net::IpAddr,
    time::{Duration, Instant, SystemTime},
};

use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{ACCEPT, CONTENT_TYPE},
};
use lambda_tools_core::{
    Secret,
    json::{self, JsonError},
    secret::redaction::Redaction,
    text::clipped,
    tool::failure::response::retry_after,
    wire,
};
use reqwest::{Url, redirect::Policy};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{ClientError, ClientOptions, options::MAX_RESPONSE_SIZE};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const SHOULD_RETRY: HeaderName = HeaderName::from_static(wire::oxp::SHOULD_RETRY);

/// The maximum length of a server's text in an error, in bytes.
const LONGEST_MESSAGE: usize = 500;

/// The wait after the first attempt, unless the server names one.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(8);

/// An HTTP client for one server.
#[derive(Clone, Debug)]
pub(super) struct HttpClient {
    client: reqwest::Client,
    pub(super) base: Url,
    pub(super) options: ClientOptions,
    /// The header of API keys; without one, they are bearer tokens.
    pub(super) key_header: Option<HeaderName>,
}

/// A request: a `GET`, or with a body a `POST`.
#[derive(Default)]
pub(super) struct ClientRequest {
    /// The path below the base URL.
    pub(super) path: &'static str,
    pub(super) headers: HeaderMap,
    /// A JSON text.
    pub(super) body: Option<String>,
    /// The confidential values in the body.
    pub(super) secrets: Vec<Secret>,
}

/// A response with its whole body.
pub(super) struct ReceivedResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
    /// The secrets in the request, which the server may repeat.
    secrets: Vec<Secret>,
}

/// Advice on retrying after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryAdvice {
    Done,
    /// Retry, after at least this long.
    Again(Option<Duration>),
}

impl HttpClient {
    pub(super) fn new(base: &str, options: ClientOptions) -> Result<Self, ClientError> {
        let base = Url::parse(base)
            .map_err(|error| ClientError::Setup(format!("the base URL is invalid: {error}")))?;
        let is_http = matches!(base.scheme(), "http" | "https");
        let has_credentials = !base.username().is_empty() || base.password().is_some();
        let has_more = base.query().is_some() || base.fragment().is_some();
        if !is_http || has_credentials || has_more {
            let text = "the base URL must start with http:// or https://, and have no credentials \
                        (pass them with api_key or jwt), query or fragment";
            return Err(ClientError::Setup(text.into()));
        }
        let mut client = reqwest::Client::builder()
            // A redirect could turn a POST into a GET and send credentials to another server.
            .redirect(Policy::none())
            .connect_timeout(Duration::from_secs(10));
        if base.scheme() == "http" && is_local(&base) {
            // A proxy may be on another machine.
            client = client.no_proxy();
        }
        let client = client.build();
        let client = client.map_err(|error| ClientError::Setup(error.to_string()))?;
        Ok(Self {
            client,
            base,
            options,
            key_header: None,
        })
    }

    /// Returns the base URL followed by this path.
    pub(super) fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        let path = format!("{}/{path}", self.base.path().trim_end_matches('/'));
        url.set_path(&path);
        url
    }

    /// Sends a request and reads its response, whose size is limited.
    pub(super) async fn exchange(
        &self,
        request: &ClientRequest,
        timeout: Duration,
    ) -> Result<ReceivedResponse, ClientError> {
        let url = self.url(request.path);
        let builder = match &request.body {
            Some(body) => {
                let post = self.client.post(url).body(body.clone());
                post.header(CONTENT_TYPE, JSON)
            }
            None => self.client.get(url),
        };
        let builder = builder.headers(request.headers.clone());
        let mut builder = builder.header(ACCEPT, JSON).timeout(timeout);
        let mut secrets = request.secrets.clone();
        let credentials = self.options.credentials.header(self.key_header.as_ref())?;
        if let Some((name, value, secret)) = credentials {
            builder = builder.header(name, value);
            secrets.push(secret);
        }
        let is_private = is_local(&self.base) || self.base.scheme() == "https";
        if !secrets.is_empty() && !is_private && !self.options.allows_http {
            let text = "credentials would be sent unencrypted to another machine; use https://, \
                        or allow_http for a server inside a trusted network";
            return Err(ClientError::Setup(text.into()));
        }
        let mut response = builder.send().await.map_err(unreachable)?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if chunk.len() > MAX_RESPONSE_SIZE - body.len() {
                return Err(ClientError::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(ReceivedResponse {
            status: response.status(),
            headers: response.headers().clone(),
            body,
            secrets,
        })
    }

    /// Sends a request until a retry would not help, no attempt is left, or the next one would
    /// start after the deadline. `read` returns what a response means, and its own advice if it has one.
    pub(super) async fn exchange_with_retries<T>(
        &self,
        request: &ClientRequest,
        read: impl Fn(&ReceivedResponse) -> (Result<T, ClientError>, Option<RetryAdvice>),
    ) -> Result<T, ClientError> {
        let started = Instant::now();
        let remaining = || self.options.deadline.saturating_sub(started.elapsed());
        let mut attempts = 1;
        loop {
            let timeout = self.options.timeout.min(remaining());
            let response = self.exchange(request, timeout).await;
            let (result, advice) = match response {
                Ok(response) => {
                    let (result, advice) = read(&response);
                    (result, advice.unwrap_or_else(|| advice_in(&response)))
                }
                Err(error @ ClientError::Unreachable(_)) => (Err(error), RetryAdvice::Again(None)),
                Err(error) => (Err(error), RetryAdvice::Done),
            };
            let jitter = fastrand::f64();
            let wait = match advice {
                RetryAdvice::Done => return result,
                // A little later than the server says, which tells other clients the same time.
                RetryAdvice::Again(Some(after)) => {
                    after.saturating_add(FIRST_WAIT.mul_f64(jitter).min(after / 10))
                }
                RetryAdvice::Again(None) => backoff(attempts, jitter),
            };
            if attempts >= self.options.attempts || wait >= remaining() {
                return result;
            }
            tokio::time::sleep(wait).await;
            attempts += 1;
        }
    }
}

impl ReceivedResponse {
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

    /// Checks that the status is 200. The error for another one, which says nothing about the
    /// request, has the body's `message`, that of its JSON-RPC error, or the meaning of the status.
    pub(super) fn require_ok(&self) -> Result<(), ClientError> {
        if self.status == StatusCode::OK {
            return Ok(());
        }
        let body = self.json().unwrap_or_default();
        let message = body["message"].as_str();
        let message = message.or(body["error"]["message"].as_str());
        let meaning = self.status.canonical_reason().unwrap_or("no message");
        let message = self.redacted(message.unwrap_or(meaning));
        let message = clipped(&message, LONGEST_MESSAGE).into_owned();
        Err(match self.status.as_u16() {
            401 => ClientError::Unauthorized { message },
            status => ClientError::Status { status, message },
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

/// Returns the error of a request or a body that did not arrive, with its causes, and without the
/// URL, which may be confidential.
fn unreachable(error: reqwest::Error) -> ClientError {
    let error = error.without_url();
    let mut text = if error.is_timeout() {
        "no response in time".to_owned()
    } else {
        error.to_string()
    };
    for cause in iter::successors(error.source(), |it| (*it).source()) {
        text = format!("{text}: {cause}");
    }
    ClientError::Unreachable(text)
}

/// Returns true for URLs of this machine.
fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|it| it.is_loopback())
}

/// Returns the wait, which doubles with each attempt, up to a limit; half of it is random, so that
/// clients that failed together do not retry together.
fn backoff(attempts: u32, jitter: f64) -> Duration {
    let doubled = FIRST_WAIT.saturating_mul(1 << attempts.saturating_sub(1).min(16));
    doubled.min(LONGEST_WAIT).mul_f64(0.5 + jitter / 2.0)
}

/// Returns the retry advice in a response's status and headers.
fn advice_in(response: &ReceivedResponse) -> RetryAdvice {
    let should_retry = response.headers.get(SHOULD_RETRY);
    let may_help = match should_retry.map(HeaderValue::as_bytes) {
        Some(b"true") => true,
        Some(b"false") => false,
        _ => matches!(response.status.as_u16(), 408 | 429 | 500..600),
    };
    if may_help {
        RetryAdvice::Again(retry_after(&response.headers, SystemTime::now()))
    } else {
        RetryAdvice::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit() {
        let longest: Vec<_> = [1, 2, 3, 6, 7, 1000]
            .map(|n| backoff(n, 1.0).as_millis())
            .into();
        assert_eq!(longest, [250, 500, 1000, 8000, 8000, 8000]);
        assert_eq!(backoff(1, 0.0).as_millis(), 125);
    }
}
