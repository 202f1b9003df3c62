//! The spans of a call: that of the request, and in it that of the tool's run.
//!
//! Nobody pays for them unless something takes them: here the export over OTLP, or a subscriber of
//! the program's own that asks for [`TARGET`]. Attributes are named as OpenTelemetry's semantic
//! conventions name them, where they do.

use tracing::{Instrument, Span, field::Empty};

use super::trace::Trace;
use crate::{
    ToolId,
    text::{LONGEST_SHOWN, clipped},
};

/// The spans' target.
pub(crate) const TARGET: &str = "lambda_tools::trace";

/// The two spans that all that a call leads to is in: one for the export, one for the log.
///
/// A task of its own has to be put into both: what looks for the current span does not find a
/// parent that was not entered there.
#[derive(Clone, Debug)]
pub(crate) struct Spans {
    pub(crate) request: Span,
    pub(crate) call: Span,
}

impl Spans {
    pub(crate) fn around<F: Future>(&self, doing: F) -> impl Future<Output = F::Output> + use<F> {
        let doing = doing.instrument(self.call.clone());
        doing.instrument(self.request.clone())
    }
}

/// The span of a request that asks for a call.
pub(crate) fn request(name: &'static str) -> Span {
    tracing::error_span!(
        target: TARGET,
        "request",
        "otel.name" = name,
        "otel.kind" = "server",
        "otel.status_code" = Empty,
        "error.type" = Empty,
        "faas.invocation_id" = Empty,
        "faas.coldstart" = Empty,
        call_id = Empty,
        trace_id = Empty,
        dialect = Empty,
    )
}

/// The span of a tool's run, in the current one. Reference: OpenTelemetry, Semantic conventions for
/// generative AI, Execute tool span.
pub(crate) fn tool(tool: &ToolId, call_id: &str) -> Span {
    tracing::error_span!(
        target: TARGET,
        "tool",
        "otel.name" = format!("execute_tool {}", tool.qualified()),
        "otel.status_code" = Empty,
        "error.type" = Empty,
        "gen_ai.operation.name" = "execute_tool",
        "gen_ai.tool.name" = tool.qualified(),
        "gen_ai.tool.call.id" = &*clipped(call_id, LONGEST_SHOWN),
        version = %tool.version(),
    )
}

/// Says that what a span stands for went wrong, and how in a word.
pub(crate) fn failed(span: &Span, why: &str) {
    span.record("otel.status_code", "ERROR");
    span.record("error.type", why);
}

/// Ends a span, so that it is exported with its call, whatever a tool has left behind that is still
/// in it.
#[cfg(feature = "otlp")]
pub(crate) fn end(span: &Span) {
    use opentelemetry::trace::TraceContextExt;
    use tracing_opentelemetry::OpenTelemetrySpanExt;

    if !span.is_disabled() {
        span.context().span().end();
    }
}

/// Nothing is exported.
#[cfg(not(feature = "otlp"))]
pub(crate) fn end(_: &Span) {}

/// Puts a span where the trace says.
#[cfg(feature = "otlp")]
pub(crate) fn place(span: &Span, trace: &Trace) {
    use opentelemetry::{
        Context,
        trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState},
    };
    use tracing_opentelemetry::OpenTelemetrySpanExt;

    use super::trace::TracePosition;

    let context = |place: TracePosition, state: TraceState| {
        // A trace that only has a name has no span to be a child of; the specification of spans
        // knows no other way into a trace than a parent, so that one is made up.
        let parent = place.span.unwrap_or_else(|| made_up_parent(place));
        let flags = TraceFlags::default().with_sampled(place.is_sampled);
        let (trace, parent) = (place.trace.to_be_bytes(), parent.to_be_bytes());
        let (trace, parent) = (TraceId::from_bytes(trace), SpanId::from_bytes(parent));
        SpanContext::new(trace, parent, flags, true, state)
    };
    if span.is_disabled() {
        return;
    }
    if let Some(place) = trace.place {
        let state = trace.state.as_deref().and_then(|text| text.parse().ok());
        let parent = context(place, state.unwrap_or_default());
        // It fails for a span that has begun, which this one has not.
        let _ = span.set_parent(Context::new().with_remote_span_context(parent));
    }
    if let Some(aside) = trace.aside {
        span.add_link(context(aside, TraceState::default()));
    }
}

/// The same for all calls of a trace, so that they stand beside each other.
#[cfg(feature = "otlp")]
fn made_up_parent(place: super::trace::TracePosition) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "half of it is enough")]
    let half = (place.trace ^ (place.trace >> 64)) as u64;
    half.max(1)
}

/// Nothing is exported.
#[cfg(not(feature = "otlp"))]
pub(crate) fn place(_: &Span, _: &Trace) {}
