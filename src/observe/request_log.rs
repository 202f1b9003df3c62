//! The log line, the metrics and the span of a request.
//!
//! They are the same for every protocol. `docs/production.md` lists the line's fields and the
//! metrics; tests compare both with the actual output. None of them contains inputs, outputs, tokens
//! or secrets, unless the tool itself wrote an input into the `developer_message` of a failure.

use std::{borrow::Cow, sync::Arc, time::Duration};

use http::HeaderMap;

use super::{
    metrics, otlp,
    spans::{self, Trace},
    trail::{RequestEnd, Trail, clip_name},
};
use crate::{
    Caller, Failure,
    arrival::Arrival,
    clock::Clock,
    text::{self, LONGEST_SHOWN, clipped},
    tool::{
        reason::Reason,
        schema::{self, ParameterErrors, Schema},
        toolkit::ToolEntry,
    },
};

/// The target of request lines.
pub(crate) const REQUEST_TARGET: &str = "lambda_tools::request";

/// The maximum length, in bytes, of text chosen by a tool. `CloudWatch` splits lines of a
/// megabyte, and the parts are not JSON.
const LONGEST_MESSAGE: usize = 4096;

macro_rules! write_line {
    ($level:ident, $log:ident, $end:ident, $elapsed:ident) => {
        tracing::$level!(
            target: REQUEST_TARGET,
            tool = $log.trail.requested_tool.as_deref(),
            version = $log.trail.version(),
            outcome = $end.outcome,
            reason = $end.reason,
            call_id = $log.trail.call_id.as_deref(),
            tool_ms = $end.tool_ms,
            replayed = $end.is_replay.then_some(true),
            can_retry = $end.can_retry,
            developer_message = $end.developer_message.as_deref(),
            duration_ms = milliseconds($elapsed),
            dialect = $log.dialect,
            caller = $log.caller.as_deref(),
            trace_id = $log.trail.trace.label(),
            trace = $log.trail.trace.id_unless_label(),
            requestId = $log.arrival.invocation.request_id.as_deref(),
            cold_start = $log.arrival.invocation.is_cold.then_some(true),
            "{}",
            $log.operation
        )
    };
}

/// The clocks that time requests, and the metrics of requests.
pub(crate) struct Observer {
    /// The clock that measures durations.
    pub(crate) clock: Clock,
    /// Timestamps metrics; never fixed for a recorded event.
    pub(crate) wall_clock: Clock,
    /// The namespace of the metrics; `None` if they are off.
    pub(crate) metrics: Option<String>,
}

/// The facts about a request, collected while it is handled. If it is dropped before its line is
/// written, it logs the request as abandoned.
pub(crate) struct RequestLog {
    observer: Arc<Observer>,
    /// The operation in one word, which is the line's message.
    operation: &'static str,
    arrival: Arrival,
    dialect: Option<&'static str>,
    caller: Option<String>,
    pub(crate) trail: Trail,
    is_written: bool,
}

/// The tool and the ids that could be read from a request.
#[derive(Default)]
pub(crate) struct RequestNames {
    pub(crate) tool: Option<String>,
    pub(crate) call_id: Option<String>,
    pub(crate) trace_id: Option<String>,
}

impl RequestLog {
    /// Begins the log line of a request. `span` is the name of a call's span; only requests that
    /// have one are counted in metrics.
    pub(crate) fn begin(
        observer: &Arc<Observer>,
        arrival: Arrival,
        headers: &HeaderMap,
        operation: &'static str,
        span: Option<&'static str>,
    ) -> Self {
        Self {
            observer: Arc::clone(observer),
            operation,
            dialect: None,
            caller: None,
            trail: Trail::new(headers, &arrival.invocation, span.map(spans::request)),
            arrival,
            is_written: false,
        }
    }

    pub(crate) fn set_caller(&mut self, dialect: &'static str, caller: &Caller) {
        self.dialect = Some(dialect);
        self.caller = match caller {
            Caller::Anyone => None,
            caller => Some(clip_name(&caller.to_string())),
        };
    }

    /// Logs the request as a list instead of a call, without a span or metrics: for protocols with
    /// one route for both.
    pub(crate) fn set_list(&mut self) {
        if self.trail.span.take().is_some() {
            self.operation = "list";
        }
    }

