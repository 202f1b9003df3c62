//! Warnings in the log about a full memory.
//!
//! A full memory loses something with each write, so warnings are logged at most once a minute.

use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_mins(1);

/// Collects warnings until they are taken and logged.
#[derive(Default)]
pub(super) struct Warnings {
    forgotten: Losses,
    dropped: Losses,
    due: Vec<Warning>,
}

/// The owner of the last loss, and the number of losses since the last warning.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Warning {
    text: &'static str,
    owner: String,
    count: u64,
}

#[derive(Default)]
struct Losses {
    unreported: u64,
    reported_at: Option<Instant>,
}

impl Warnings {
    /// A record was forgotten before it expired.
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
        self.unreported += 1;
        let since = self.reported_at.map(|at| now.saturating_duration_since(at));
        if since.is_some_and(|since| since < PAUSE) {
            return None;
        }
        self.reported_at = Some(now);
        Some(Warning {
            text,
            owner: owner.to_owned(),
            count: std::mem::take(&mut self.unreported),
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
    fn the_first_loss_is_logged_and_later_ones_once_a_minute() {
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
