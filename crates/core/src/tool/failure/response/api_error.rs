//! The text of an API's response that reports an error.

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

use crate::retry_after;

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

/// The error that a response reports.
pub struct ApiError {
    pub status: StatusCode,
    /// The time in `Retry-After`.
    pub wait: Option<Duration>,
    /// The text of an error in the usual formats of JSON.
    pub said: Option<String>,
    /// The start of the body, with an ellipsis if there is more: by it, the redaction recognizes the
    /// start of a secret.
    pub body: String,
    pub is_html: bool,
}

impl ApiError {
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
        let after = parts
            .headers
            .get(RETRY_AFTER)
            .and_then(|it| it.to_str().ok());
        let text = text.trim();
        let mark = if is_whole || text.is_empty() {
            ""
        } else {
            "…"
        };
        Self {
            status: parts.status,
            wait: after.and_then(|it| retry_after::parse(it.trim(), SystemTime::now())),
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

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http_body::Frame;
    use http_body_util::{Full, StreamBody};
    use std::convert::Infallible;

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
        use futures_util::stream;

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
        use futures_util::{StreamExt, stream};

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
