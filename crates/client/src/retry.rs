//! Retries: their number, and the waits between them.

use std::time::{Duration, Instant, SystemTime};

use http::{HeaderName, HeaderValue, header::RETRY_AFTER};
use lambda_tools_core::{retry_after, wire};

use super::{
    ClientError,
    http::{ClientRequest, HttpClient},
    response::ReceivedResponse,
};

const SHOULD_RETRY: HeaderName = HeaderName::from_static(wire::oxp::SHOULD_RETRY);

/// The wait after the first attempt, unless the server names one.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(8);

/// Advice on retrying after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryAdvice {
    Done,
    /// Retry, after at least this long.
    Again(Option<Duration>),
}

impl HttpClient {
    /// Sends a request until a retry would not help, no attempt is left, or the next one would
    /// start after the deadline. `read` returns what a response means, and its own advice if it has one.
    pub(super) async fn exchange_with_retries<T>(
        &self,
        request: &ClientRequest,
        read: impl Fn(&ReceivedResponse) -> (Result<T, ClientError>, Option<RetryAdvice>),
    ) -> Result<T, ClientError> {
        let started = Instant::now();
        let remaining = || self.options.deadline.saturating_sub(started.elapsed());
        let mut attempts = 1;
        loop {
            let timeout = self.options.timeout.min(remaining());
            let response = self.exchange(request, timeout).await;
            let of_response = advice_on(response.as_ref());
            let (result, advice) = match response {
                Ok(response) => read(&response),
                Err(error) => (Err(error), None),
            };
            let jitter = fastrand::f64();
            let wait = match advice.unwrap_or(of_response) {
                RetryAdvice::Done => return result,
                // A little later than the server says, which tells other clients the same time.
                RetryAdvice::Again(Some(after)) => {
                    after.saturating_add(FIRST_WAIT.mul_f64(jitter).min(after / 10))
                }
                RetryAdvice::Again(None) => backoff(attempts, jitter),
            };
            if attempts >= self.options.attempts || wait >= remaining() {
                return result;
            }
            tokio::time::sleep(wait).await;
            attempts += 1;
        }
    }
}

/// Returns the wait, which doubles with each attempt, up to a limit; half of it is random, so that
/// clients that failed together do not retry together.
fn backoff(attempts: u32, jitter: f64) -> Duration {
    let doubled = FIRST_WAIT.saturating_mul(1 << attempts.saturating_sub(1).min(16));
    doubled.min(LONGEST_WAIT).mul_f64(0.5 + jitter / 2.0)
}

/// Returns the retry advice from a network error, or from a response's status and headers.
fn advice_on(response: Result<&ReceivedResponse, &ClientError>) -> RetryAdvice {
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
}
