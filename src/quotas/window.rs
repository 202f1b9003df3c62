//! The windows of time that quotas count in.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::clock::{since_epoch, timestamp};

/// A part of the calendar, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Window {
    Minute,
    Day,
}

impl Window {
    pub(super) const ALL: [Self; 2] = [Self::Minute, Self::Day];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Day => "day",
        }
    }

    pub(super) fn length(self) -> Duration {
        match self {
            Self::Minute => Duration::from_mins(1),
            Self::Day => Duration::from_hours(24),
        }
    }

    /// Returns a text that identifies the window around this time.
    pub(super) fn id(self, now: SystemTime) -> String {
        let mut text = timestamp(now);
        text.truncate(match self {
            Self::Minute => "2026-01-01T00:00".len(),
            Self::Day => "2026-01-01".len(),
        });
        text
    }

    /// Returns the end of the window around this time.
    pub(super) fn end(self, now: SystemTime) -> SystemTime {
        let (seconds, length) = (since_epoch(now).as_secs(), self.length().as_secs());
        UNIX_EPOCH + Duration::from_secs(seconds - seconds % length + length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_those_of_the_calendar() {
        for (seconds, window, id, end) in [
            // From `date -u -d @… +%FT%TZ`.
            (
                1_709_210_096,
                Window::Minute,
                "2024-02-29T12:34",
                1_709_210_100,
            ),
            (1_709_210_096, Window::Day, "2024-02-29", 1_709_251_200),
            (1_735_689_599, Window::Day, "2024-12-31", 1_735_689_600),
            (1_735_689_600, Window::Day, "2025-01-01", 1_735_776_000),
        ] {
            let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(window.id(at(seconds)), id);
            assert_eq!(window.end(at(seconds)), at(end), "{id}");
        }
    }
}
