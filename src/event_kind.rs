//! The kinds of events that a function accepts.

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
