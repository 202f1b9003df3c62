//! Clocks: the source of time and randomness.
//!
//! A clock is passed as a value: with a fixed clock, a recorded event has exactly one correct
//! response.

use std::{
    fmt,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant, SystemTime},
};

use uuid::Uuid;

/// The source of time and new ids.
#[derive(Clone)]
pub struct Clock {
    wall: Source<SystemTime>,
    instant: Source<Instant>,
    id: fn() -> Uuid,
    /// The offset that a test adds to the time, in milliseconds.
    offset: Option<Arc<AtomicU64>>,
}

/// What a clock reads. A function needs no allocation.
#[derive(Clone)]
enum Source<T> {
    Function(fn() -> T),
    Closure(Arc<dyn Fn() -> T + Send + Sync>),
}

impl<T> Source<T> {
    fn read(&self) -> T {
        match self {
            Self::Function(function) => function(),
            Self::Closure(closure) => closure(),
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

impl Clock {
    pub const fn new(wall: fn() -> SystemTime, instant: fn() -> Instant, id: fn() -> Uuid) -> Self {
        Self {
            wall: Source::Function(wall),
            instant: Source::Function(instant),
            id,
            offset: None,
        }
    }

    /// Returns a clock that reads the time from closures; its ids are random.
    pub fn of(
        wall: impl Fn() -> SystemTime + Send + Sync + 'static,
        instant: impl Fn() -> Instant + Send + Sync + 'static,
    ) -> Self {
        Self {
            wall: Source::Closure(Arc::new(wall)),
            instant: Source::Closure(Arc::new(instant)),
            ..REAL
        }
    }

    /// Returns the same clock with an adjustable offset, in milliseconds.
    pub fn movable(self, offset: &Arc<AtomicU64>) -> Self {
        let offset = Some(Arc::clone(offset));
        Self { offset, ..self }
    }

    /// Returns the time of day.
    pub fn now(&self) -> SystemTime {
        self.wall.read() + self.offset()
    }

    /// Returns a point in monotonic time, for measuring durations.
    pub fn instant(&self) -> Instant {
        self.instant.read() + self.offset()
    }

    /// Generates a new unique id.
    pub fn id(&self) -> Uuid {
        (self.id)()
    }

    fn offset(&self) -> Duration {
        let offset = self.offset.as_ref();
        offset.map_or(Duration::ZERO, |it| Duration::from_millis(it.load(Relaxed)))
    }
}

/// Returns the time since 1970; zero before.
pub fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

/// Returns the milliseconds since 1970.
pub fn epoch_millis(time: SystemTime) -> u64 {
    u64::try_from(since_epoch(time).as_millis()).unwrap_or(u64::MAX)
}

/// The machine's clock and randomness.
pub const REAL: Clock = Clock::new(SystemTime::now, Instant::now, Uuid::new_v4);

/// 5 October 2023, 12:00:00 UTC: the time in the specification's examples.
const FIXED_NOW: Duration = Duration::from_hours(471_252);
pub const FIXED_ID: Uuid = Uuid::from_u128(0x0000_0000_0000_4000_8000_0000_0000_0000);

/// A clock that never advances.
pub const FIXED: Clock = Clock::new(
    || SystemTime::UNIX_EPOCH + FIXED_NOW,
    || {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        *START
    },
    || FIXED_ID,
);
