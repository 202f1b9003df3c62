//! What a request leaves behind: a line in the log, metrics, a span.
//!
//! The same for every protocol. The line's fields and the metrics are in `docs/operations.md`,
//! which a test compares with what is printed; inputs, outputs, tokens and secrets are in none.

mod end;

use std::{sync::Arc, time::Duration};

use http::HeaderMap;

use super::{
    metrics::Metrics,
    spans,
    trace::Trace,
    trail::{Trail, chosen},
};
use crate::{
    Caller,
    arrival::Arrival,
    clock::Clock,
    text::{LONGEST_SHOWN, clipped},
};

pub(crate) use end::{CallSummary, undecodable};

/// The target of the lines of requests.
pub(crate) const LINES: &str = "lambda_tools::request";

/// What requests are measured with, and where their metrics go.
pub(crate) struct Observer {
    /// By which durations are measured.
    pub(crate) clock: Clock,
    /// By which metrics are dated: never one that stands still for a recording.
    pub(crate) credential_clock: Clock,
    /// Where metrics are wanted.
    pub(crate) metrics: Option<Metrics>,
}

/// What is known of a request while it is answered. One that is dropped without having been
/// written says so itself.
pub(crate) struct RequestLog {
    observer: Arc<Observer>,
    /// What is asked for, in a word.
    what: &'static str,
    arrival: Arrival,
    dialect: Option<&'static str>,
    caller: Option<String>,
    pub(crate) trail: Trail,
    is_written: bool,
}

/// How a request calls what it asks for, as far as it could be read.
#[derive(Default)]
pub(crate) struct RequestedTool {
    pub(crate) tool: Option<String>,
    pub(crate) call_id: Option<String>,
    pub(crate) trace_id: Option<String>,
}

impl RequestLog {
    /// `span` is the name of the span of a call, which is counted as well.
    pub(crate) fn begin(
        observer: &Arc<Observer>,
        arrival: Arrival,
        headers: &HeaderMap,
        what: &'static str,
        span: Option<&'static str>,
    ) -> Self {
        Self {
            observer: Arc::clone(observer),
            what,
            dialect: None,
            caller: None,
            trail: Trail::new(headers, &arrival.invocation, span.map(spans::request)),
            arrival,
            is_written: false,
        }
    }

    pub(crate) fn named(&mut self, dialect: &'static str, caller: &Caller) {
        self.dialect = Some(dialect);
        self.caller = match caller {
            Caller::Anyone => None,
            named => Some(chosen(&named.to_string())),
        };
    }

    /// Notes what could be read of a request that is refused.
    pub(crate) fn note(&mut self, headers: &HeaderMap, names: &RequestedTool) {
        self.traced(headers, names.trace_id.as_deref());
        self.trail.call_id = names.call_id.as_deref().map(chosen);
        self.trail.asked_for = names.tool.as_deref().map(chosen);
    }

    /// Notes the trace that a call names.
    pub(crate) fn traced(&mut self, headers: &HeaderMap, named: Option<&str>) {
        if let Some(named) = named {
            let xray = self.arrival.invocation.xray.as_deref();
            self.trail.trace = Trace::of(headers, Some(&clipped(named, LONGEST_SHOWN)), xray);
        }
    }

    /// A request of which nobody wants to know that it was answered.
    pub(crate) fn discard(&mut self) {
        self.is_written = true;
    }

    fn took(&self) -> Duration {
        let now = self.observer.clock.instant();
        now.saturating_duration_since(self.arrival.at)
    }
}
