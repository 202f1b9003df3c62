//! The arrival of a request: its time, its deadline and the platform's information about it.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use http::Extensions;

use crate::{Caller, payload::LARGEST_PAYLOAD};

/// The time at which a request arrived, and the invocation that carried it.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Instant,
    pub(crate) invocation: Arc<Invocation>,
}

impl Arrival {
    /// Creates the arrival of a request at `at`, the current time. The invocation is in the
    /// request's extensions.
    pub(crate) fn new(at: Instant, request: &Extensions) -> Self {
        let invocation = request.get::<Arc<Invocation>>().cloned();
        Self {
            at,
            invocation: invocation.unwrap_or_default(),
        }
    }
}

/// The function invocation that carried a request, as described by the platform.
#[derive(Debug)]
pub(crate) struct Invocation {
    /// The time at which the platform stops waiting for the response.
    pub(crate) deadline: Option<SystemTime>,
    /// The maximum size of the response, in bytes.
    pub(crate) max_response_size: usize,
    /// True if the response may arrive in parts, while the call runs.
    pub(crate) streams: bool,
    /// The server's public URL, if the platform provides it.
    pub(crate) base_url: Option<String>,
    /// Lambda's id for the invocation.
    pub(crate) request_id: Option<String>,
    /// The X-Ray trace header from Lambda.
    pub(crate) xray: Option<String>,
    /// True if the caller had to wait for the process to start.
    pub(crate) is_cold: bool,
    /// The caller that the platform authenticated, if it checks credentials.
    pub(crate) caller: Option<Caller>,
    /// The same caller for a server that relies on the platform: the holder of a token, if the
    /// platform verified one.
    pub(crate) verified: Option<Caller>,
}

impl Default for Invocation {
    fn default() -> Self {
        Self {
            deadline: None,
            max_response_size: LARGEST_PAYLOAD,
            streams: false,
            base_url: None,
            request_id: None,
            xray: None,
            is_cold: false,
            caller: None,
            verified: None,
        }
    }
}

/// Time reserved for encoding the response and passing it to the platform.
const MARGIN: Duration = Duration::from_millis(300);

impl Invocation {
    /// Returns the time that a call has left at `now` for its response to be sent in time. `None`
    /// if there is no deadline.
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
        let page = include_str!("../docs/lambda.md");
        let stated = format!("stopped {} seconds before", MARGIN.as_secs_f64());
        assert!(page.contains(&stated), "{stated}");
    }
}