    /// Records the names that could be read from a rejected request.
    pub(crate) fn set_names(&mut self, headers: &HeaderMap, names: &RequestNames) {
        if let Some(name) = names.trace_id.as_deref() {
            self.set_trace(headers, Some(name));
        }
        self.trail.call_id = names.call_id.as_deref().map(clip_name);
        self.trail.requested_tool = names.tool.as_deref().map(clip_name);
    }

    /// Records the trace that a call names, or that the headers name.
    pub(crate) fn set_trace(&mut self, headers: &HeaderMap, name: Option<&str>) {
        let xray = self.arrival.invocation.xray.as_deref();
        let name = name.map(|it| clipped(it, LONGEST_SHOWN));
        self.trail.trace = Trace::of(headers, name.as_deref(), xray);
    }

    /// Discards the line, because the request is not worth logging.
    pub(crate) fn discard(&mut self) {
        self.is_written = true;
    }

    /// Writes the line of a list of tools. `failure` is the reason why the list could not be sent.
    pub(crate) fn write_list(&mut self, failure: Option<&str>) {
        let end = RequestEnd {
            outcome: failure.map_or("success", |_| "failure"),
            developer_message: failure.map(Cow::Borrowed),
            ..RequestEnd::default()
        };
        // Lists have neither a span nor metrics.
        self.write(&end);
    }

    /// Writes the line of a request about a task, of this tool, or the reason why there is none.
    pub(crate) fn write_task(
        &mut self,
        operation: &'static str,
        tool: Result<Option<ToolEntry>, (Reason, String)>,
    ) {
        self.operation = operation;
        match tool {
            Ok(tool) => {
                self.trail.requested_tool = tool.as_ref().map(|it| it.id.qualified().to_owned());
                self.trail.tool = tool;
                self.write_call(&CallSummary::default());
            }
            Err((reason, detail)) => self.write_rejection(reason, &detail, None),
        }
    }

    /// Writes the line of a call that was not rejected.
    pub(crate) fn write_call(&mut self, summary: &CallSummary<'_>) {
        let mut end = RequestEnd {
            outcome: "success",
            tool_ms: summary.duration.and_then(milliseconds),
            is_replay: summary.is_replay,
            ..RequestEnd::default()
        };
        match summary.failure.map(Failure::parts) {
            None => {}
            Some(_) if summary.is_task => end.outcome = "task",
            Some(parts) if parts.question.is_some() => end.outcome = "input_required",
            Some(parts) => {
                let detail = parts.developer_message.as_deref();
                end.outcome = "failure";
                end.reason = Some(parts.reason.as_str());
                end.can_retry = Some(parts.can_retry);
                // The message is for the caller, and often quotes the input.
                end.developer_message = detail.map(|it| clipped(it, LONGEST_MESSAGE));
            }
        }
        self.finish(&end);
    }

    /// Writes the line of a rejected request, with its invalid parameters, if any.
    pub(crate) fn write_rejection(
        &mut self,
        reason: Reason,
        detail: &str,
        errors: Option<&ParameterErrors>,
    ) {
        let mut message = detail.to_owned();
        if let (Some(errors), Some(tool)) = (errors, &self.trail.tool) {
            message += &parameter_names(errors, &tool.tool.input);
        }
        let end = RequestEnd {
            outcome: "rejection",
            reason: Some(reason.as_str()),
            invalid_parameters: errors.map_or(0, ParameterErrors::len),
            developer_message: Some(clipped(&message, LONGEST_MESSAGE)),
            ..RequestEnd::default()
        };
        self.finish(&end);
    }

    /// Writes the line of a request for a call, counts it, and ends its span.
    fn finish(&mut self, end: &RequestEnd<'_>) {
        if self.is_written {
            return;
        }
        let elapsed = self.write(end);
        let is_result = end.outcome == "failure" && self.dialect.is_some_and(is_mcp);
        // The failure of a tool is a result of MCP, not an error.
        self.end_span(if is_result {
            Some("tool_error")
        } else {
            end.problem()
        });
        let Self {
            observer, trail, ..
        } = self;
        if let (Some(namespace), Some(_)) = (&observer.metrics, &trail.span) {
            let tool = trail.tool.as_ref().map(|tool| &tool.id);
            let now = observer.wall_clock.now();
            metrics::write(namespace, tool, end, elapsed, trail.cache, now);
        }
    }

