//! How often a client asks, and how long it waits in between.

use std::time::{Duration, Instant};

/// The first wait between two attempts, when the server names none.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(8);

#[derive(Clone, Copy, Debug)]
pub(super) struct RetryLimits {
    /// For one attempt.
    pub(super) timeout: Duration,
    /// For all of them, waits included.
    pub(super) deadline: Duration,
    pub(super) attempts: u32,
}

impl Default for RetryLimits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            deadline: Duration::from_secs(90),
            attempts: 4,
        }
    }
}

/// What is to be done after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryAdvice {
    Done,
    /// Again, not before this long.
    Again(Option<Duration>),
}

/// The attempts at one thing.
pub(super) struct Attempts {
    patience: RetryLimits,
    begun: Instant,
    pub(super) attempts: u32,
}

impl Attempts {
    pub(super) fn new(patience: RetryLimits) -> Self {
        Self {
            patience,
            begun: Instant::now(),
            attempts: 0,
        }
    }

    /// How long the next attempt may take.
    pub(super) fn begin(&mut self) -> Duration {
        self.attempts += 1;
        self.left().min(self.patience.timeout)
    }

    fn left(&self) -> Duration {
        let since = self.begun.elapsed();
        self.patience.deadline.saturating_sub(since)
    }

    /// Waits until the next attempt, if there is to be one: not if the time would be up by then.
    pub(super) async fn goes_on(&self, advice: RetryAdvice) -> bool {
        let RetryAdvice::Again(after) = advice else {
            return false;
        };
        let chance = fastrand::f64();
        let wait = match after {
            // A little later than the server says: others were told the same.
            Some(after) => after.saturating_add(FIRST_WAIT.mul_f64(chance).min(after / 10)),
            None => backoff(self.attempts, chance),
        };
        if self.attempts >= self.patience.attempts || wait >= self.left() {
            return false;
        }
        tokio::time::sleep(wait).await;
        true
    }
}

/// Twice as long each time, up to a limit; half of it by chance, so that clients that failed
/// together do not come back together.
fn backoff(attempts: u32, chance: f64) -> Duration {
    let doubled = FIRST_WAIT.saturating_mul(1 << attempts.saturating_sub(1).min(16));
    doubled.min(LONGEST_WAIT).mul_f64(0.5 + chance / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit() {
        let longest: Vec<_> = [1, 2, 3, 6, 7, 1000]
            .map(|n| backoff(n, 1.0).as_millis())
            .into();
        assert_eq!(longest, [250, 500, 1000, 8000, 8000, 8000]);
        assert_eq!(backoff(1, 0.0).as_millis(), 125);
    }

    #[tokio::test]
    async fn there_is_an_end_to_attempts_and_to_time() {
        let patience = RetryLimits {
            attempts: 2,
            ..RetryLimits::default()
        };
        let mut effort = Attempts::new(patience);
        let soon = RetryAdvice::Again(Some(Duration::from_millis(1)));
        effort.begin();
        assert!(!effort.goes_on(RetryAdvice::Done).await);
        assert!(effort.goes_on(soon).await);
        effort.begin();
        assert!(!effort.goes_on(soon).await, "two attempts");
        let mut effort = Attempts::new(RetryLimits::default());
        effort.begin();
        let late = RetryAdvice::Again(Some(Duration::from_secs(90)));
        assert!(!effort.goes_on(late).await, "too late by then");
    }
}
