//! Encoding of response bodies: UTF-8 as text, anything else as base64.

use axum::body::Bytes;
use http::{HeaderMap, header};
use lambda_http::aws_lambda_events::encodings::Body;

use crate::payload::encoded_size;

/// The body of the response, with `true` if it is base64.
pub(super) fn encode(headers: &HeaderMap, body: Bytes) -> (bool, Option<Body>) {
    let is_encoded = headers.contains_key(header::CONTENT_ENCODING);
    let body = match String::from_utf8(body.into()) {
        Ok(text) if !is_encoded => Body::Text(text),
        Ok(text) => Body::Binary(text.into_bytes()),
        Err(error) => Body::Binary(error.into_bytes()),
    };
    (matches!(body, Body::Binary(_)), Some(body))
}

/// True if the body, as base64 or as text, is within the limit.
pub(super) fn fits(body: &Bytes, largest: usize) -> bool {
    body.len().div_ceil(3) * 4 <= largest
        || (std::str::from_utf8(body).is_ok() && encoded_size(body) <= largest)
}
