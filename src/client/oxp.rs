//! A client for OXP 1.0 in both of its forms and for Open Tool Calling 1.0.
//!
//! It does what the specifications ask of clients: one `call_id` for all attempts at a call,
//! retries where the server says that they may help, and every kind of answer as data.

mod call;
mod challenge;
mod list;
mod reply;

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header::RETRY_AFTER};
use serde::de::DeserializeOwned;

use super::{
    ClientError, JwtSigner,
    credentials::ClientCredentials,
    http::{HttpClient, ReceivedResponse, decoded},
    retry::{Attempts, RetryAdvice, RetryLimits},
};
use crate::{Secret, ToolDefinition};

pub use call::{CallFormat, CallRequest};
pub use challenge::{AuthorizationChallenge, ChallengeDecision};
pub use reply::{CallOutcome, CallReply, MissingRequirements, ServerError, ToolError};

const API_KEY: HeaderName = HeaderName::from_static("oxp-api-key");
const VERSION: HeaderName = HeaderName::from_static("oxp-version");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// A client of one server.
///
/// An attempt takes 30 seconds at most, a call 90 with all its attempts and the waits between
/// them, of which there are 4 at most; answers are read up to 16 MiB. Attempts are repeated after
/// failures that may be retried (after the time that the server names), after errors of the
/// network, and after the statuses 408, 429 and 5xx.
#[derive(Clone, Debug)]
pub struct OxpClient {
    http: HttpClient,
    dialect: CallFormat,
    patience: RetryLimits,
    challenge_for: Duration,
    poll_every: Duration,
}

impl OxpClient {
    /// A client for the server at this URL, such as `https://tools.example`, that shows no
    /// credentials.
    ///
    /// # Errors
    /// A URL that is none, or that has credentials in it.
    pub fn new(base_url: &str) -> Result<Self, ClientError> {
        Ok(Self {
            http: HttpClient::new(base_url)?,
            dialect: CallFormat::default(),
            patience: RetryLimits::default(),
            challenge_for: Duration::from_mins(5),
            poll_every: Duration::from_secs(2),
        })
    }

    /// Shows an API key, in the header `OXP-API-Key`.
    #[must_use]
    pub fn api_key(mut self, key: impl Into<Secret>) -> Self {
        self.http.credentials = ClientCredentials::ApiKey(key.into(), Some(API_KEY));
        self
    }

    /// Shows tokens that it signs itself, which the specification prefers to API keys.
    #[must_use]
    pub fn jwt(mut self, jwt: JwtSigner) -> Self {
        self.http.credentials = ClientCredentials::Jwt(jwt);
        self
    }

    /// Sets the dialect in which calls are written; answers are understood in all of them.
    #[must_use]
    pub fn dialect(mut self, dialect: CallFormat) -> Self {
        self.dialect = dialect;
        self
    }

    /// Sets how long one attempt may take.
    #[must_use]
    pub fn timeout(mut self, time: Duration) -> Self {
        self.patience.timeout = time;
        self
    }

    /// Sets how long a call may take, with all its attempts and the waits between them.
    #[must_use]
    pub fn deadline(mut self, time: Duration) -> Self {
        self.patience.deadline = time;
        self
    }

