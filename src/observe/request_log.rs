//! The log line, the metrics and the span of a request.
//!
//! They are the same for every protocol. `docs/operations.md` lists the line's fields and
//! `docs/monitoring.md` the metrics; tests compare both with the actual output. None of them
//! contains inputs, outputs, tokens or secrets, unless the tool itself wrote an input into the
//! `developer_message` of a failure.

mod end;

use std::{sync::Arc, time::Duration};

use http::HeaderMap;

use super::{
    metrics::Metrics,
    spans,
    trace::Trace,
    trail::{Trail, clip_name},
};
use crate::{
    Caller,
    arrival::Arrival,
    clock::Clock,
    text::{LONGEST_SHOWN, clipped},
};

pub(crate) use end::CallSummary;

/// The target of request lines.
pub(crate) const REQUEST_TARGET: &str = "lambda_tools::request";

/// The clocks that time requests, and the metrics of requests.
pub(crate) struct Observer {
    /// The clock that measures durations.
    pub(crate) clock: Clock,
    /// Timestamps metrics; never fixed for a recorded event.
    pub(crate) wall_clock: Clock,
    /// `None` if metrics are off.
    pub(crate) metrics: Option<Metrics>,
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

    fn elapsed(&self) -> Duration {
        let now = self.observer.clock.instant();
        now.saturating_duration_since(self.arrival.at)
    }
}
