//! The windows of time that quotas count in.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::clock::{since_epoch, timestamp};

const DAY: Duration = Duration::from_hours(24);

/// A part of the calendar, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Window {
    Minute,
    Hour,
    Day,
    Month,
}

impl Window {
    pub(super) const ALL: [Self; 4] = [Self::Minute, Self::Hour, Self::Day, Self::Month];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// Returns a text that identifies the window around this time.
    pub(super) fn id(self, now: SystemTime) -> String {
        let mut text = timestamp(now);
        text.truncate(match self {
            Self::Minute => "2026-01-01T00:00".len(),
            Self::Hour => "2026-01-01T00".len(),
            Self::Day => "2026-01-01".len(),
            Self::Month => "2026-01".len(),
        });
        text
    }

    /// Returns the start and the end of the window around this time.
    pub(super) fn around(self, now: SystemTime) -> (SystemTime, SystemTime) {
        let length = match self {
            Self::Minute => Duration::from_mins(1),
            Self::Hour => Duration::from_hours(1),
            Self::Day => DAY,
            Self::Month => return month(now),
        };
        let start = start_of(length, now);
        (start, start + length)
    }
}

/// Returns the first day of the month, and of the next one.
fn month(now: SystemTime) -> (SystemTime, SystemTime) {
    let is_first = |day| Window::Day.id(day).ends_with("-01");
    let mut start = start_of(DAY, now);
    let mut end = start + DAY;
    while !is_first(start) {
        start -= DAY;
    }
    while !is_first(end) {
        end += DAY;
    }
    (start, end)
}

fn start_of(length: Duration, now: SystemTime) -> SystemTime {
    let (seconds, length) = (since_epoch(now).as_secs(), length.as_secs());
    UNIX_EPOCH + Duration::from_secs(seconds - seconds % length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_those_of_the_calendar() {
        for (seconds, window, id, start, end) in [
            // From `date -u -d @… +%FT%TZ`.
            (
                1_709_210_096,
                Window::Minute,
                "2024-02-29T12:34",
                1_709_210_040,
                1_709_210_100,
            ),
            (
                1_709_210_096,
                Window::Hour,
                "2024-02-29T12",
                1_709_208_000,
                1_709_211_600,
            ),
            (
                1_709_210_096,
                Window::Day,
                "2024-02-29",
                1_709_164_800,
                1_709_251_200,
            ),
            (
                1_709_210_096,
                Window::Month,
                "2024-02",
                1_706_745_600,
                1_709_251_200,
            ),
            (
                1_735_689_599,
                Window::Month,
                "2024-12",
                1_733_011_200,
                1_735_689_600,
            ),
            (
                1_735_689_600,
                Window::Month,
                "2025-01",
                1_735_689_600,
                1_738_368_000,
            ),
            (0, Window::Month, "1970-01", 0, 2_678_400),
        ] {
            let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(window.id(at(seconds)), id);
            assert_eq!(window.around(at(seconds)), (at(start), at(end)), "{id}");
        }
    }
}
