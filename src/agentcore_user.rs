//! The user of a call from an AgentCore Gateway.

use http::HeaderName;

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
