//! Failures from HTTP responses, and the text of an API's response that reports an error.

use std::{
    pin::pin,
    time::{Duration, SystemTime},
};

use bytes::Buf;
use http::{
    HeaderMap, Response, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER},
};
use http_body::Body;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::time;

use super::Failure;

/// The maximum length, in bytes, of a message with an API's own text.
const LONGEST_WITH_API_TEXT: usize = 600;

/// The maximum number of bytes that are read of a body.
const MAX_READ: usize = 8192;

/// The maximum time for reading them.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// The fields with the text of an error, or with an object or a list that has it: RFC 9457, 3.1;
/// RFC 6749, 5.2; JSON:API 1.1, Errors; and what many APIs have in common.
const FIELDS: [&str; 7] = [
    "detail",
    "error_description",
    "error_message",
    "message",
    "error",
    "errors",
    "title",
];

impl Failure {
    /// Creates a failure from an HTTP response that reports an error, for tools that call an API:
    /// a [`http::Response`], or what converts to one, such as a response of `reqwest`.
    ///
    /// The statuses 408, 425, 429 and 5xx may be retried, after the time in `Retry-After`; the
    /// others may not. The message says what the status means for the model: bad credentials, an
    /// unknown resource, a rejected request, or an API that is busy or not available. The API's own
    /// text follows, if the start of the body, of at most 8 KiB, arrives within two seconds and has
    /// one: the text of a problem (RFC 9457) or of another usual JSON format, or a text that is not
    /// HTML. It is cut at 600 bytes.
    ///
    /// ```
    /// # use lambda_tools_core as lambda_tools;
    /// # async fn run(response: reqwest::Response) -> Result<(), lambda_tools::Failure> {
    /// # use lambda_tools::Failure;
    /// if !response.status().is_success() {
    ///     return Err(Failure::from_response(response).await);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn from_response<R, B>(response: R) -> Self
    where
        R: Into<Response<B>>,
        B: Body,
    {
        let error = ApiError::read(response.into()).await;
        let mut failure = Self::of_status(error.status, error.wait);
        if let Some(text) = error.text() {
            failure.0.message = format!("{}: {text}", failure.0.message);
            failure.0.longest_message = Some(LONGEST_WITH_API_TEXT);
        }
        failure
    }

    fn of_status(status: StatusCode, wait: Option<Duration>) -> Self {
        let message = match status.as_u16() {
            401 | 403 => "The API rejected the credentials",
            404 | 410 => "The API does not know what was asked for",
            429 => "The API is busy",
            408 | 425 | 500.. => "The API is temporarily unavailable",
            _ => "The API rejected the request",
        };
        let failure = Self::new(message).developer_message(format!("HTTP status {status}"));
        match (status.as_u16(), wait) {
            (408 | 425 | 429 | 500.., Some(wait)) => failure.retry_after(wait),
            (408 | 425 | 429 | 500.., None) => failure.retry(),
            _ => failure,
        }
    }
}

/// The error that a response reports.
pub struct ApiError {
    /// The status of the response.
    pub status: StatusCode,
    /// The time in `Retry-After`.
    pub wait: Option<Duration>,
    /// The text of an error in the usual formats of JSON.
    pub said: Option<String>,
    /// The start of the body, with an ellipsis if there is more: by it, the redaction recognizes the
    /// start of a secret.
    pub body: String,
    /// True if the body is a page for people.
    pub is_html: bool,
}

impl ApiError {
    /// Reads the start of a response's body, within two seconds.
    pub async fn read(response: Response<impl Body>) -> Self {
        let (parts, body) = response.into_parts();
        let (start, is_whole) = start_of(body).await;
        let text = match str::from_utf8(&start) {
            Ok(text) => text,
            // The body goes on in the middle of a character.
            Err(error) if error.error_len().is_none() => {
                str::from_utf8(&start[..error.valid_up_to()]).unwrap_or_default()
            }
            Err(_) => "",
        };
        let value = serde_json::from_str::<Value>(text).ok();
        let text = text.trim();
        let mark = if is_whole || text.is_empty() {
            ""
        } else {
            "…"
        };
        Self {
            status: parts.status,
            wait: retry_after(&parts.headers, SystemTime::now()),
            said: value.as_ref().and_then(text_in).map(str::to_owned),
            body: format!("{text}{mark}"),
            is_html: is_html(&parts.headers, text),
        }
    }

