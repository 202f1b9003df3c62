//! How a request ended: its line is written, it is counted, its span ends.

use std::time::Duration;

use super::{LINES, RequestLog};
use crate::{
    Failure,
    observe::{
        metrics::{RequestEnd, RequestMetrics},
        spans,
    },
    text::{self, clipped},
    tool::{
        reason::Reason,
        schema::{ParameterErrors, Schema},
    },
};

/// The longest text of a tool's choice. `CloudWatch` splits lines of a megabyte, which are no JSON
/// then.
const LONGEST_MESSAGE: usize = 4096;

/// One line for all outcomes, each on its level.
macro_rules! line {
    ($level:ident, $line:expr, $took:expr, $($field:ident = $value:expr),* $(,)?) => {{
        let line = $line;
        tracing::$level!(
            target: LINES,
            tool = line.trail.asked_for.as_deref(),
            version = line.trail.version(),
            $($field = $value,)*
            duration_ms = milliseconds($took),
            dialect = line.dialect,
            caller = line.caller.as_deref(),
            trace_id = line.trail.trace.label(),
            trace = line.trail.trace.id_beside_label(),
            requestId = line.arrival.invocation.request_id.as_deref(),
            cold_start = line.arrival.invocation.is_cold.then_some(true),
            "{}",
            line.what
        )
    }};
}

impl RequestLog {
    /// Tools that were listed, or why not.
    pub(crate) fn listed(&mut self, refused: Option<&str>) {
        let line = self.written();
        let took = line.took();
        match refused {
            None => line!(info, line, took, outcome = "success"),
            Some(why) => line!(
                warn,
                line,
                took,
                outcome = "failure",
                developer_message = why
            ),
        }
    }

    fn written(&mut self) -> &Self {
        self.is_written = true;
        self
    }

    /// A call whose tool ran, now or before.
    pub(crate) fn answered(&mut self, answered: &CallSummary<'_>) {
        let line = self.written();
        let took = line.took();
        let call_id = line.trail.call_id.as_deref();
        let tool_ms = answered.duration.map(milliseconds);
        let replayed = answered.is_replay.then_some(true);
        let end = match answered.failure {
            None => {
                line!(
                    info,
                    line,
                    took,
                    outcome = "success",
                    call_id = call_id,
                    tool_ms = tool_ms,
                    replayed = replayed,
                );
                RequestEnd::Success
            }
            Some(failure) => {
                let why = failure.parts().developer_message.as_deref();
                let why = why.unwrap_or_else(|| failure.message());
                line!(
                    warn,
                    line,
                    took,
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
        line.ended(
            answered
                .failure
                .map(|failure| failure.parts().reason.as_str()),
        );
        line.count(
            if answered.is_replay {
                RequestEnd::Replay
            } else {
                end
            },
            took,
        );
    }

    /// A request that reached no tool, and the parameters that are wrong.
    pub(crate) fn rejected(
        &mut self,
        reason: Reason,
        detail: &str,
        errors: Option<&ParameterErrors>,
    ) {
        let line = self.written();
        let took = line.took();
        line!(
            warn,
            line,
            took,
            outcome = "rejection",
            reason = reason.as_str(),
            call_id = line.trail.call_id.as_deref(),
            developer_message = line.why(detail, errors),
        );
        let parameters = errors.map_or(0, ParameterErrors::len);
        line.ended(Some(reason.as_str()));
        line.count(RequestEnd::Rejection { reason, parameters }, took);
    }

    fn why(&self, detail: &str, errors: Option<&ParameterErrors>) -> String {
        let mut why = detail.to_owned();
        if let (Some(errors), Some(tool)) = (errors, &self.trail.tool) {
            why += &names_of(errors, &tool.tool.input);
        }
        clipped(&why, LONGEST_MESSAGE).into_owned()
    }

    fn ended(&self, error: Option<&str>) {
        let Self { trail, arrival, .. } = self;
        let span = trail.span.as_ref();
        if let Some(span) = span.filter(|span| !span.is_disabled()) {
            if !trail.is_placed {
                spans::place(span, &trail.trace);
            }
            span.record("call_id", trail.call_id.as_deref());
            span.record("trace_id", trail.trace.label());
            span.record("dialect", self.dialect);
            let request_id = arrival.invocation.request_id.as_deref();
            span.record("faas.invocation_id", request_id);
            span.record("faas.coldstart", arrival.invocation.is_cold);
            if let Some(why) = error {
                spans::failed(span, why);
            }
            spans::end(span);
        }
    }

    fn count(&self, end: RequestEnd, took: Duration) {
        let metrics = self.observer.metrics.as_ref();
        let Some(metrics) = metrics.filter(|_| self.trail.span.is_some()) else {
            return;
        };
        let counted = RequestMetrics {
            tool: self.trail.tool.as_ref().map(|tool| &tool.id),
            end,
            took,
            cache: self.trail.cache,
        };
        metrics.count(&counted, self.observer.credential_clock.now());
    }
}

impl Drop for RequestLog {
    fn drop(&mut self) {
        if self.is_written {
            return;
        }
        let line = self.written();
        let took = line.took();
        line!(
            warn,
            line,
            took,
            outcome = "abandoned",
            call_id = line.trail.call_id.as_deref(),
            developer_message = "The request was dropped before it was answered.",
        );
        line.ended(Some("abandoned"));
        line.count(RequestEnd::Abandoned, took);
    }
}

/// What came of a call whose tool ran.
pub(crate) struct CallSummary<'a> {
    /// How long the tool ran for this call; none if it did not.
    pub(crate) duration: Option<Duration>,
    pub(crate) failure: Option<&'a Failure>,
    pub(crate) is_replay: bool,
}

/// The line of a request whose body cannot be decoded, and of which nothing else is known.
pub(crate) fn undecodable(reason: Reason, detail: &str) {
    tracing::warn!(
        target: LINES,
        outcome = "rejection",
        reason = reason.as_str(),
        duration_ms = 0.0,
        developer_message = detail,
        "call"
    );
}

/// The tool's parameters among what is wrong. Other names, and what stands below a parameter, are
/// of the caller's making.
fn names_of(errors: &ParameterErrors, input: &Schema) -> String {
    let properties = input.value()["properties"].as_object();
    let of_tool = |path: &str| {
        properties?.keys().find(|name| {
            let rest = path.strip_prefix(name.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    };
    let mut names: Vec<&str> = Vec::new();
    let mut others = 0;
    for path in errors.keys() {
        match of_tool(path) {
            Some(name) if names.contains(&&**name) => {}
            Some(name) => names.push(name),
            None => others += 1,
        }
    }
    let others = (others > 0).then(|| format!("others: {others}"));
    names.extend(others.as_deref());
    format!(": {}", names.join(", "))
}

fn milliseconds(duration: Duration) -> Option<f64> {
    text::milliseconds(duration).as_f64()
}
