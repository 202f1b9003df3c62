//! What a protocol is to the driver: its routes and headers, and from bytes to what is asked for and
//! back.

use bytes::Bytes;
use http::{Method, StatusCode, request::Parts};

use crate::ServerInfo;
use crate::{
    Toolkit,
    call::{Call, Engine, Outcome, rejection::Rejection},
    observe::request_log::RequestedTool,
};

/// A protocol's own part: from bytes to what is asked for, and back.
pub(super) trait Codec: Sized + Send + Sync + 'static {
    const DECLARATION: &'static Declaration;

    /// What an answer has to know of its request: its dialect, its id. The default is that of a
    /// request that was not read.
    type Form: Default + Send + Sync + 'static;

    fn new(info: &ServerInfo) -> Self;

    /// Reads a request, large or small, whatever is wrong with it.
    fn decode(&self, task: Task, request: &EncodedRequest<'_>) -> DecodedRequest<Self::Form>;

    /// What the log calls the form.
    fn dialect(form: &Self::Form) -> &'static str;

    /// The list of tools, or why it cannot be had.
    fn list(&self, form: &Self::Form, toolkit: &Toolkit) -> Result<&Bytes, &str>;

    /// The answer where the list cannot be had, or is too large.
    fn unlisted(&self, detail: &str) -> (StatusCode, Vec<u8>);

    /// The body of a 200.
    fn outcome(&self, form: &Self::Form, outcome: &Outcome) -> Vec<u8>;

    fn rejection(&self, form: &Self::Form, rejection: &Rejection) -> (StatusCode, Vec<u8>);
}

/// What a protocol says of itself.
pub(super) struct Declaration {
    /// What the list of all routes calls it; the one at the root needs no name.
    pub(super) title: Option<&'static str>,
    pub(super) routes: &'static [Route],
    /// What the protocol calls its list of tools.
    pub(super) list: &'static str,
    /// The headers of its requests whose values are no secrets.
    pub(super) request_headers: &'static [&'static str],
    /// The headers of its answers, besides those of all protocols, that say something to clients.
    pub(super) answer_headers: &'static [&'static str],
    /// Those that are on every answer.
    pub(super) fixed_headers: &'static [(&'static str, &'static str)],
    /// Those that are on rejections after which the same call may be taken in a moment, besides
    /// `Retry-After`.
    pub(super) retry_headers: &'static [(&'static str, &'static str)],
    /// Where calls bring tokens and secrets: a JSON pointer to a list, and the field of its items.
    pub(super) secrets: &'static [(&'static str, &'static str)],
}

/// One route of a protocol.
pub(super) struct Route {
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(super) task: Task,
    /// Whether it is another path of the same, which is not advertised.
    pub(super) is_alias: bool,
}

/// What a route is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Open to everybody, and not logged.
    Health,
    /// For callers, and logged only where it is refused.
    Version,
    /// With what the log calls it.
    List(&'static str),
    /// With the name of the request's span.
    Call(&'static str),
}

impl Task {
    /// What the log calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Health => "health",
            Self::Version => "version",
            Self::List(name) => name,
            Self::Call(_) => "call",
        }
    }

    pub(super) fn span(self) -> Option<&'static str> {
        match self {
            Self::Call(span) => Some(span),
            _ => None,
        }
    }
}

/// A request to be decoded.
pub(super) struct EncodedRequest<'a> {
    pub(super) parts: &'a Parts,
    pub(super) body: &'a [u8],
    pub(super) engine: &'a Engine,
    /// How many JSON values the body may have.
    pub(super) most_values: usize,
}

/// A request as far as it could be read.
pub(super) struct DecodedRequest<F> {
    pub(super) form: F,
    pub(super) asked: Operation,
}

/// What a request asks for.
pub(super) enum Operation {
    Call(Box<Call>),
    List,
    /// What needs no engine.
    Answer(StatusCode, Vec<u8>),
    /// What is wrong with it, and what it calls what it asks for.
    Refused(Rejection, RequestedTool),
}