    /// Returns the text for people.
    pub fn text(&self) -> Option<&str> {
        let body = Some(&*self.body).filter(|it| !it.is_empty() && !self.is_html);
        self.said.as_deref().or(body)
    }
}

/// Reads the first bytes of a body; fewer if they do not arrive in time, or if reading them fails.
/// Also returns whether they are the whole body.
async fn start_of(body: impl Body) -> (Vec<u8>, bool) {
    let mut body = pin!(body);
    let mut start = Vec::new();
    let read = async {
        while start.len() < MAX_READ {
            match body.frame().await {
                None => return true,
                Some(Err(_)) => return false,
                Some(Ok(frame)) => {
                    if let Ok(mut data) = frame.into_data() {
                        let length = data.remaining().min(MAX_READ - start.len());
                        start.extend_from_slice(&data.copy_to_bytes(length));
                    }
                }
            }
        }
        false
    };
    let is_whole = time::timeout(MAX_WAIT, read).await.unwrap_or(false);
    (start, is_whole)
}

/// Returns the text of an error in a response's JSON.
fn text_in(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text.trim()).filter(|text| !text.is_empty()),
        Value::Array(items) => text_in(items.first()?),
        Value::Object(fields) => FIELDS.iter().find_map(|name| text_in(fields.get(*name)?)),
        _ => None,
    }
}

fn is_html(headers: &HeaderMap, text: &str) -> bool {
    let media_type = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let starts_with = |start: &str| {
        let text = text.get(..start.len()).unwrap_or_default();
        text.eq_ignore_ascii_case(start)
    };
    media_type.is_some_and(|it| it.contains("html"))
        || starts_with("<!doctype html")
        || starts_with("<html")
}

/// Returns the time that the header `Retry-After` says to wait: RFC 9110, 10.2.3, seconds or a date.
#[must_use]
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let after = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !after.is_empty() && after.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number too large for `u64` exceeds any deadline.
        return Some(after.parse().map_or(Duration::MAX, Duration::from_secs));
    }
    let date = httpdate::parse_http_date(after).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use bytes::Bytes;
    use futures_util::{StreamExt, stream};
    use http_body::Frame;
    use http_body_util::{Full, StreamBody};

    use super::*;

    #[tokio::test]
    async fn the_status_of_a_response_decides_about_retries() {
        let from = async |status: StatusCode, headers: HeaderMap| {
            let mut response = Response::new(String::new());
            *response.status_mut() = status;
            *response.headers_mut() = headers;
            Failure::from_response(response).await
        };
        let seven = HeaderMap::from_iter([(RETRY_AFTER, "7".parse().unwrap())]);
        for (status, can_retry, message) in [
            (400, false, "The API rejected the request"),
            (401, false, "The API rejected the credentials"),
            (403, false, "The API rejected the credentials"),
            (404, false, "The API does not know what was asked for"),
            (408, true, "The API is temporarily unavailable"),
            (409, false, "The API rejected the request"),
            (410, false, "The API does not know what was asked for"),
            (422, false, "The API rejected the request"),
            (425, true, "The API is temporarily unavailable"),
            (429, true, "The API is busy"),
            (500, true, "The API is temporarily unavailable"),
            (503, true, "The API is temporarily unavailable"),
            (599, true, "The API is temporarily unavailable"),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            let failure = from(status, seven.clone()).await;
            assert_eq!(failure.message(), message);
            assert_eq!(failure.can_retry(), can_retry, "{status}");
            let wait = can_retry.then(|| Duration::from_secs(7));
            assert_eq!(failure.parts().retry_after, wait, "{status}");
            let plain = from(status, HeaderMap::new()).await;
            assert_eq!(plain.can_retry(), can_retry, "{status}");
            assert_eq!(plain.parts().retry_after, None);
        }
    }

    #[test]
    fn retry_after_has_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (text, expected) in [
            ("7", Some(7)),
            ("99999999999999999999", Some(u64::MAX)),
            ("Sun, 06 Nov 1994 08:49:47 GMT", Some(10)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("soon", None),
            ("", None),
            ("-1", None),
        ] {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]);
            let wait = retry_after(&headers, now).map(|it| it.as_secs());
            assert_eq!(wait, expected, "{text}");
        }
    }

    async fn text_of(headers: &HeaderMap, body: impl Body) -> Option<String> {
        let mut response = Response::new(body);
        *response.headers_mut() = headers.clone();
        ApiError::read(response).await.text().map(str::to_owned)
    }

    async fn text(media_type: &'static str, body: &str) -> Option<String> {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, media_type.parse().unwrap())]);
        text_of(&headers, body.to_owned()).await
    }

    /// Bodies and their texts: RFC 9457, 3; RFC 6749, 5.2; GitHub, `NestJS`, Google, Stripe, GraphQL,
    /// JSON:API. Other JSON is shown as it is.
    const BODIES: &str = r#"
{"type": "https://example.com/credit", "title": "Too little.", "detail": "You have 30."} => You have 30.
{"type": "about:blank", "title": "Not Found", "status": 404} => Not Found
{"error": "invalid_request", "error_description": "No scope"} => No scope
{"error": "invalid_request"} => invalid_request
{"message": "Validation Failed", "errors": [{"code": "custom"}]} => Validation Failed
{"statusCode": 400, "message": ["name is empty"], "error": "Bad Request"} => name is empty
{"error": {"code": 403, "message": "Quota exceeded", "errors": []}} => Quota exceeded
{"error": {"type": "card_error", "message": "Declined"}} => Declined
{"data": null, "errors": [{"message": "No field x"}]} => No field x
{"errors": [{"status": "422", "title": "Invalid", "detail": "Too short"}]} => Too short
"quoted" => quoted
 {"ok": false, "detail": " "}  => {"ok": false, "detail": " "}
