//! Retries: their number, and the waits between them.

use std::time::{Duration, Instant, SystemTime};

use http::{HeaderName, HeaderValue, header::RETRY_AFTER};
use lambda_tools_core::{retry_after, wire};

use super::{ClientError, response::ReceivedResponse};

const SHOULD_RETRY: HeaderName = HeaderName::from_static(wire::oxp::SHOULD_RETRY);

/// The wait after the first attempt, unless the server names one.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(8);

#[derive(Clone, Copy, Debug)]
pub(super) struct RetryLimits {
    /// The time limit of one attempt.
    pub(super) timeout: Duration,
    /// The time limit of all attempts, including the waits between them.
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

/// Advice on retrying after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryAdvice {
    Done,
    /// Retry, after at least this long.
    Again(Option<Duration>),
}

/// The attempts at one request.
pub(super) struct Attempts {
    limits: RetryLimits,
    started: Instant,
    pub(super) count: u32,
}

impl Attempts {
    pub(super) fn new(limits: RetryLimits) -> Self {
        Self {
            limits,
            started: Instant::now(),
            count: 0,
        }
    }

    /// Starts an attempt and returns its time limit.
    pub(super) fn begin(&mut self) -> Duration {
        self.count += 1;
        self.remaining().min(self.limits.timeout)
    }

    pub(super) fn remaining(&self) -> Duration {
        let elapsed = self.started.elapsed();
        self.limits.deadline.saturating_sub(elapsed)
    }

    /// Waits until the next attempt and returns true. Returns false at once if a retry would not
    /// help, if no attempt is left, or if the next one would start after the deadline.
    pub(super) async fn wait_for_next(&self, advice: RetryAdvice) -> bool {
        let jitter = fastrand::f64();
        let wait = match advice {
            RetryAdvice::Done => return false,
            // A little later than the server says, because it tells other clients the same time.
            RetryAdvice::Again(Some(after)) => {
                after.saturating_add(FIRST_WAIT.mul_f64(jitter).min(after / 10))
            }
            RetryAdvice::Again(None) => backoff(self.count, jitter),
        };
        if self.count >= self.limits.attempts || wait >= self.remaining() {
            return false;
        }
        tokio::time::sleep(wait).await;
        true
    }
}

/// Returns the wait, which doubles with each attempt, up to a limit; half of it is random, so that
/// clients that failed together do not retry together.
fn backoff(attempts: u32, jitter: f64) -> Duration {
    let doubled = FIRST_WAIT.saturating_mul(1 << attempts.saturating_sub(1).min(16));
    doubled.min(LONGEST_WAIT).mul_f64(0.5 + jitter / 2.0)
}

/// Returns the retry advice from a network error, or from a response's status and headers.
pub(super) fn advice_on(response: Result<&ReceivedResponse, &ClientError>) -> RetryAdvice {
    let response = match response {
        Ok(response) => response,
        Err(ClientError::Unreachable(_)) => return RetryAdvice::Again(None),
        Err(_) => return RetryAdvice::Done,
    };
    let should_retry = response.headers.get(SHOULD_RETRY);
    let status = response.status;
    let asks_for_less = matches!(status.as_u16(), 408 | 429);
    let may_help = match should_retry.map(HeaderValue::as_bytes) {
        Some(b"true") => true,
        Some(b"false") => false,
        _ => status.is_server_error() || asks_for_less,
    };
    let after = response.headers.get(RETRY_AFTER);
    let parse = |it: &HeaderValue| retry_after::parse(it.to_str().ok()?.trim(), SystemTime::now());
    match after.and_then(parse) {
        _ if !may_help => RetryAdvice::Done,
        after => RetryAdvice::Again(after),
    }
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
    async fn attempts_and_time_are_limited() {
        let limits = RetryLimits {
            attempts: 2,
            ..RetryLimits::default()
        };
        let mut attempts = Attempts::new(limits);
        let soon = RetryAdvice::Again(Some(Duration::from_millis(1)));
        attempts.begin();
        assert!(!attempts.wait_for_next(RetryAdvice::Done).await);
        assert!(attempts.wait_for_next(soon).await);
        attempts.begin();
        assert!(!attempts.wait_for_next(soon).await, "two attempts");
        let mut attempts = Attempts::new(RetryLimits::default());
        attempts.begin();
        let late = RetryAdvice::Again(Some(Duration::from_secs(90)));
        let waits = tokio::time::timeout(Duration::from_secs(5), attempts.wait_for_next(late));
        assert_eq!(waits.await, Ok(false), "after the deadline");
    }
}
