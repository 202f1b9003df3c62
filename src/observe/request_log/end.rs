//! The end of a request: writes its line, counts it, and ends its span.

use std::time::Duration;

use super::{REQUEST_TARGET, RequestLog};
use crate::{
    Failure,
    observe::{
        metrics::{RequestEnd, RequestMetrics},
        spans,
    },
    text::{self, clipped},
    tool::{
        reason::Reason,
        schema::{self, ParameterErrors, Schema},
    },
};

/// The maximum length, in bytes, of text chosen by a tool. `CloudWatch` splits lines of a
/// megabyte, and the parts are not JSON.
const LONGEST_MESSAGE: usize = 4096;

/// Writes the line of a request: the same fields for all outcomes, at the level of the outcome.
macro_rules! write_line {
    ($level:ident, $log:expr, $elapsed:expr, $($field:ident = $value:expr),* $(,)?) => {{
        let log = $log;
        tracing::$level!(
            target: REQUEST_TARGET,
            tool = log.trail.requested_tool.as_deref(),
            version = log.trail.version(),
            $($field = $value,)*
            duration_ms = milliseconds($elapsed),
            dialect = log.dialect,
            caller = log.caller.as_deref(),
            trace_id = log.trail.trace.label(),
            trace = log.trail.trace.id_unless_label(),
            requestId = log.arrival.invocation.request_id.as_deref(),
            cold_start = log.arrival.invocation.is_cold.then_some(true),
            "{}",
            log.operation
        )
    }};
}

impl RequestLog {
    /// Writes the line of a list of tools. `failure` is the reason why the list could not be sent.
    pub(crate) fn write_list(&mut self, failure: Option<&str>) {
        let log = self.mark_written();
        let elapsed = log.elapsed();
        match failure {
            None => write_line!(info, log, elapsed, outcome = "success"),
            Some(why) => write_line!(
                warn,
                log,
                elapsed,
                outcome = "failure",
                developer_message = why
            ),
        }
    }

    fn mark_written(&mut self) -> &Self {
        self.is_written = true;
        self
    }

    /// Writes the line of a call that was not rejected.
    pub(crate) fn write_call(&mut self, summary: &CallSummary<'_>) {
        let log = self.mark_written();
        let elapsed = log.elapsed();
        let call_id = log.trail.call_id.as_deref();
        let tool_ms = summary.duration.map(milliseconds);
        let replayed = summary.is_replay.then_some(true);
        let is_failure = |it: &&Failure| it.parts().question.is_none();
        let failure = summary.failure.filter(is_failure);
        let end = match failure {
            None => {
                let asks = summary.failure.is_some();
                write_line!(
                    info,
                    log,
                    elapsed,
                    outcome = if asks { "input_required" } else { "success" },
                    call_id = call_id,
                    tool_ms = tool_ms,
                    replayed = replayed,
                );
                RequestEnd::Success
            }
            Some(failure) => {
                let why = failure.parts().developer_message.as_deref();
                let why = why.unwrap_or_else(|| failure.message());
                write_line!(
                    warn,
                    log,
                    elapsed,
                    outcome = "failure",
                    reason = failure.parts().reason.as_str(),
                    call_id = call_id,
                    tool_ms = tool_ms,
                    replayed = replayed,
                    can_retry = failure.parts().can_retry,
                    developer_message = &*clipped(why, LONGEST_MESSAGE),
                );
                RequestEnd::Failure
            }
        };
        log.end_span(failure.map(|it| it.parts().reason.as_str()));
        log.count(
            if summary.is_replay {
                RequestEnd::Replay
            } else {
                end
            },
            elapsed,
        );
    }

