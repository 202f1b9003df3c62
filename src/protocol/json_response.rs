//! JSON responses, and headers that are always the same.

use axum::{body::Body, response::Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header::CONTENT_TYPE};
use serde::Serialize;

/// Encodes one of our own bodies.
pub(super) fn to_json(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("our own bodies have string keys only")
}

/// Creates a JSON response. Without a body, it has no content type.
pub(super) fn json_response(status: StatusCode, body: impl Into<Bytes>) -> Response {
    let body = body.into();
    let is_empty = body.is_empty();
    let mut response = response(status, "application/json", body.into());
    if is_empty {
        response.headers_mut().remove(CONTENT_TYPE);
    }
    response
}

/// Returns a response whose body has this media type.
pub(super) fn response(status: StatusCode, media_type: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let media_type = HeaderValue::from_static(media_type);
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}

/// Adds headers that are always the same.
pub(super) fn insert(headers: &mut HeaderMap, fixed: &'static [(&'static str, &'static str)]) {
    for (name, value) in fixed {
        headers.insert(*name, HeaderValue::from_static(value));
    }
}
