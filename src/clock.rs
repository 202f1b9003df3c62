//! What comes from outside of a call: the time and randomness.
//!
//! They are values, so that a recorded event has exactly one right answer.

use std::{
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant, SystemTime},
};

use uuid::Uuid;

/// Where the time and new ids come from.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    wall: fn() -> SystemTime,
    instant: fn() -> Instant,
    id: fn() -> Uuid,
    /// How far a test has moved the clock, in milliseconds.
    moved: Option<Arc<AtomicU64>>,
}

impl Clock {
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

/// The clock and the randomness of the machine.
pub(crate) const REAL: Clock = Clock::new(SystemTime::now, Instant::now, Uuid::new_v4);

/// 5 October 2023, 12:00:00 UTC: the time in the specification's examples.
const FIXED_NOW: Duration = Duration::from_hours(471_252);
pub(crate) const FIXED_ID: Uuid = Uuid::from_u128(0x0000_0000_0000_4000_8000_0000_0000_0000);

/// A host on which no time passes.
pub(crate) const FIXED: Clock = Clock::new(
    || SystemTime::UNIX_EPOCH + FIXED_NOW,
    || {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        *START
    },
    || FIXED_ID,
);
