//! What a request leaves behind: a line in the log, metrics, a span.
//!
//! The same for every protocol. The line's fields and the metrics are in `docs/operations.md`,
//! which a test compares with what is printed; inputs, outputs, tokens and secrets are in none.

use std::time::{Duration, Instant};

use axum::extract::Request;
use http::HeaderMap;
use semver::Version;
use tracing::Span;

use super::{App, oxp};
use crate::{
    Caller, ToolId,
    call::{Call, Outcome},
    host::Invocation,
    metrics::{CacheUse, Counted, End},
    rejection::Rejection,
    trace::{
        Trace,
        spans::{self, Spans},
    },
};

/// The target of the lines of requests.
pub(crate) const LINES: &str = "lambda_tools::request";

/// What is known of a request while it is answered.
#[derive(Default)]
pub(crate) struct Line {
    /// What is asked for, in a word.
    what: &'static str,
    begun: Option<Instant>,
    invocation: Invocation,
    dialect: Option<&'static str>,
    caller: Option<String>,
    call_id: Option<String>,
    trace: Trace,
    asked_for: Option<String>,
    asked_version: Option<Version>,
    /// The tool that was found.
    pub(super) tool: Option<ToolId>,
    /// The secrets that the tool needs from the store.
    pub(super) cache: CacheUse,
    span: Option<Span>,
}

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
            requestId = line.invocation.request_id.as_deref(),
            cold_start = line.invocation.is_cold.then_some(true),
            "{}",
            line.what
        )
    }};
}

impl Line {
    pub(super) fn of(app: &App, request: &Request, what: &'static str) -> Self {
        let invocation = Invocation::of(request.extensions());
        Self {
            what,
            begun: Some(app.host.instant()),
            trace: Trace::of(request.headers(), None, invocation.xray.as_deref()),
            invocation,
            ..Self::default()
        }
    }

    /// The same for a call, which is counted, and has a span of this name.
    pub(super) fn of_call(app: &App, request: &Request, name: &'static str) -> Self {
        let mut line = Self::of(app, request, "call");
        line.span = Some(spans::request(name));
        line
    }

    /// Of a request that cannot be looked at any closer.
    pub(super) fn of_nothing() -> Self {
        Self {
            what: "call",
            ..Self::default()
        }
    }

    pub(super) fn named(&mut self, dialect: &'static str, caller: &Caller) {
        self.dialect = Some(dialect);
        self.caller = match caller {
            Caller::Anyone => None,
            named => Some(clipped(&named.to_string())),
        };
    }

    /// Notes what is asked for; returns the spans that what it leads to belongs to.
    pub(super) fn asked(&mut self, headers: &HeaderMap, call: &mut Call, app: &App) -> Spans {
        if let Some(named) = &call.trace_id {
            let xray = self.invocation.xray.as_deref();
            self.trace = Trace::of(headers, Some(&clipped(named)), xray);
        }
        if call.call_id.is_none() {
            call.made_id = Some(app.host.id().to_string());
        }
        let call_id = call.call_id.as_ref().or(call.made_id.as_ref());
        self.call_id = call_id.map(|id| clipped(id));
        self.asked_for = Some(clipped(&call.selector.qualified));
        self.asked_version.clone_from(&call.selector.version);
        let request = self.span.clone().unwrap_or_else(Span::none);
        spans::place(&request, &self.trace);
        // Lines of tools show whose they are. On the level that only `off` leaves out.
        let call = tracing::error_span!(
            target: "lambda_tools::call",
            "call",
            requestId = self.invocation.request_id.as_deref(),
            call_id = self.call_id,
            trace_id = self.trace.label(),
            tool = self.asked_for,
        );
        Spans { request, call }
    }

    /// Tools that were listed, or why not.
    pub(super) fn listed(&self, app: &App, refused: Option<&str>) {
        let took = self.took(app);
        match refused {
            None => line!(info, self, took, outcome = "success"),
            Some(why) => line!(
                warn,
                self,
                took,
                outcome = "failure",
                developer_message = why
            ),
        }
    }

    fn took(&self, app: &App) -> Duration {
        let now = app.host.instant();
        self.begun
            .map_or(Duration::ZERO, |begun| now.saturating_duration_since(begun))
    }

    fn version(&self) -> Option<String> {
        let asked = || self.asked_version.as_ref();
        let found = self.tool.as_ref().map(ToolId::version);
        found.or_else(asked).map(ToString::to_string)
    }
}

impl Line {
    /// A call whose tool ran, now or before.
    pub(super) fn outcome(&self, app: &App, outcome: &Outcome) {
        let took = self.took(app);
        let call_id = self.call_id.as_deref();
        let tool_ms = outcome.has_run.then(|| milliseconds(outcome.duration));
        let replayed = outcome.is_replay.then_some(true);
        let end = match &outcome.result {
            Ok(_) => {
                line!(
                    info,
                    self,
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
                line!(
                    warn,
                    self,
                    took,
                    outcome = "failure",
                    call_id = call_id,
                    tool_ms = tool_ms,
                    replayed = replayed,
                    can_retry = failure.parts().can_retry,
                    developer_message = why.unwrap_or_else(|| failure.message()),
                );
                End::Failure
            }
        };
        self.ended(match end {
            End::Failure => Some("failure"),
            _ => None,
        });
        let end = if outcome.is_replay { End::Replay } else { end };
        self.count(app, end, took);
    }

    /// A request that reached no tool.
    pub(super) fn rejection(&self, app: &App, rejection: &Rejection) {
        let took = self.took(app);
        self.rejected(rejection, took);
        let parameters = match rejection {
            Rejection::InvalidInput(errors) => errors.len(),
            _ => 0,
        };
        let reason = rejection.reason();
        self.ended(Some(reason));
        self.count(app, End::Rejection { reason, parameters }, took);
    }

    pub(super) fn rejected(&self, rejection: &Rejection, took: Duration) {
        let why = match rejection {
            Rejection::Unauthenticated(why) => (*why).to_owned(),
            other => oxp::detail_of(other),
        };
        line!(
            warn,
            self,
            took,
            outcome = "rejection",
            reason = rejection.reason(),
            call_id = self.call_id.as_deref(),
            developer_message = why,
        );
    }

    fn ended(&self, error: Option<&str>) {
        if let Some(span) = self.span.as_ref().filter(|span| !span.is_disabled()) {
            if self.asked_for.is_none() {
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
        }
    }

    fn count(&self, app: &App, end: End, took: Duration) {
        let Some(metrics) = app.metrics.as_ref().filter(|_| self.span.is_some()) else {
            return;
        };
        let counted = Counted {
            tool: self.tool.as_ref(),
            end,
            took,
            cache: self.cache,
        };
        metrics.count(&counted, app.guard.now());
    }
}

/// What callers choose is of any length, and logs are paid for.
fn clipped(text: &str) -> String {
    const LONGEST: usize = 256;
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(LONGEST)])
}

fn milliseconds(duration: Duration) -> Option<f64> {
    oxp::milliseconds(duration).as_f64()
}
