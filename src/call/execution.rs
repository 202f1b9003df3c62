//! The execution of one call: its caller, tool, id and time limit.

use std::{sync::Arc, time::Duration};

use super::{Background, Engine};
use crate::{
    Caller, DEFAULT_TIMEOUT,
    arrival::Arrival,
    observe::spans::Spans,
    tool::{progress::Follower, toolkit::SelectedTool},
};

/// The maximum time limit of a tool: longer than any platform lets a call run. Adding a much longer
/// time to an `Instant` would overflow.
pub(super) const LONGEST_TIMEOUT: Duration = Duration::from_hours(24);

/// The time limit of a tool in the background that does not set its own: that of a function on
/// Lambda.
pub(super) const DEFAULT_LIMIT: Duration = Duration::from_mins(15);

/// The facts that every stage of a call needs.
pub(super) struct Execution {
    pub(super) engine: Arc<Engine>,
    pub(super) entry: SelectedTool,
    /// The call's id: the client's, or a generated one.
    pub(super) id: String,
    /// Only a call with an id from the client can be recognized when it is repeated.
    pub(super) has_client_id: bool,
    pub(super) arrival: Arrival,
    pub(super) caller: Caller,
    pub(super) background: Background,
    pub(super) follower: Option<Follower>,
    /// The spans that enclose the call.
    pub(super) spans: Spans,
}

impl Execution {
    /// Returns true if the call runs elsewhere, and not yet.
    pub(super) fn is_handed_over(&self) -> bool {
        matches!(self.background, Background::Elsewhere | Background::Task)
            && self.engine.hands_over(&self.entry.tool)
    }

    /// Returns the id under which the call is recorded, if it is.
    pub(super) fn recorded_id(&self) -> Option<&str> {
        (self.has_client_id || self.is_handed_over()).then_some(&*self.id)
    }

    /// Returns the time left for the call: its tool's limit, counted from the call's arrival, and
    /// no longer than the platform waits.
    pub(super) fn time_left(&self) -> Duration {
        let clock = &self.engine.clock;
        let default = match self.background {
            Background::Started(_) => DEFAULT_LIMIT,
            _ => DEFAULT_TIMEOUT,
        };
        let limit = self.entry.tool.timeout.unwrap_or(default);
        let elapsed = clock.instant().saturating_duration_since(self.arrival.at);
        let limit = limit.min(LONGEST_TIMEOUT).saturating_sub(elapsed);
        let left = self.arrival.invocation.time_left(clock.now());
        left.map_or(limit, |left| left.min(limit))
    }
}