    /// Writes a line: the same fields for all outcomes, at the level of the outcome. Returns the
    /// request's duration.
    fn write(&mut self, end: &RequestEnd<'_>) -> Duration {
        self.is_written = true;
        let now = self.observer.clock.instant();
        let (log, elapsed) = (&*self, now.saturating_duration_since(self.arrival.at));
        if end.problem().is_some() {
            write_line!(warn, log, end, elapsed);
        } else {
            write_line!(info, log, end, elapsed);
        }
        elapsed
    }

    fn end_span(&self, error_type: Option<&str>) {
        let Self { trail, arrival, .. } = self;
        let span = trail.span.as_ref();
        if let Some(span) = span.filter(|span| !span.is_disabled()) {
            if !trail.has_joined_trace {
                otlp::join_trace(span, &trail.trace);
            }
            span.record("call_id", trail.call_id.as_deref());
            span.record("trace_id", trail.trace.label());
            span.record("dialect", self.dialect);
            let request_id = arrival.invocation.request_id.as_deref();
            span.record("faas.invocation_id", request_id);
            span.record("faas.coldstart", arrival.invocation.is_cold);
            if let Some(error_type) = error_type {
                spans::mark_failed(span, error_type);
            }
            otlp::end(span);
        }
    }
}

impl Drop for RequestLog {
    fn drop(&mut self) {
        let end = RequestEnd {
            outcome: "abandoned",
            developer_message: Some("The request was dropped before it was answered.".into()),
            ..RequestEnd::default()
        };
        self.finish(&end);
    }
}

/// The outcome of a call that was not rejected, for the log.
#[derive(Default)]
pub(crate) struct CallSummary<'a> {
    /// The time the tool ran for this call; `None` if it did not.
    pub(crate) duration: Option<Duration>,
    pub(crate) failure: Option<&'a Failure>,
    pub(crate) is_replay: bool,
    /// True if the call goes on, whatever its failure says.
    pub(crate) is_task: bool,
}

/// Returns the names of the tool's parameters that are invalid. Other names, and those below a
/// parameter, come from the caller and are only counted.
fn parameter_names(errors: &ParameterErrors, input: &Schema) -> String {
    let declared = schema::declared_properties(input.value());
    let declared_name = |path: &str| {
        declared.iter().copied().find(|name| {
            let rest = path.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    };
    let mut names = Vec::new();
    let mut undeclared = 0;
    for path in errors.keys() {
        match declared_name(path) {
            Some(name) if names.contains(&name) => {}
            Some(name) => names.push(name),
            None if path == "input" => names.push("the input as a whole"),
            None => undeclared += 1,
        }
    }
    let and = if names.is_empty() { "" } else { "and " };
    let others = format!("{and}{undeclared} that the tool does not declare");
    names.extend((undeclared > 0).then_some(&*others));
    format!(": {}", names.join(", "))
}

fn is_mcp(dialect: &str) -> bool {
    dialect.starts_with("mcp")
}

fn milliseconds(duration: Duration) -> Option<f64> {
    text::milliseconds(duration).as_f64()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn names_of(paths: &[&str], input: Value) -> String {
        let errors = paths.iter().map(|path| ((*path).to_owned(), String::new()));
        parameter_names(&errors.collect(), &Schema::from_value(input))
    }

    #[test]
    fn parameters_that_the_tool_does_not_declare_are_counted() {
        let schema = || json!({"properties": {"a": {}, "b": {}}});
        for (paths, text) in [
            (&["a", "b[0].c"][..], ": a, b"),
            (
                &["a.x", "a.y", "ab"],
                ": a, and 1 that the tool does not declare",
            ),
            (&["x", "y"], ": 2 that the tool does not declare"),
            (&["input"], ": the input as a whole"),
        ] {
            assert_eq!(names_of(paths, schema()), text);
        }
        let branches = json!({"oneOf": [schema(), {"properties": {"input": {}}}]});
        assert_eq!(names_of(&["b", "input"], branches), ": b, input");
    }
}
