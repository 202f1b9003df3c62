//! The spans of a call: one for the request, and inside it one for the tool's run.
//!
//! They cost nothing unless something collects them: the export over OTLP, or the program's own
//! subscriber with [`TARGET`] enabled. Attribute names follow OpenTelemetry's semantic conventions
//! wherever these define one.

use tracing::{Instrument, Span, field::Empty};

use super::trace::Trace;
use crate::{
    ToolId,
    text::{LONGEST_SHOWN, clipped},
};

/// The target of both spans.
pub(crate) const TARGET: &str = "lambda_tools::trace";

/// The two spans that enclose a call: one for the export, one for the log.
///
/// A spawned task must be instrumented with both: looking up the current span does not find a
/// parent that was not entered in that task.
#[derive(Clone, Debug)]
pub(crate) struct Spans {
    pub(crate) request: Span,
    pub(crate) call: Span,
}

impl Spans {
    pub(crate) fn enclose<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        let future = future.instrument(self.call.clone());
        future.instrument(self.request.clone())
    }
}

/// The span of a request for a call.
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

/// The span of a tool's run, inside the current one. Reference: OpenTelemetry, Semantic conventions
/// for generative AI, Execute tool span.
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

/// Marks a span as failed. `error_type` is one word.
pub(crate) fn mark_failed(span: &Span, error_type: &str) {
    span.record("otel.status_code", "ERROR");
    span.record("error.type", error_type);
}

/// Ends a span now, so that it is exported with its call even if a task that the tool left running
/// is still inside it.
#[cfg(feature = "otlp")]
pub(crate) fn end(span: &Span) {
    use opentelemetry::trace::TraceContextExt;
    use tracing_opentelemetry::OpenTelemetrySpanExt;

    if !span.is_disabled() {
        span.context().span().end();
    }
}

/// Does nothing: no span is exported.
#[cfg(not(feature = "otlp"))]
pub(crate) fn end(_: &Span) {}

/// Makes a span part of its trace, and links it to X-Ray's trace if that is another one.
#[cfg(feature = "otlp")]
pub(crate) fn join_trace(span: &Span, trace: &Trace) {
    use opentelemetry::{
        Context,
        trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState},
    };
    use tracing_opentelemetry::OpenTelemetrySpanExt;

    use super::trace::TracePosition;

    let context = |position: TracePosition, state: TraceState| {
        // The call's `trace_id` names no parent span. OpenTelemetry lets a span join a trace only
        // through a parent, so one is derived from the id.
        let parent = position.span.unwrap_or_else(|| synthetic_parent(position));
        let flags = TraceFlags::default().with_sampled(position.is_sampled);
        let (trace, parent) = (position.trace.to_be_bytes(), parent.to_be_bytes());
        let (trace, parent) = (TraceId::from_bytes(trace), SpanId::from_bytes(parent));
        SpanContext::new(trace, parent, flags, true, state)
    };
    if span.is_disabled() {
        return;
    }
    if let Some(position) = trace.position {
        let state = trace.state.as_deref().and_then(|text| text.parse().ok());
        let parent = context(position, state.unwrap_or_default());
        // Fails for a span that has started; this one has not.
        let _ = span.set_parent(Context::new().with_remote_span_context(parent));
    }
    if let Some(link) = trace.xray_link {
        span.add_link(context(link, TraceState::default()));
    }
}

/// A parent that is the same for all calls of a trace, so that their spans are siblings.
#[cfg(feature = "otlp")]
fn synthetic_parent(position: super::trace::TracePosition) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "half of it is enough")]
    let half = (position.trace ^ (position.trace >> 64)) as u64;
    half.max(1)
}

/// Does nothing: no span is exported.
#[cfg(not(feature = "otlp"))]
pub(crate) fn join_trace(_: &Span, _: &Trace) {}
