//! The arrival of a request: its time, its deadline and the platform's information about it; and what a
//! function accepts: the kinds of events, and the sizes.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use http::{Extensions, HeaderName};

use crate::Caller;

/// The time at which a request arrived, and the invocation that carried it.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Instant,
    pub(crate) invocation: Arc<Invocation>,
}

impl Arrival {
    /// Creates the arrival of a request at `at`, the current time. The invocation is in the
    /// request's extensions.
    pub(crate) fn new(at: Instant, request: &Extensions) -> Self {
        let invocation = request.get::<Arc<Invocation>>().cloned();
        Self {
            at,
            invocation: invocation.unwrap_or_default(),
        }
    }

    /// Creates the arrival of an event.
    pub(crate) fn of(at: Instant, invocation: Invocation) -> Self {
        let invocation = Arc::new(invocation);
        Self { at, invocation }
    }
}

/// The function invocation that carried a request, as described by the platform.
#[derive(Debug, Default)]
pub(crate) struct Invocation {
    /// The time at which the platform stops waiting for the response.
    pub(crate) deadline: Option<SystemTime>,
    /// The maximum size of the response, in bytes, if it is not Lambda's.
    pub(crate) max_response_size: Option<usize>,
    /// True if the response may arrive in parts, while the call runs.
    pub(crate) streams: bool,
    /// The server's public URL, if the platform provides it.
    pub(crate) base_url: Option<String>,
    /// Lambda's id for the invocation.
    pub(crate) request_id: Option<String>,
    /// The X-Ray trace header from Lambda.
    pub(crate) xray: Option<String>,
    /// True if the caller had to wait for the process to start.
    pub(crate) is_cold: bool,
    /// The caller that the platform authenticated, if it checks credentials.
    pub(crate) caller: Option<Caller>,
    /// The same caller for a server that relies on the platform: the holder of a token, if the
    /// platform verified one.
    pub(crate) verified: Option<Caller>,
}

/// Time reserved for encoding the response and passing it to the platform.
const MARGIN: Duration = Duration::from_millis(300);

impl Invocation {
    /// Returns the maximum size of the response, in bytes.
    pub(crate) fn max_response_size(&self) -> usize {
        self.max_response_size.unwrap_or(LARGEST_PAYLOAD)
    }

    /// Returns the time that a call has left at `now` for its response to be sent in time. `None`
    /// if there is no deadline.
    pub(crate) fn time_left(&self, now: SystemTime) -> Option<Duration> {
        let left = self.deadline?.duration_since(now).unwrap_or_default();
        Some(left.saturating_sub(MARGIN))
    }
}

/// A kind of event that a function accepts on Lambda; see [`Server::events`](crate::Server::events).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// An HTTP request from a REST API of API Gateway, or from an HTTP API with payload format 1.0,
    /// whose events are the same.
    RestApi,
    /// An HTTP request from an HTTP API of API Gateway, with payload format 2.0.
    HttpApi,
    /// An HTTP request to a function URL.
    FunctionUrl,
    /// An HTTP request from an Application Load Balancer.
    LoadBalancer,
    /// An event that only keeps an instance warm: `{}`, `{"warmer": true}`, or one whose `source` is
    /// `aws.events`, `aws.scheduler` or `serverless-plugin-warmup`. It is answered with `{}`.
    WarmUp,
    /// A direct call: an event that is a call, `{"tool_id": …, "input": …}`, rather than an HTTP
    /// request. It is answered with the body that an HTTP client would get, also if the call is
    /// rejected or the tool fails. So is a JSON-RPC message of MCP; a notification gets `{}`.
    ///
    /// `aws lambda invoke`, Step Functions, EventBridge Scheduler and other functions send them. IAM
    /// decides who may (`lambda:InvokeFunction`), so they need no credentials.
    Direct,
    /// A call from an `AgentCore` Gateway that has the function as a Lambda target; see
    /// [`agentcore`](crate::agentcore).
    AgentCore,
}

impl EventKind {
    /// The kinds that a function accepts by default.
    pub const DEFAULT: &[Self] = &[
        Self::RestApi,
        Self::HttpApi,
        Self::FunctionUrl,
        Self::LoadBalancer,
        Self::WarmUp,
        Self::Direct,
    ];

    /// All kinds in their order, by their names in `TOOLS_EVENTS`.
    pub(crate) const NAMES: [(&str, Self); 7] = [
        ("rest-api", Self::RestApi),
        ("http-api", Self::HttpApi),
        ("function-url", Self::FunctionUrl),
        ("load-balancer", Self::LoadBalancer),
        ("warm-up", Self::WarmUp),
        ("direct", Self::Direct),
        ("agentcore", Self::AgentCore),
    ];
}

/// The header in which an `AgentCore` Gateway passes on the user of a call; see
/// [`Server::agentcore_user`](crate::Server::agentcore_user).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentCoreUser {
    /// The header with the user's id. Clients must not be able to set it: a request interceptor of the
    /// gateway has to.
    Header(HeaderName),
    /// The header with `Bearer` and a token, which is checked as in an HTTP request. A call without a
    /// valid one is rejected.
    Token(HeaderName),
}

/// The maximum size, in bytes, of a request or a response on the platform: Lambda's quota for the
/// payload of a synchronous invocation.
pub(crate) const LARGEST_PAYLOAD: usize = 6_291_556;

/// An allowance for the headers of a response, in bytes.
const HEADERS: usize = 2048;

/// Returns the size, in bytes, of a body that is sent to the platform as a JSON string, in which
/// quotes and backslashes are escaped, plus an allowance for the headers.
pub(crate) fn encoded_size(body: &[u8]) -> usize {
    let escaped = body.iter().filter(|byte| matches!(byte, b'"' | b'\\'));
    body.len() + escaped.count() + HEADERS
}

/// Returns true if the encoded size of a body is at most `largest`.
pub(crate) fn fits(body: &[u8], largest: usize) -> bool {
    // Most bodies fit even if every byte is escaped, and need not be read.
    body.len() * 2 + HEADERS <= largest || encoded_size(body) <= largest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_states_the_margin() {
        let page = include_str!("../docs/costs.md");
        let stated = format!("stopped {} seconds before", MARGIN.as_secs_f64());
        assert!(page.contains(&stated), "{stated}");
    }
}
