//! What a request leaves behind: a line in the log, metrics, a span.
//!
//! The same for every protocol. The line's fields and the metrics are in `docs/operations.md`,
//! which a test compares with what is printed; inputs, outputs, tokens and secrets are in none.

mod end;

use std::{sync::Arc, time::Instant};

use axum::extract::Request;
use http::HeaderMap;
use semver::Version;
use tracing::Span;

use super::{
    metrics::CacheUse,
    spans::{self, Spans},
    trace::Trace,
};
use crate::{
    Caller,
    call::{Call, arrival::Invocation},
    protocol::App,
    text::clipped,
    tool::toolkit::Chosen,
};

pub(crate) use end::undecodable;

/// The target of the lines of requests.
pub(crate) const LINES: &str = "lambda_tools::request";

/// The longest text of a caller's choice, in bytes: logs are paid for.
pub(crate) const LONGEST: usize = 256;

/// What is known of a request while it is answered. One that is dropped without having been
/// written says so itself.
pub(crate) struct Line {
    app: Arc<App>,
    /// What is asked for, in a word.
    what: &'static str,
    begun: Instant,
    invocation: Invocation,
    dialect: Option<&'static str>,
    caller: Option<String>,
    call_id: Option<String>,
    trace: Trace,
    asked_for: Option<String>,
    asked_version: Option<Version>,
    /// The tool that was found.
    pub(crate) tool: Option<Chosen>,
    /// The secrets that the tool needs from the store.
    pub(crate) cache: CacheUse,
    span: Option<Span>,
    /// Whether the span is in its trace.
    is_placed: bool,
    is_written: bool,
}

/// How a request calls what it asks for, as far as it could be read.
#[derive(Default)]
pub(crate) struct Names {
    pub(crate) tool: Option<String>,
    pub(crate) call_id: Option<String>,
    pub(crate) trace_id: Option<String>,
}

impl Line {
    pub(crate) fn of(app: &Arc<App>, request: &Request, what: &'static str) -> Self {
        let invocation = Invocation::of(request.extensions());
        Self {
            app: Arc::clone(app),
            what,
            begun: app.host.instant(),
            trace: Trace::of(request.headers(), None, invocation.xray.as_deref()),
            invocation,
            dialect: None,
            caller: None,
            call_id: None,
            asked_for: None,
            asked_version: None,
            tool: None,
            cache: CacheUse::default(),
            span: None,
            is_placed: false,
            is_written: false,
        }
    }

    /// The same for a call, which is counted, and has a span of this name.
    pub(crate) fn of_call(app: &Arc<App>, request: &Request, name: &'static str) -> Self {
        let mut line = Self::of(app, request, "call");
        line.span = Some(spans::request(name));
        line
    }

    pub(crate) fn named(&mut self, dialect: &'static str, caller: &Caller) {
        self.dialect = Some(dialect);
        self.caller = match caller {
            Caller::Anyone => None,
            named => Some(chosen(&named.to_string())),
        };
    }

    /// Notes what could be read of a request that is refused.
    pub(crate) fn named_itself(&mut self, headers: &HeaderMap, names: &Names) {
        self.traced(headers, names.trace_id.as_deref());
        self.call_id = names.call_id.as_deref().map(chosen);
        self.asked_for = names.tool.as_deref().map(chosen);
    }

    fn traced(&mut self, headers: &HeaderMap, named: Option<&str>) {
        if let Some(named) = named {
            let xray = self.invocation.xray.as_deref();
            self.trace = Trace::of(headers, Some(&clipped(named, LONGEST)), xray);
        }
    }

    /// Notes what is asked for; returns the spans that what it leads to belongs to.
    pub(crate) fn asked(&mut self, headers: &HeaderMap, call: &mut Call) -> Spans {
        self.traced(headers, call.trace_id.as_deref());
        if call.call_id.is_none() {
            call.made_id = Some(self.app.host.id().to_string());
        }
        let call_id = call.call_id.as_ref().or(call.made_id.as_ref());
        self.call_id = call_id.map(|id| chosen(id));
        self.asked_for = Some(chosen(&call.selector.qualified));
        self.asked_version.clone_from(&call.selector.version);
        let request = self.span.clone().unwrap_or_else(Span::none);
        spans::place(&request, &self.trace);
        self.is_placed = true;
        // Lines of tools show whose they are. On the level that only `off` leaves out.
        let call = tracing::error_span!(
            target: "lambda_tools::call",
            "call",
            requestId = self.invocation.request_id.as_deref(),
            call_id = self.call_id,
            trace_id = self.trace.label(),
            tool = self.asked_for,
        );
        Spans { request, call }
    }
}

/// What callers choose.
fn chosen(text: &str) -> String {
    clipped(text, LONGEST).into_owned()
}
