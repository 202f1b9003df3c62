//! What the log is told when the memory is full.
//!
//! A full memory loses something with each call: one line a minute says so as well as thousands.

use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_mins(1);

const FORGOTTEN: &str =
    "too many calls are remembered; the oldest are forgotten, and run again when they are repeated";
const NO_OUTCOME: &str = "the outcomes of calls take too much memory; the oldest are dropped, and cannot be told when the calls are repeated";

/// Warnings that are due, until they are taken.
#[derive(Default)]
pub(super) struct Warnings {
    forgotten: Option<Instant>,
    no_outcome: Option<Instant>,
    due: Vec<&'static str>,
}

impl Warnings {
    /// A record was forgotten before its time.
    pub(super) fn forgotten(&mut self) {
        warn(
            &mut self.due,
            &mut self.forgotten,
            FORGOTTEN,
            Instant::now(),
        );
    }

    /// A record lost its outcome.
    pub(super) fn no_outcome(&mut self) {
        warn(
            &mut self.due,
            &mut self.no_outcome,
            NO_OUTCOME,
            Instant::now(),
        );
    }

    pub(super) fn take(&mut self) -> Vec<&'static str> {
        std::mem::take(&mut self.due)
    }
}

fn warn(due: &mut Vec<&'static str>, last: &mut Option<Instant>, text: &'static str, now: Instant) {
    if last.is_none_or(|last| now.saturating_duration_since(last) >= PAUSE) {
        *last = Some(now);
        due.push(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_told_at_first_and_then_once_a_minute() {
        let (mut due, mut last, start) = (Vec::new(), None, Instant::now());
        for (seconds, lines) in [
            (0, 1),
            (1, 1),
            (59, 1),
            (60, 2),
            (61, 2),
            (119, 2),
            (121, 3),
        ] {
            let now = start + Duration::from_secs(seconds);
            warn(&mut due, &mut last, "full", now);
            assert_eq!(due.len(), lines, "{seconds}");
        }
    }
}