    /// Sets how many attempts there are at most; 1 repeats none.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.patience.attempts = attempts.max(1);
        self
    }

    /// Sets how many bytes of an answer are read at most.
    #[must_use]
    pub fn largest_answer(mut self, bytes: usize) -> Self {
        self.http.largest = bytes;
        self
    }

    /// Sets how long [`wait_for`](Self::wait_for) waits, 5 minutes otherwise, and how often it
    /// asks, every 2 seconds otherwise.
    #[must_use]
    pub fn wait_at_most(mut self, time: Duration, every: Duration) -> Self {
        self.challenge_for = time;
        self.poll_every = every;
        self
    }

    /// `GET /health`: whether the server takes calls. Asked once.
    ///
    /// # Errors
    /// A server that cannot be reached, or that answers neither 200 nor 503.
    pub async fn health(&self) -> Result<bool, ClientError> {
        let url = self.http.url("health");
        let timeout = self.patience.timeout;
        let received = self.http.get(url, HeaderMap::new(), timeout).await?;
        match received.status.as_u16() {
            200 => Ok(true),
            503 => Ok(false),
            _ => Err(status_error(&received)),
        }
    }

    /// `GET /tools`: all tools, in whichever form the server lists them. Input schemas come
    /// without the `parameters` around them.
    ///
    /// # Errors
    /// No list, after all attempts.
    pub async fn tools(&self) -> Result<Vec<ToolDefinition>, ClientError> {
        let mut effort = Attempts::new(self.patience);
        loop {
            let timeout = effort.begin();
            let url = self.http.url("tools");
            let received = self.http.get(url, self.version(), timeout).await;
            let advice = advice_on(&received);
            if effort.goes_on(advice).await {
                continue;
            }
            let received = received?;
            return match received.status.as_u16() {
                200 => list::tools_in(received.json()?),
                _ => Err(status_error(&received)),
            };
        }
    }

    /// `POST /tools/call`: runs one tool. All attempts have the same `call_id`, so that a server
    /// that keeps to the specification runs it once.
    ///
    /// # Errors
    /// No answer about the call, after all attempts. What the server says about it, also that it
    /// was refused, is a [`CallReply`].
    pub async fn call(&self, call: &CallRequest) -> Result<CallReply, ClientError> {
        let call_id = call.id();
        let body = Bytes::from(call.written(&call_id, self.dialect));
        let mut effort = Attempts::new(self.patience);
        loop {
            let timeout = effort.begin();
            let (url, body) = (self.http.url("tools/call"), body.clone());
            let received = self.http.post(url, self.version(), body, timeout).await;
            let advice = advice_on(&received);
            let mut reply = received.and_then(|it| CallReply::of(&it, &call_id));
            let advice = match &reply {
                Ok(reply) => reply.advice().unwrap_or(advice),
                Err(_) => advice,
            };
            if effort.goes_on(advice).await {
                continue;
            }
            if let Ok(reply) = &mut reply {
                reply.attempts = effort.attempts;
            }
            return reply;
        }
    }

    /// Runs one tool for its value.
    ///
    /// # Errors
    /// As [`call`](Self::call), [`ClientError::NoValue`] for everything that is none, and
    /// [`ClientError::Unreadable`] for a value that is no `V`.
    pub async fn run<V: DeserializeOwned>(&self, call: &CallRequest) -> Result<V, ClientError> {
        match self.call(call).await?.outcome {
            CallOutcome::Value(value) => decoded(value),
            other => Err(ClientError::NoValue(Box::new(other))),
        }
    }

    fn version(&self) -> HeaderMap {
        let value = HeaderValue::from_static("1.0");
        match self.dialect {
            CallFormat::Header => HeaderMap::from_iter([(VERSION, value)]),
            CallFormat::Schema | CallFormat::Otc => HeaderMap::new(),
        }
    }
}

/// What the transport says about asking again.
fn advice_on(received: &Result<ReceivedResponse, ClientError>) -> RetryAdvice {
    let received = match received {
        Ok(received) => received,
        Err(ClientError::Unreachable(_)) => return RetryAdvice::Again(None),
        Err(_) => return RetryAdvice::Done,
    };
    let should_retry = received
        .headers
        .get(SHOULD_RETRY)
        .map(HeaderValue::as_bytes);
    let status = received.status;
    let may_help = match should_retry {
        Some(b"true") => true,
        Some(b"false") => false,
        _ => status.is_server_error() || matches!(status.as_u16(), 408 | 429),
    };
    if !may_help {
        return RetryAdvice::Done;
    }
    let after = received.headers.get(RETRY_AFTER);
    RetryAdvice::Again(after.and_then(|it| time_in(it.to_str().ok()?.trim(), SystemTime::now())))
}

/// RFC 9110, 10.2.3: seconds, or a date.
fn time_in(after: &str, now: SystemTime) -> Option<Duration> {
    if !after.is_empty() && after.bytes().all(|byte| byte.is_ascii_digit()) {
        // More than there are: later than any deadline.
        return Some(after.parse().map_or(Duration::MAX, Duration::from_secs));
    }
    let date = httpdate::parse_http_date(after).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

fn status_error(received: &ReceivedResponse) -> ClientError {
    let message = received.message();
    match received.status.as_u16() {
        401 => ClientError::Unauthorized { message },
        status => ClientError::Status { status, message },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_say_when_to_come_back() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (text, expected) in [
            ("7", Some(Duration::from_secs(7))),
            ("99999999999999999999", Some(Duration::MAX)),
            (
                "Sun, 06 Nov 1994 08:49:47 GMT",
                Some(Duration::from_secs(10)),
            ),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(Duration::ZERO)),
            ("soon", None),
            ("", None),
            ("-1", None),
        ] {
            assert_eq!(time_in(text, now), expected, "{text}");
        }
    }
}