[] => []
<Error><Code>NoSuchKey</Code></Error> => <Error><Code>NoSuchKey</Code></Error>
"#;

    #[tokio::test]
    async fn the_text_of_the_usual_formats_is_found() {
        let rows = BODIES.lines().filter_map(|row| row.split_once(" => "));
        let rows: Vec<_> = rows.chain([(" plain\ntext ", "plain\ntext")]).collect();
        assert_eq!(rows.len(), 15);
        for (body, expected) in rows {
            let text = text("application/json", body).await;
            assert_eq!(text.as_deref(), Some(expected), "{body}");
        }
        for body in ["", " \n", "<!DOCTYPE html><p>Oops", "<HTML>Oops"] {
            assert_eq!(text("text/plain", body).await, None, "{body}");
        }
        assert_eq!(text("text/html; charset=utf-8", "<p>Oops").await, None);
        let binary = Full::new(b"\x1f\x8b\xff\xff text".as_slice());
        assert_eq!(text_of(&HeaderMap::new(), binary).await, None);
    }

    #[tokio::test]
    async fn a_body_without_an_end_is_read_up_to_the_limit() {
        let chunk = || Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"word ")));
        let endless = StreamBody::new(stream::repeat_with(chunk));
        let text = text_of(&HeaderMap::new(), endless).await.unwrap();
        assert_eq!(text, "word ".repeat(MAX_READ / 5) + "wo…");
        let large = format!("a{}", "é".repeat(1 << 20));
        let text = text_of(&HeaderMap::new(), large).await.unwrap();
        assert_eq!(text, format!("a{}…", "é".repeat(MAX_READ / 2 - 1)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_arrive_delays_the_failure_by_two_seconds() {
        let start = time::Instant::now();
        let first = Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"too slow")));
        let body = stream::iter([first]).chain(stream::pending());
        let text = text_of(&HeaderMap::new(), StreamBody::new(body)).await;
        assert_eq!(text.as_deref(), Some("too slow…"));
        assert_eq!(start.elapsed(), MAX_WAIT);
        let silent = stream::pending::<Result<Frame<Bytes>, Infallible>>();
        let text = text_of(&HeaderMap::new(), StreamBody::new(silent)).await;
        assert_eq!(text, None);
    }
}
