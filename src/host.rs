//! What comes from outside of a call: the time and randomness.
//!
//! They are values, so that a recorded event has exactly one right answer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant, SystemTime},
};

use http::Extensions;
use uuid::Uuid;

use crate::Caller;

/// Where the time and new ids come from.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    wall: fn() -> SystemTime,
    instant: fn() -> Instant,
    id: fn() -> Uuid,
    /// How far a test has moved the clock, in milliseconds.
    moved: Option<Arc<AtomicU64>>,
}

impl Host {
    pub(crate) const fn new(
        wall: fn() -> SystemTime,
        instant: fn() -> Instant,
        id: fn() -> Uuid,
    ) -> Self {
        Self {
            wall,
            instant,
            id,
            moved: None,
        }
    }

    /// The same with a clock that can be moved, by this many milliseconds.
    pub(crate) fn movable(self, moved: &Arc<AtomicU64>) -> Self {
        let moved = Some(Arc::clone(moved));
        Self { moved, ..self }
    }

    /// The time of day.
    pub(crate) fn now(&self) -> SystemTime {
        (self.wall)() + self.moved()
    }

    /// A clock that only goes forward, for durations.
    pub(crate) fn instant(&self) -> Instant {
        (self.instant)() + self.moved()
    }

    /// A new unique id.
    pub(crate) fn id(&self) -> Uuid {
        (self.id)()
    }

    fn moved(&self) -> Duration {
        let moved = self.moved.as_ref();
        moved.map_or(Duration::ZERO, |it| Duration::from_millis(it.load(Relaxed)))
    }
}

/// What the platform takes at most, request or answer: Lambda's quota for the payload of a
/// synchronous invocation, in bytes.
pub(crate) const LARGEST_PAYLOAD: usize = 6_291_556;

/// When a request arrived, and when it has to be answered.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Instant,
    pub(crate) invocation: Invocation,
}

/// What is known of the invocation that a request came with. Travels in the request's extensions.
#[derive(Clone, Debug)]
pub(crate) struct Invocation {
    /// When the platform stops waiting for the answer.
    pub(crate) deadline: Option<SystemTime>,
    /// How many bytes the answer may have on its way back.
    pub(crate) largest_answer: usize,
    /// The URL under which the server is reached, where the platform says so.
    pub(crate) base_url: Option<String>,
    /// Lambda's id of the invocation.
    pub(crate) request_id: Option<Arc<str>>,
    /// X-Ray's header, as Lambda hands it over.
    pub(crate) xray: Option<Arc<str>>,
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

impl Invocation {
    pub(crate) fn of(request: &Extensions) -> Self {
        request.get().cloned().unwrap_or_default()
    }

    /// How long the call may take from `now` on, so that its answer still leaves in time.
    pub(crate) fn time_left(&self, now: SystemTime) -> Option<Duration> {
        /// For encoding the answer and handing it to the platform.
        const MARGIN: Duration = Duration::from_millis(300);
        let left = self.deadline?.duration_since(now).unwrap_or_default();
        Some(left.saturating_sub(MARGIN))
    }
}
