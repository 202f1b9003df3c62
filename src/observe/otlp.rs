//! The export of spans over OTLP, if the environment names a collector.
//!
//! Without the Cargo feature `otlp`, `otlp/off.rs` takes the place of this module.

mod export;
mod queue;

use opentelemetry::{
    Context,
    trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState},
};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use super::trace::{Trace, TracePosition};
pub(crate) use export::Telemetry;

/// Ends a span now, so that it is exported with its call even if a task that the tool left running
/// is still inside it.
pub(crate) fn end(span: &Span) {
    if !span.is_disabled() {
        span.context().span().end();
    }
}

/// Makes a span part of its trace, and links it to X-Ray's trace if that is another one.
pub(crate) fn join_trace(span: &Span, trace: &Trace) {
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

/// Returns a parent that is the same for all calls of a trace, so that their spans are siblings.
fn synthetic_parent(position: TracePosition) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "half of it is enough")]
    let half = (position.trace ^ (position.trace >> 64)) as u64;
    half.max(1)
}
