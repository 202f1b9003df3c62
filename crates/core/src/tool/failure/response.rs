//! Failures from HTTP responses.

pub mod api_error;

use std::time::Duration;

use http::{Response, StatusCode};
use http_body::Body;

use super::Failure;
use api_error::ApiError;

/// The maximum length, in bytes, of a message with an API's own text.
const LONGEST_WITH_API_TEXT: usize = 600;

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
            failure.0.longest_message = LONGEST_WITH_API_TEXT;
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

#[cfg(test)]
mod tests {
    use http::header::RETRY_AFTER;

    use super::*;

    #[tokio::test]
    async fn the_status_of_a_response_decides_about_retries() {
        let from = async |status: StatusCode, retry_after: Option<&str>| {
            let response = Response::builder().status(status);
            let response = match retry_after {
                Some(wait) => response.header(RETRY_AFTER, wait),
                None => response,
            };
            Failure::from_response(response.body(String::new()).unwrap()).await
        };
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
            let failure = from(status, Some("7")).await;
            assert_eq!(failure.message(), message);
            assert_eq!(failure.can_retry(), can_retry, "{status}");
            let wait = can_retry.then(|| Duration::from_secs(7));
            assert_eq!(failure.parts().retry_after, wait, "{status}");
            let plain = from(status, None).await;
            assert_eq!(plain.can_retry(), can_retry, "{status}");
            assert_eq!(plain.parts().retry_after, None);
        }
    }
}
