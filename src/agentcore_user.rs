//! The user of a call from an AgentCore Gateway.

/// The header in which an `AgentCore` Gateway passes on the user of a call; see
/// [`Server::agentcore_user`](crate::Server::agentcore_user).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentCoreUser {
    /// The header with the user's id. Clients must not be able to set it: a request interceptor of the
    /// gateway has to.
    Header(String),
    /// The header with `Bearer` and a token, which is checked as in an HTTP request. A call without a
    /// valid one is rejected.
    Token(String),
}

impl AgentCoreUser {
    /// Returns the header's name.
    pub(crate) fn header(&self) -> &str {
        match self {
            Self::Header(name) | Self::Token(name) => name,
        }
    }
}
