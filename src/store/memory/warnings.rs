//! What the log is told when the memory is full.
//!
//! A full memory loses something with each write: one line a minute says so as well as thousands.

use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_mins(1);

/// Warnings that are due, until they are taken.
#[derive(Default)]
pub(super) struct Warnings {
    forgotten: Losses,
    dropped: Losses,
    due: Vec<Warning>,
}

/// Whom something was lost to, and how often since the last warning.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Warning {
    text: &'static str,
    owner: String,
    count: u64,
}

#[derive(Default)]
struct Losses {
    untold: u64,
    told_at: Option<Instant>,
}

impl Warnings {
    /// A record was forgotten before its time.
    pub(super) fn forgotten(&mut self, text: &'static str, owner: &str) {
        let warning = self.forgotten.one_more(text, owner, Instant::now());
        self.due.extend(warning);
    }

    /// A record lost its droppable field.
    pub(super) fn dropped(&mut self, text: &'static str, owner: &str) {
        let warning = self.dropped.one_more(text, owner, Instant::now());
        self.due.extend(warning);
    }

    pub(super) fn take(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.due)
    }
}

impl Losses {
    fn one_more(&mut self, text: &'static str, owner: &str, now: Instant) -> Option<Warning> {
        self.untold += 1;
        let since = self.told_at.map(|at| now.saturating_duration_since(at));
        if since.is_some_and(|since| since < PAUSE) {
            return None;
        }
        self.told_at = Some(now);
        Some(Warning {
            text,
            owner: owner.to_owned(),
            count: std::mem::take(&mut self.untold),
        })
    }
}

impl Warning {
    pub(super) fn log(&self) {
        let Self { text, owner, count } = self;
        let caller = if owner.is_empty() { "anyone" } else { owner };
        tracing::warn!(caller, count, "{text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_told_at_first_and_then_once_a_minute() {
        let (mut losses, start) = (Losses::default(), Instant::now());
        let mut count = |seconds| {
            let now = start + Duration::from_secs(seconds);
            let warning = losses.one_more("full", "key A", now);
            warning.map(|it| it.count)
        };
        assert_eq!([count(0), count(1), count(59)], [Some(1), None, None]);
        assert_eq!([count(60), count(61), count(119)], [Some(3), None, None]);
        assert_eq!(count(121), Some(3));
    }
}
