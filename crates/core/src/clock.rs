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

/// The source that a clock reads. A function needs no allocation.
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
    /// Creates a clock of the time of day, a monotonic time and new ids.
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
    #[must_use]
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

/// Returns a time as RFC 3339 writes it, to the second, in UTC.
pub fn timestamp(time: SystemTime) -> String {
    let seconds = since_epoch(time).as_secs();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    // Years that begin in March, in eras of 400 years (Hinnant, `civil_from_days`).
    let (era, day) = ((days + 719_468) / 146_097, (days + 719_468) % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The machine's clock and randomness.
pub const REAL: Clock = Clock::new(SystemTime::now, Instant::now, Uuid::new_v4);

/// 5 October 2023, 12:00:00 UTC: the time in the specification's examples.
const FIXED_NOW: Duration = Duration::from_hours(471_252);
/// The id that the fixed clock generates.
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

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn times_have_the_dates_of_the_calendar() {
        // From `date -u -d @… +%FT%TZ`.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (1_764_079_384, "2025-11-25T14:03:04Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(timestamp(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
