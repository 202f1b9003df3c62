//! A client for OXP 1.0 in both of its dialects and for Open Tool Calling 1.0.
//!
//! As the specifications require of clients, it uses one `call_id` for all attempts at a call,
//! retries where the server says that this may help, and returns every kind of response as data.

mod call;
mod challenge;
mod list;
mod reply;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use lambda_tools_core::{ToolDefinition, wire};
use serde::de::DeserializeOwned;

use super::{
    ClientError, ClientOptions,
    http::HttpClient,
    response::decode,
    retry::{Attempts, advice_on},
};

pub use super::{
    call::CallRequest,
    outcome::{
        AuthorizationChallenge, CallOutcome, CallReply, MissingRequirements, ServerError, ToolError,
    },
};
pub use call::Dialect;
pub use challenge::ChallengeDecision;

const API_KEY: HeaderName = HeaderName::from_static(wire::oxp::API_KEY);
const VERSION: HeaderName = HeaderName::from_static(wire::oxp::VERSION_HEADER);

/// A client for one server.
///
/// The client retries after failures that may be retried (after the time that the server names),
/// network errors, and the statuses 408, 429 and 5xx.
#[derive(Clone, Debug)]
pub struct OxpClient {
    http: HttpClient,
    dialect: Dialect,
    challenge_timeout: Duration,
    poll_interval: Duration,
}

impl OxpClient {
    /// Creates a client for the server at this URL, such as `https://tools.example`.
    ///
    /// # Errors
    /// The URL is invalid or contains credentials.
    pub fn new(base_url: &str, options: ClientOptions) -> Result<Self, ClientError> {
        let mut http = HttpClient::new(base_url, options)?;
        http.key_header = Some(API_KEY);
        Ok(Self {
            http,
            dialect: Dialect::default(),
            challenge_timeout: Duration::from_mins(5),
            poll_interval: Duration::from_secs(2),
        })
    }

    /// Sets the dialect of calls; responses are understood in every dialect.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Sets how long [`wait_for`](Self::wait_for) waits (5 minutes by default), and how often it
    /// polls (every 2 seconds by default).
    #[must_use]
    pub fn challenge_polling(mut self, time: Duration, every: Duration) -> Self {
        self.challenge_timeout = time;
        self.poll_interval = every;
        self
    }

    /// Returns true if the server accepts calls, after a `GET /health`, which is never retried.
    ///
    /// # Errors
    /// The server cannot be reached, or responds with neither 200 nor 503.
    pub async fn health(&self) -> Result<bool, ClientError> {
        let url = self.http.url("health");
        let timeout = self.http.options.limits.timeout;
        let response = self.http.get(url, HeaderMap::new(), timeout).await?;
        match response.status.as_u16() {
            200 => Ok(true),
            503 => Ok(false),
            _ => Err(response.status_error()),
        }
    }

    /// Returns all tools, from a `GET /tools` in any dialect. Input schemas are returned without
    /// the `parameters` wrapper.
    ///
    /// # Errors
    /// No attempt returned a list.
    pub async fn tools(&self) -> Result<Vec<ToolDefinition>, ClientError> {
        let mut attempts = Attempts::new(self.http.options.limits);
        loop {
            let timeout = attempts.begin();
            let url = self.http.url("tools");
            let response = self.http.get(url, self.version(), timeout).await;
            let advice = advice_on(response.as_ref());
            if attempts.wait_for_next(advice).await {
                continue;
            }
            let response = response?;
            return match response.status.as_u16() {
                200 => list::tools_in(response.json()?),
                _ => Err(response.status_error()),
            };
        }
    }

    /// Runs one tool, with `POST /tools/call`. All attempts have the same `call_id`, so that a
    /// server that follows the specification runs the tool once.
    ///
    /// # Errors
    /// No attempt got a response about the call. Any such response, even a rejection, is returned
    /// as a [`CallReply`].
    pub async fn call(&self, call: &CallRequest) -> Result<CallReply, ClientError> {
        if !call.tokens.is_empty() || !call.secrets.is_empty() {
            self.http.check_encryption()?;
        }
        let call_id = call.id();
        let body = Bytes::from(call.encode(&call_id, self.dialect));
        let mut attempts = Attempts::new(self.http.options.limits);
        loop {
            let timeout = attempts.begin();
            let url = self.http.url("tools/call");
            let request = (Method::POST, url, self.version(), body.clone());
            let mut response = self.http.exchange(request, timeout).await;
            if let Ok(response) = &mut response {
                let secrets = call.tokens.values().chain(call.secrets.values());
                response.secrets.extend(secrets.cloned());
            }
            let advice = advice_on(response.as_ref());
            let reply = response.and_then(|it| CallReply::of(&it, &call_id));
            let of_reply = reply.as_ref().ok().and_then(|it| it.outcome.advice());
            if !attempts.wait_for_next(of_reply.unwrap_or(advice)).await {
                let attempts = attempts.count;
                return reply.map(|it| CallReply { attempts, ..it });
            }
        }
    }

    /// Runs one tool and returns its value.
    ///
    /// # Errors
    /// Those of [`call`](Self::call), [`ClientError::NoValue`] for any other outcome, and
    /// [`ClientError::Unreadable`] for a value that is not a `V`.
    pub async fn run<V: DeserializeOwned>(&self, call: &CallRequest) -> Result<V, ClientError> {
        decode(self.call(call).await?.outcome.into_value()?)
    }

    fn version(&self) -> HeaderMap {
        let value = HeaderValue::from_static(wire::oxp::VERSION);
        match self.dialect {
            Dialect::Header => HeaderMap::from_iter([(VERSION, value)]),
            Dialect::Schema | Dialect::Otc => HeaderMap::new(),
        }
    }
}
