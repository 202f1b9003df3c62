//! What a call leaves behind for the log, the metrics and the trace, as far as it has come.

use http::HeaderMap;
use semver::Version;
use tracing::Span;

use super::{
    spans::{self, Spans},
    trace::Trace,
};
use crate::{
    arrival::Invocation,
    secrets::CacheUse,
    text::{LONGEST_SHOWN, clipped},
    tool::{id::Selector, toolkit::SelectedTool},
};

/// What is known of a call so far.
pub(crate) struct Trail {
    /// The tool that was found.
    pub(crate) tool: Option<SelectedTool>,
    /// The secrets that the tool needs from the store.
    pub(crate) cache: CacheUse,
    pub(super) call_id: Option<String>,
    pub(super) asked_for: Option<String>,
    pub(super) asked_version: Option<Version>,
    pub(super) trace: Trace,
    /// The span of the request, of calls only.
    pub(super) span: Option<Span>,
    /// Whether the span is in its trace.
    pub(super) is_placed: bool,
}

impl Trail {
    pub(super) fn new(headers: &HeaderMap, invocation: &Invocation, span: Option<Span>) -> Self {
        Self {
            tool: None,
            cache: CacheUse::default(),
            call_id: None,
            asked_for: None,
            asked_version: None,
            trace: Trace::of(headers, None, invocation.xray.as_deref()),
            span,
            is_placed: false,
        }
    }

    /// Notes what is asked for; returns the spans that what it leads to belongs to.
    pub(crate) fn begin(
        &mut self,
        selector: &Selector,
        call_id: &str,
        request_id: Option<&str>,
    ) -> Spans {
        self.call_id = Some(chosen(call_id));
        self.asked_for = Some(chosen(&selector.qualified));
        self.asked_version.clone_from(&selector.version);
        let request = self.span.clone().unwrap_or_else(Span::none);
        spans::place(&request, &self.trace);
        self.is_placed = true;
        // Lines of tools show whose they are. On the level that only `off` leaves out.
        let call = tracing::error_span!(
            target: "lambda_tools::call",
            "call",
            requestId = request_id,
            call_id = self.call_id,
            trace_id = self.trace.label(),
            tool = self.asked_for,
        );
        Spans { request, call }
    }

    pub(super) fn version(&self) -> Option<String> {
        let asked = || self.asked_version.as_ref();
        let found = self.tool.as_ref().map(|tool| tool.id.version());
        found.or_else(asked).map(ToString::to_string)
    }
}

/// What callers choose.
pub(super) fn chosen(text: &str) -> String {
    clipped(text, LONGEST_SHOWN).into_owned()
}
