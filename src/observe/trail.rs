//! The facts about a call that the log, the metrics and the trace need, collected as it proceeds.

use std::borrow::Cow;

use http::HeaderMap;
use semver::Version;
use tracing::Span;

use super::{
    otlp,
    spans::{Spans, Trace},
};
use crate::{
    arrival::Invocation,
    secrets::CacheUse,
    text::{LONGEST_SHOWN, clipped},
    tool::{id::Selector, toolkit::ToolEntry},
};

/// The facts about a call so far.
pub(crate) struct Trail {
    /// The tool that the request selected.
    pub(crate) tool: Option<ToolEntry>,
    /// The cache hits and misses for the tool's secrets.
    pub(crate) cache: CacheUse,
    pub(super) call_id: Option<String>,
    pub(super) requested_tool: Option<String>,
    pub(super) requested_version: Option<Version>,
    pub(super) trace: Trace,
    /// The span of the request; only requests for calls have one.
    pub(super) span: Option<Span>,
    /// True once the span has joined its trace.
    pub(super) has_joined_trace: bool,
}

impl Trail {
    pub(crate) fn new(headers: &HeaderMap, invocation: &Invocation, span: Option<Span>) -> Self {
        Self {
            tool: None,
            cache: CacheUse::default(),
            call_id: None,
            requested_tool: None,
            requested_version: None,
            trace: Trace::of(headers, None, invocation.xray.as_deref()),
            span,
            has_joined_trace: false,
        }
    }

    pub(crate) fn span(&self) -> Option<&Span> {
        self.span.as_ref()
    }

    /// Records the requested call, and returns the spans that enclose it.
    pub(crate) fn begin(
        &mut self,
        selector: &Selector,
        call_id: &str,
        request_id: Option<&str>,
    ) -> Spans {
        self.call_id = Some(clip_name(call_id));
        self.requested_tool = Some(clip_name(&selector.qualified));
        self.requested_version.clone_from(&selector.version);
        let request = self.span.clone().unwrap_or_else(Span::none);
        otlp::join_trace(&request, &self.trace);
        self.has_joined_trace = true;
        // Identifies the call in the tool's lines. At level `error`, so that only `off` filters it
        // out.
        let call = tracing::error_span!(
            target: "lambda_tools::call",
            "call",
            requestId = request_id,
            call_id = self.call_id,
            trace_id = self.trace.label(),
            tool = self.requested_tool,
        );
        let parent = self.trace.parent();
        Spans {
            request,
            call,
            parent,
        }
    }

    pub(super) fn version(&self) -> Option<String> {
        let requested = || self.requested_version.as_ref();
        let selected = self.tool.as_ref().map(|tool| tool.id.version());
        selected.or_else(requested).map(ToString::to_string)
    }
}

/// Shortens a name chosen by the caller.
pub(super) fn clip_name(text: &str) -> String {
    clipped(text, LONGEST_SHOWN).into_owned()
}

/// The facts that depend on the outcome of a request.
#[derive(Default)]
pub(crate) struct RequestEnd<'a> {
    pub(super) outcome: &'static str,
    pub(super) reason: Option<&'static str>,
    /// The number of parameters that make the input invalid.
    pub(super) invalid_parameters: usize,
    pub(super) tool_ms: Option<f64>,
    pub(super) is_replay: bool,
    pub(super) can_retry: Option<bool>,
    /// The text that the tool, or this library, wrote for the log.
    pub(super) developer_message: Option<Cow<'a, str>>,
}

impl RequestEnd<'_> {
    /// Returns the word for the problem, if there is one.
    pub(super) fn problem(&self) -> Option<&'static str> {
        let is_problem = self.reason.is_some() || self.developer_message.is_some();
        is_problem.then(|| self.reason.unwrap_or(self.outcome))
    }
}
