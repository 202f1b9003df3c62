//! How a request ended: its line is written, it is counted, its span ends.

use std::time::Duration;

use super::{LINES, Line};
use crate::{
    call::{Outcome, rejection::Rejection},
    observe::{
        metrics::{Counted, End},
        spans,
    },
    protocol::oxp,
    text::clipped,
    tool::schema::{ParameterErrors, Schema},
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
            tool = line.asked_for.as_deref(),
            version = line.version(),
            $($field = $value,)*
            duration_ms = milliseconds($took),
            dialect = line.dialect,
            caller = line.caller.as_deref(),
            trace_id = line.trace.label(),
            trace = line.trace.id_beside_label(),
            requestId = line.invocation.request_id.as_deref(),
            cold_start = line.invocation.is_cold.then_some(true),
            "{}",
            line.what
        )
    }};
}

impl Line {
    /// Tools that were listed, or why not.
    pub(crate) fn listed(mut self, refused: Option<&str>) {
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

    /// A request of which nobody wants to know that it was answered.
    pub(crate) fn needless(mut self) {
        self.is_written = true;
    }

    fn written(&mut self) -> &Self {
        self.is_written = true;
        self
    }

    fn took(&self) -> Duration {
        let now = self.app.host.instant();
        now.saturating_duration_since(self.begun)
    }

    /// A call whose tool ran, now or before.
    pub(crate) fn outcome(mut self, outcome: &Outcome) {
        let line = self.written();
        let took = line.took();
        let call_id = line.call_id.as_deref();
        let tool_ms = outcome.has_run.then(|| milliseconds(outcome.duration));
        let replayed = outcome.is_replay.then_some(true);
        let end = match &outcome.result {
            Ok(_) => {
                line!(
                    info,
                    line,
                    took,
                    outcome = "success",
                    call_id = call_id,
                    tool_ms = tool_ms,
                    replayed = replayed,
                );
                End::Success
            }
            Err(failure) => {
                let why = failure.parts().developer_message.as_deref();
                let why = why.unwrap_or_else(|| failure.message());
                line!(
                    warn,
                    line,
                    took,
                    outcome = "failure",
                    reason = failure.parts().reason,
                    call_id = call_id,
                    tool_ms = tool_ms,
                    replayed = replayed,
                    can_retry = failure.parts().can_retry,
                    developer_message = &*clipped(why, LONGEST_MESSAGE),
                );
                End::Failure
            }
        };
        let failure = outcome.result.as_ref().err();
        line.ended(failure.map(|failure| failure.parts().reason));
        let end = if outcome.is_replay { End::Replay } else { end };
        line.count(end, took);
    }

    /// A request that reached no tool.
    pub(crate) fn rejection(mut self, rejection: &Rejection) {
        let line = self.written();
        let took = line.took();
        let reason = rejection.reason();
        line!(
            warn,
            line,
            took,
            outcome = "rejection",
            reason = reason,
            call_id = line.call_id.as_deref(),
            developer_message = line.why(rejection),
        );
        let parameters = match rejection {
            Rejection::InvalidInput(errors) => errors.len(),
            _ => 0,
        };
        line.ended(Some(reason));
        line.count(End::Rejection { reason, parameters }, took);
    }

    fn why(&self, rejection: &Rejection) -> String {
        let mut why = detail_of(rejection);
        if let (Rejection::InvalidInput(errors), Some(tool)) = (rejection, &self.tool) {
            why += &names_of(errors, &tool.tool.input);
        }
        clipped(&why, LONGEST_MESSAGE).into_owned()
    }

    fn version(&self) -> Option<String> {
        let asked = || self.asked_version.as_ref();
        let found = self.tool.as_ref().map(|tool| tool.id.version());
        found.or_else(asked).map(ToString::to_string)
    }

    fn ended(&self, error: Option<&str>) {
        if let Some(span) = self.span.as_ref().filter(|span| !span.is_disabled()) {
            if !self.is_placed {
                spans::place(span, &self.trace);
            }
            span.record("call_id", self.call_id.as_deref());
            span.record("trace_id", self.trace.label());
            span.record("dialect", self.dialect);
            span.record("faas.invocation_id", self.invocation.request_id.as_deref());
            span.record("faas.coldstart", self.invocation.is_cold);
            if let Some(why) = error {
                spans::failed(span, why);
            }
            spans::end(span);
        }
    }

    fn count(&self, end: End, took: Duration) {
        let metrics = self.app.metrics.as_ref();
        let Some(metrics) = metrics.filter(|_| self.span.is_some()) else {
            return;
        };
        let counted = Counted {
            tool: self.tool.as_ref().map(|tool| &tool.id),
            end,
            took,
            cache: self.cache,
        };
        metrics.count(&counted, self.app.guard.now());
    }
}

impl Drop for Line {
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
            call_id = line.call_id.as_deref(),
            developer_message = "The request was dropped before it was answered.",
        );
        line.ended(Some("abandoned"));
        line.count(End::Abandoned, took);
    }
}

/// The line of a request whose body cannot be decoded, and of which nothing else is known.
pub(crate) fn undecodable(rejection: &Rejection) {
    tracing::warn!(
        target: LINES,
        outcome = "rejection",
        reason = rejection.reason(),
        duration_ms = 0.0,
        developer_message = detail_of(rejection),
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

fn detail_of(rejection: &Rejection) -> String {
    match rejection {
        Rejection::Unauthenticated(why) => (*why).to_owned(),
        other => oxp::detail_of(other),
    }
}

fn milliseconds(duration: Duration) -> Option<f64> {
    crate::text::milliseconds(duration).as_f64()
}
