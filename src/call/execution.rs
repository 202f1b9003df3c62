//! One call while it is carried out: who calls which tool, under which id, and how much time is left.

use std::{sync::Arc, time::Duration};

use super::{DEFAULT_TIMEOUT, Engine};
use crate::{
    Caller, arrival::Arrival, clock::Clock, observe::spans::Spans, tool::toolkit::SelectedTool,
};

/// Longer than anything lets a call run; more would not be a point in time.
const LONGEST_TIMEOUT: Duration = Duration::from_hours(24);

/// What every stage of a call knows.
pub(super) struct Execution {
    pub(super) engine: Arc<Engine>,
    pub(super) entry: SelectedTool,
    pub(super) id: CallId,
    pub(super) arrival: Arrival,
    pub(super) caller: Caller,
    /// What the call leads to is in them.
    pub(super) spans: Spans,
}

impl Execution {
    /// How long the call may still take: its tool's limit, counted from its arrival, and no longer
    /// than the platform waits.
    pub(super) fn time_left(&self) -> Duration {
        let clock = &self.engine.clock;
        let limit = self.entry.tool.timeout.unwrap_or(DEFAULT_TIMEOUT);
        let since = clock.instant().saturating_duration_since(self.arrival.at);
        let limit = limit.min(LONGEST_TIMEOUT).saturating_sub(since);
        let left = self.arrival.invocation.time_left(clock.now());
        left.map_or(limit, |left| left.min(limit))
    }
}

/// The id of a call: the client's, or one that is made for it.
pub(super) struct CallId {
    text: String,
    /// Whether the client chose it: only then can the same call come again.
    is_given: bool,
}

impl CallId {
    pub(super) fn of(given: Option<String>, clock: &Clock) -> Self {
        let is_given = given.is_some();
        let text = given.unwrap_or_else(|| clock.id().to_string());
        Self { text, is_given }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn into_string(self) -> String {
        self.text
    }

    /// The id, if the client chose it.
    pub(super) fn given(&self) -> Option<&str> {
        self.is_given.then_some(&*self.text)
    }
}