    /// Writes the line of a rejected request, with its invalid parameters, if any.
    pub(crate) fn write_rejection(
        &mut self,
        reason: Reason,
        detail: &str,
        errors: Option<&ParameterErrors>,
    ) {
        let log = self.mark_written();
        let elapsed = log.elapsed();
        write_line!(
            warn,
            log,
            elapsed,
            outcome = "rejection",
            reason = reason.as_str(),
            call_id = log.trail.call_id.as_deref(),
            developer_message = log.developer_message(detail, errors),
        );
        let parameters = errors.map_or(0, ParameterErrors::len);
        log.end_span(Some(reason.as_str()));
        log.count(RequestEnd::Rejection { reason, parameters }, elapsed);
    }

    fn developer_message(&self, detail: &str, errors: Option<&ParameterErrors>) -> String {
        let mut message = detail.to_owned();
        if let (Some(errors), Some(tool)) = (errors, &self.trail.tool) {
            message += &parameter_names(errors, &tool.tool.input);
        }
        clipped(&message, LONGEST_MESSAGE).into_owned()
    }

    fn end_span(&self, error_type: Option<&str>) {
        let Self { trail, arrival, .. } = self;
        let span = trail.span.as_ref();
        if let Some(span) = span.filter(|span| !span.is_disabled()) {
            if !trail.has_joined_trace {
                spans::join_trace(span, &trail.trace);
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
            spans::end(span);
        }
    }

    fn count(&self, end: RequestEnd, duration: Duration) {
        let metrics = self.observer.metrics.as_ref();
        let Some(metrics) = metrics.filter(|_| self.trail.span.is_some()) else {
            return;
        };
        let request = RequestMetrics {
            tool: self.trail.tool.as_ref().map(|tool| &tool.id),
            end,
            duration,
            cache: self.trail.cache,
        };
        metrics.count(&request, self.observer.credential_clock.now());
    }
}

impl Drop for RequestLog {
    fn drop(&mut self) {
        if self.is_written {
            return;
        }
        let log = self.mark_written();
        let elapsed = log.elapsed();
        write_line!(
            warn,
            log,
            elapsed,
            outcome = "abandoned",
            call_id = log.trail.call_id.as_deref(),
            developer_message = "The request was dropped before it was answered.",
        );
        log.end_span(Some("abandoned"));
        log.count(RequestEnd::Abandoned, elapsed);
    }
}

/// The outcome of a call that was not rejected, for the log.
pub(crate) struct CallSummary<'a> {
    /// The time the tool ran for this call; `None` if it did not.
    pub(crate) duration: Option<Duration>,
    pub(crate) failure: Option<&'a Failure>,
    pub(crate) is_replay: bool,
}

/// Logs a request whose body cannot be decoded; nothing else is known about it.
pub(crate) fn undecodable(reason: Reason, detail: &str) {
    tracing::warn!(
        target: REQUEST_TARGET,
        outcome = "rejection",
        reason = reason.as_str(),
        duration_ms = 0.0,
        developer_message = detail,
        "call"
    );
}

/// The names of the tool's parameters that are invalid. Other names, and those below a parameter,
/// come from the caller and are only counted.
fn parameter_names(errors: &ParameterErrors, input: &Schema) -> String {
    let declared = schema::declared_properties(input.value());
    let declared_name = |path: &str| {
        declared.iter().copied().find(|name| {
            let rest = path.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    };
    let mut names: Vec<&str> = Vec::new();
    let mut undeclared = 0;
    for path in errors.keys() {
        match declared_name(path) {
            Some(name) if names.contains(&name) => {}
            Some(name) => names.push(name),
            None if path == "input" => names.push("the input as a whole"),
            None => undeclared += 1,
        }
    }
    let undeclared = (undeclared > 0).then(|| match names.as_slice() {
        [] => format!("{undeclared} that the tool does not declare"),
        _ => format!("and {undeclared} that the tool does not declare"),
    });
    names.extend(undeclared.as_deref());
    format!(": {}", names.join(", "))
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
        let forms = json!({"oneOf": [schema(), {"properties": {"input": {}}}]});
        assert_eq!(names_of(&["b", "input"], forms), ": b, input");
    }
}
