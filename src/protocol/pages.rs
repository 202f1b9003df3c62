//! What the pages of the browser flow read and send.

use axum::{body::Body, response::Response};
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};

use crate::oauth::Parameters;

/// Returns the response with a page for a browser.
pub(super) fn page_of(page: http::Response<String>) -> Response {
    page.map(Body::from)
}

/// Reads a body of at most this many bytes.
pub(super) async fn limited(body: Body, largest: usize) -> Option<Bytes> {
    let body = Limited::new(body, largest).collect().await;
    Some(body.ok()?.to_bytes())
}

/// Reads a form of at most this many bytes, in which no field occurs twice.
pub(super) async fn form_in(body: Body, largest: usize) -> Option<Parameters> {
    Parameters::parse(&limited(body, largest).await?)
}
