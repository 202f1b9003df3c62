//! Failures of external APIs, with the right advice.

use std::{
    error::Error,
    time::{Duration, SystemTime},
};

use lambda_tools::Failure;
use reqwest::{Response, StatusCode, header::RETRY_AFTER};

/// Returns the failure of a request without a usable response. It never names the URL, which may
/// contain the query.
pub(crate) fn no_response(api: &str, error: &reqwest::Error) -> Failure {
    let why = if error.is_timeout() {
        "did not answer in time"
    } else if error.is_connect() {
        "could not be reached"
    } else if error.is_decode() || error.is_body() {
        "returned a response that cannot be read"
    } else {
        "could not be asked"
    };
    let causes = std::iter::successors(error.source(), |&error| error.source());
    let detail = match causes.last() {
        Some(cause) => format!("{api} {why}: {cause}"),
        None => format!("{api} {why}."),
    };
    Failure::new(format!("{api} {why}")).developer_message(detail)
}

/// Returns the failure of a response that reports a temporary problem, with its `Retry-After` if it
/// has one.
pub(crate) fn busy(api: &str, response: &Response, now: SystemTime) -> Failure {
    let status = response.status();
    let what = if status == StatusCode::TOO_MANY_REQUESTS {
        "receives too many requests"
    } else {
        "is not available at the moment"
    };
    let failure = Failure::new(format!("{api} {what}"))
        .developer_message(format!("{api} answered {status}."));
    match retry_after(response, now) {
        Some(wait) => failure.retry_after(wait),
        None => failure.retry(),
    }
}

/// Reads `Retry-After`: seconds, or a date (RFC 9110, 10.2.3).
fn retry_after(response: &Response, now: SystemTime) -> Option<Duration> {
    let value = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}
