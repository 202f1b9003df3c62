//! What a request leaves behind: a line in the log, metrics, a span.
//!
//! The same for every protocol. The line's fields and the metrics are in `docs/operations.md`,
//! which a test compares with what is printed; inputs, outputs, tokens and secrets are in none.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

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
    text::clipped,
    trace::{
        Trace,
        spans::{self, Spans},
    },
};

/// The target of the lines of requests.
pub(crate) const LINES: &str = "lambda_tools::request";

/// The longest text of a caller's choice, in bytes: logs are paid for.
pub(crate) const LONGEST: usize = 256;

/// The longest text of a tool's choice. `CloudWatch` splits lines of a megabyte, which are no JSON
/// then.
const LONGEST_MESSAGE: usize = 4096;

/// What is known of a request while it is answered. One that is dropped without having been
/// written says so itself.
pub(crate) struct Line {
    app: Arc<App>,
    /// What is asked for, in a word.
    what: &'static str,
    begun: Instant,
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
    /// Whether the span is in its trace.
    is_placed: bool,
    is_written: bool,
}

/// How a request calls what it asks for, as far as it could be read.
#[derive(Default)]
pub(super) struct Names {
    pub(super) tool: Option<String>,
    pub(super) call_id: Option<String>,
    pub(super) trace_id: Option<String>,
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
            trace = line.trace.id_beside_label(),
            requestId = line.invocation.request_id.as_deref(),
            cold_start = line.invocation.is_cold.then_some(true),
            "{}",
            line.what
        )
    }};
}

impl Line {
    pub(super) fn of(app: &Arc<App>, request: &Request, what: &'static str) -> Self {
        let invocation = Invocation::of(request.extensions());
        Self {
            app: Arc::clone(app),
            what,
            begun: app.host.instant(),
            trace: Trace::of(request.headers(), None, invocation.xray.as_deref()),
            invocation,
            dialect: None,
            caller: None,
            call_id: None,
            asked_for: None,
            asked_version: None,
            tool: None,
            cache: CacheUse::default(),
            span: None,
            is_placed: false,
            is_written: false,
        }
    }

    /// The same for a call, which is counted, and has a span of this name.
    pub(super) fn of_call(app: &Arc<App>, request: &Request, name: &'static str) -> Self {
        let mut line = Self::of(app, request, "call");
        line.span = Some(spans::request(name));
        line
    }

    pub(super) fn named(&mut self, dialect: &'static str, caller: &Caller) {
        self.dialect = Some(dialect);
        self.caller = match caller {
            Caller::Anyone => None,
            named => Some(chosen(&named.to_string())),
        };
    }

    /// Notes what could be read of a request that is refused.
    pub(super) fn named_itself(&mut self, headers: &HeaderMap, names: &Names) {
        self.traced(headers, names.trace_id.as_deref());
        self.call_id = names.call_id.as_deref().map(chosen);
        self.asked_for = names.tool.as_deref().map(chosen);
    }

    fn traced(&mut self, headers: &HeaderMap, named: Option<&str>) {
        if let Some(named) = named {
            let xray = self.invocation.xray.as_deref();
            self.trace = Trace::of(headers, Some(&clipped(named, LONGEST)), xray);
        }
    }

    /// Notes what is asked for; returns the spans that what it leads to belongs to.
    pub(super) fn asked(&mut self, headers: &HeaderMap, call: &mut Call) -> Spans {
        self.traced(headers, call.trace_id.as_deref());
        if call.call_id.is_none() {
            call.made_id = Some(self.app.host.id().to_string());
        }
        let call_id = call.call_id.as_ref().or(call.made_id.as_ref());
        self.call_id = call_id.map(|id| chosen(id));
        self.asked_for = Some(chosen(&call.selector.qualified));
        self.asked_version.clone_from(&call.selector.version);
        let request = self.span.clone().unwrap_or_else(Span::none);
        spans::place(&request, &self.trace);
        self.is_placed = true;
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
    pub(super) fn listed(mut self, refused: Option<&str>) {
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
    pub(super) fn needless(mut self) {
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

    fn version(&self) -> Option<String> {
        let asked = || self.asked_version.as_ref();
        let found = self.tool.as_ref().map(ToolId::version);
        found.or_else(asked).map(ToString::to_string)
    }
}

impl Line {
    /// A call whose tool ran, now or before.
    pub(super) fn outcome(mut self, outcome: &Outcome) {
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
                    call_id = call_id,
                    tool_ms = tool_ms,
                    replayed = replayed,
                    can_retry = failure.parts().can_retry,
                    developer_message = &*clipped(why, LONGEST_MESSAGE),
                );
                End::Failure
            }
        };
        line.ended(match end {
            End::Failure => Some("failure"),
            _ => None,
        });
        let end = if outcome.is_replay { End::Replay } else { end };
        line.count(end, took);
    }

    /// A request that reached no tool.
    pub(super) fn rejection(mut self, rejection: &Rejection) {
        let line = self.written();
        let took = line.took();
        let why = detail_of(rejection);
        line!(
            warn,
            line,
            took,
            outcome = "rejection",
            reason = rejection.reason(),
            call_id = line.call_id.as_deref(),
            developer_message = &*clipped(&why, LONGEST_MESSAGE),
        );
        let parameters = match rejection {
            Rejection::InvalidInput(errors) => errors.len(),
            _ => 0,
        };
        let reason = rejection.reason();
        line.ended(Some(reason));
        line.count(End::Rejection { reason, parameters }, took);
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
            tool: self.tool.as_ref(),
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
pub(super) fn undecodable(rejection: &Rejection) {
    tracing::warn!(
        target: LINES,
        outcome = "rejection",
        reason = rejection.reason(),
        duration_ms = 0.0,
        developer_message = detail_of(rejection),
        "call"
    );
}

fn detail_of(rejection: &Rejection) -> String {
    match rejection {
        Rejection::Unauthenticated(why) => (*why).to_owned(),
        other => oxp::detail_of(other),
    }
}

/// What callers choose.
fn chosen(text: &str) -> String {
    clipped(text, LONGEST).into_owned()
}

fn milliseconds(duration: Duration) -> Option<f64> {
    oxp::milliseconds(duration).as_f64()
}
