//! The spans of a call: one for the request, and inside it one for the tool's run.
//!
//! They cost nothing unless something collects them: the export over OTLP, or the program's own
//! subscriber with [`TARGET`] enabled. Attribute names follow OpenTelemetry's semantic conventions
//! wherever these define one.

use tracing::{Instrument, Span, field::Empty};

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
    /// The `traceparent` of a call that goes on elsewhere.
    pub(crate) parent: Option<String>,
}

impl Spans {
    pub(crate) fn enclose<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        let future = future.instrument(self.call.clone());
        future.instrument(self.request.clone())
    }
}

/// Returns the span of a request for a call.
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

/// Returns the span of a tool's run, inside the current one. Reference: OpenTelemetry, Semantic
/// conventions for generative AI, Execute tool span.
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
