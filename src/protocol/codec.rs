//! The driver's view of a protocol: its routes and headers, the decoding of requests and the
//! encoding of responses.

use std::{collections::HashMap, sync::Arc};

use axum::{body::Body, response::Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use tracing::Span;

use super::{
    app::AppState,
    encoded_list::EncodedList,
    json_response::{insert, json_response, response},
    listed_tools::ListedTools,
    refusal::Refusal,
};
use crate::{
    Caller, StoreError,
    call::{Call, Outcome, rejection::Rejection},
    idempotency::deduplication::task::{Task, TaskId},
    observe::request_log::RequestNames,
    tool::toolkit::{ToolEntry, closest_name},
};

/// The part that each protocol implements: decoding requests and encoding responses.
pub(super) trait Codec: Sized + Send + Sync + 'static {
    const DECLARATION: &'static Declaration;

    /// The format of a response, as its request determines it: its dialect and its id.
    type Format: Default + Send + Sync + 'static;

    /// Returns the format of a response to a request that was not decoded.
    fn undecoded(_: Purpose) -> Self::Format {
        Self::Format::default()
    }

    /// Decodes a request, which may be of any size and may be invalid. What could be read of the
    /// format goes into `format`, which is at first that of a request that was not decoded.
    fn decode(
        &self,
        purpose: Purpose,
        request: &EncodedRequest<'_>,
        format: &mut Self::Format,
    ) -> Operation;

    /// Returns true for the body of a health check, which needs no credentials.
    fn is_health_check(_: &[u8]) -> bool {
        false
    }

    /// Returns the name of the dialect in the log.
    fn dialect(format: &Self::Format) -> &'static str;

    /// Returns the headers of W3C Trace Context, if the request brings them in its body.
    fn trace_headers(_: &Self::Format) -> Option<&HeaderMap> {
        None
    }

    /// Adds to the span of a call what the protocol's conventions ask for.
    fn annotate(_: &Self::Format, _: &Call, _: &AppState, _: &Span) {}

    /// Returns the list of tools. Complete lists are cached.
    fn list(&self, format: &Self::Format, tools: &ListedTools<'_>) -> Arc<EncodedList>;

    /// Returns the response if the list is too large.
    fn list_error(&self, format: &Self::Format, detail: &str) -> Reply;

    /// Returns the chunks to send before the outcome of a call, as they become known, if the client
    /// wants any; only asked for responses that can be streams. The first one makes the response a
    /// stream, which ends with the body of the outcome or the refusal.
    fn early_chunks(_: &mut Self::Format, _: &mut Call) -> Option<Body> {
        None
    }

    fn outcome(&self, format: &Self::Format, outcome: &Outcome) -> Reply;

    fn refusal(&self, format: &Self::Format, refusal: &Refusal) -> Reply;
}

/// The status and the body of a response.
pub(super) type Reply = (StatusCode, Vec<u8>);

/// Returns a response with the protocol's fixed headers.
pub(super) fn reply<P: Codec>(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = json_response(status, body);
    insert(response.headers_mut(), P::DECLARATION.fixed_headers);
    response
}

/// Returns a response that is a stream of server-sent events.
pub(super) fn streamed_reply<P: Codec>(events: Body) -> Response {
    let mut response = response(StatusCode::OK, "text/event-stream", events);
    let headers = response.headers_mut();
    // Proxies such as nginx would hold back events to collect them.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    insert(headers, P::DECLARATION.fixed_headers);
    response
}

/// The properties of a protocol.
pub(crate) struct Declaration {
    /// The protocol's name in the list of all routes; `None` for the protocol at the root.
    pub(super) title: Option<&'static str>,
    pub(super) routes: &'static [Route],
    /// Additional paths, which are not advertised.
    pub(super) aliases: &'static [Route],
    /// True if all other methods of the paths are requests as well; otherwise, the router rejects
    /// them.
    pub(super) takes_all_methods: bool,
    /// The path that access tokens are issued for, after the server's URL.
    pub(super) resource_path: &'static str,
    /// The headers of every list.
    pub(super) list_headers: &'static [(&'static str, &'static str)],
    /// The request headers whose values are not secret.
    pub(crate) request_headers: &'static [&'static str],
    /// The response headers that clients read, besides those of all protocols.
    pub(super) response_headers: &'static [&'static str],
    /// The headers of every response.
    pub(super) fixed_headers: &'static [(&'static str, &'static str)],
    /// The headers of temporary rejections, besides `Retry-After`.
    pub(super) retry_headers: &'static [(&'static str, &'static str)],
    /// The places of tokens and secrets in calls: a JSON pointer to a list, and the name of a field
    /// of its items.
    pub(crate) secrets: &'static [(&'static str, &'static str)],
}

