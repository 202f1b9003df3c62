//! When and how a request arrived: how much time is left for it, and what the platform says of it.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use http::Extensions;

use crate::{Caller, payload::LARGEST_PAYLOAD};

/// When a request arrived, and in which invocation.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Instant,
    pub(crate) invocation: Arc<Invocation>,
}

impl Arrival {
    /// `at` is now; the invocation travels in the request's extensions.
    pub(crate) fn new(at: Instant, request: &Extensions) -> Self {
        let invocation = request.get::<Arc<Invocation>>().cloned();
        Self {
            at,
            invocation: invocation.unwrap_or_default(),
        }
    }
}

/// The invocation of the function that a request came with, as the platform describes it.
#[derive(Debug)]
pub(crate) struct Invocation {
    /// When the platform stops waiting for the answer.
    pub(crate) deadline: Option<SystemTime>,
    /// How many bytes the answer may have on its way back.
    pub(crate) largest_answer: usize,
    /// The URL under which the server is reached, where the platform says so.
    #[cfg_attr(
        not(feature = "oauth"),
        expect(dead_code, reason = "challenges are there")
    )]
    pub(crate) base_url: Option<String>,
    /// Lambda's id of the invocation.
    pub(crate) request_id: Option<String>,
    /// X-Ray's header, as Lambda hands it over.
    pub(crate) xray: Option<String>,
    /// Whether somebody has waited for the process to start.
    pub(crate) is_cold: bool,
    /// Whom the platform has let through, where it has asked.
    pub(crate) caller: Option<Caller>,
}

impl Default for Invocation {
    fn default() -> Self {
        Self {
            deadline: None,
            largest_answer: LARGEST_PAYLOAD,
            base_url: None,
            request_id: None,
            xray: None,
            is_cold: false,
            caller: None,
        }
    }
}

/// For encoding the answer and handing it to the platform.
const MARGIN: Duration = Duration::from_millis(300);

impl Invocation {
    /// How long the call may take from `now` on, so that its answer still leaves in time.
    pub(crate) fn time_left(&self, now: SystemTime) -> Option<Duration> {
        let left = self.deadline?.duration_since(now).unwrap_or_default();
        Some(left.saturating_sub(MARGIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_states_the_margin() {
        let page = include_str!("../docs/operations.md");
        let stated = format!("stopped {} seconds before", MARGIN.as_secs_f64());
        assert!(page.contains(&stated), "{stated}");
    }
}
