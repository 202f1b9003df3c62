//! The header `Retry-After`.

use std::time::{Duration, SystemTime};

/// Returns the time to wait: RFC 9110, 10.2.3, seconds or a date.
#[must_use]
pub fn parse(after: &str, now: SystemTime) -> Option<Duration> {
    if !after.is_empty() && after.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number too large for `u64` exceeds any deadline.
        return Some(after.parse().map_or(Duration::MAX, Duration::from_secs));
    }
    let date = httpdate::parse_http_date(after).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_has_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (text, expected) in [
            ("7", Some(Duration::from_secs(7))),
            ("99999999999999999999", Some(Duration::MAX)),
            (
                "Sun, 06 Nov 1994 08:49:47 GMT",
                Some(Duration::from_secs(10)),
            ),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(Duration::ZERO)),
            ("soon", None),
            ("", None),
            ("-1", None),
        ] {
            assert_eq!(parse(text, now), expected, "{text}");
        }
    }
}