impl Declaration {
    /// The properties of a protocol without routes, at the root and without headers of its own.
    pub(super) const BASE: Self = Self {
        title: None,
        routes: &[],
        aliases: &[],
        takes_all_methods: false,
        resource_path: "",
        list_headers: &[],
        request_headers: &[],
        response_headers: &[],
        fixed_headers: &[],
        retry_headers: &[],
        secrets: &[],
    };

    /// Returns the routes that the server has: that of its `OpenAPI` document is optional.
    pub(super) fn routes(&self, has_openapi: bool) -> impl Iterator<Item = &'static Route> {
        let routes = self.routes.iter();
        routes.filter(move |it| has_openapi || it.purpose != Purpose::OPENAPI)
    }
}

/// One route of a protocol.
pub(super) struct Route {
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(super) purpose: Purpose,
}

impl Route {
    pub(super) const fn new(method: Method, path: &'static str, purpose: Purpose) -> Self {
        Self {
            method,
            path,
            purpose,
        }
    }
}

/// The purpose of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A health check: needs no credentials and is not logged.
    Health,
    /// A fixed response, with its name in the log: needs credentials and is logged only if it is
    /// rejected.
    Fixed(&'static str),
    /// The list of tools, with the operation's name in the log.
    List(&'static str),
    /// A call, with the name of the request's span.
    Call(&'static str),
    /// An event that is a call by itself, with the name of its span.
    Event(&'static str),
}

impl Purpose {
    /// The list of tools as an `OpenAPI` document.
    pub(super) const OPENAPI: Self = Self::List("openapi");

    /// Returns the name in the log.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Health => "health",
            Self::Fixed(name) | Self::List(name) => name,
            Self::Call(_) | Self::Event(_) => "call",
        }
    }

    pub(super) fn span(self) -> Option<&'static str> {
        match self {
            Self::Call(span) | Self::Event(span) => Some(span),
            _ => None,
        }
    }
}

/// A request to be decoded: an HTTP request, or an event that is a call by itself.
pub(super) struct EncodedRequest<'a> {
    pub(super) headers: &'a HeaderMap,
    pub(super) uri: &'a Uri,
    pub(super) body: &'a [u8],
    pub(super) app: &'a AppState,
    pub(super) caller: &'a Caller,
    /// The maximum number of JSON values in the body.
    pub(super) max_values: usize,
}

impl EncodedRequest<'_> {
    /// Returns the tool whose newest version has this name.
    pub(super) fn tool_named(&self, name: &str) -> Option<&ToolEntry> {
        self.names().get(name)
    }

    fn names(&self) -> &HashMap<String, ToolEntry> {
        self.app.names.index(&self.app.engine.toolkit)
    }

    /// Returns the name in the caller's list that is closest.
    pub(super) fn closest_name(&self, name: &str) -> Option<String> {
        let names = self.names();
        let is_listed = |entry: &ToolEntry| self.app.engine.is_listed(entry, self.caller);
        let listed = names.iter().filter(|(_, entry)| is_listed(entry));
        closest_name(name, listed.map(|(name, _)| &**name), names.len(), '_')
    }

    /// Rejects a call of an unknown name. `similar` is the name to look for among the known ones.
    pub(super) fn reject_unknown(
        &self,
        name: String,
        similar: &str,
        call_id: Option<String>,
    ) -> Operation {
        let rejection = Rejection::UnknownTool {
            closest: self.closest_name(similar),
            qualified: (&*name).into(),
        };
        let names = RequestNames {
            tool: Some(name),
            call_id,
            trace_id: None,
        };
        Operation::Reject(rejection.into(), names)
    }
}

/// The operation that a request leads to.
pub(super) enum Operation {
    Call(Box<Call>),
    List,
    /// A response that needs no engine. Without a body, it has no content type.
    Respond(StatusCode, Vec<u8>),
    Task(TaskRequest),
    /// A request that the protocol refuses in its own words.
    Refuse(OwnRefusal),
    /// A refusal, and the names in the request, for the log.
    Reject(Refusal, RequestNames),
}

/// A request about a task.
pub(super) struct TaskRequest {
    /// The name of the operation in the log.
    pub(super) name: &'static str,
    pub(super) id: TaskId,
    pub(super) cancels: bool,
    /// Encodes the response of at most this many bytes, for the task if the caller has it.
    pub(super) reply: TaskReply,
}

type TaskReply = Box<dyn FnOnce(Result<Option<Task>, StoreError>, usize) -> Reply + Send>;

/// The response to a request that is not one of the protocol. The last two fields are for the
/// log.
pub(super) struct OwnRefusal {
    pub(super) status: StatusCode,
    pub(super) body: Vec<u8>,
    pub(super) detail: String,
    pub(super) names: RequestNames,
}
