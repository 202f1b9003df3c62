//! Bodies of answers: text where it is text, else base64.

use axum::body::Bytes;
use http::{HeaderMap, header};
use lambda_http::aws_lambda_events::encodings::Body;

use crate::payload::size_as_sent;

/// Whether the body is sent as base64, and the body.
pub(super) fn of(headers: &HeaderMap, body: Bytes) -> (bool, Option<Body>) {
    let is_encoded = headers.contains_key(header::CONTENT_ENCODING);
    let body = match String::from_utf8(body.into()) {
        Ok(text) if !is_encoded => Body::Text(text),
        Ok(text) => Body::Binary(text.into_bytes()),
        Err(error) => Body::Binary(error.into_bytes()),
    };
    (matches!(body, Body::Binary(_)), Some(body))
}

/// Whether a body of this size can be sent, base64 or not.
pub(super) fn fits(body: &Bytes, largest: usize) -> bool {
    body.len().div_ceil(3) * 4 <= largest
        || (std::str::from_utf8(body).is_ok() && size_as_sent(body) <= largest)
}
