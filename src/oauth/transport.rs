//! Requests to providers over HTTP.

use std::{pin::Pin, sync::Arc};

use http::{StatusCode, header::CONTENT_TYPE};
use oauth2::{HttpRequest, HttpResponse};
use serde_json::Value;

use crate::http_client::{TransportError, body_of, http_client};

pub(super) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Sends a request for tokens to a provider.
pub(super) type Transport = Arc<
    dyn Fn(HttpRequest) -> BoxFuture<'static, Result<HttpResponse, TransportError>> + Send + Sync,
>;

pub(super) const NOT_AVAILABLE: TransportError = TransportError("is not available at the moment");

/// Returns true for the status of a provider that may answer later.
pub(super) fn is_overloaded(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

pub(super) async fn send(request: HttpRequest) -> Result<HttpResponse, TransportError> {
    let (parts, body) = request.into_parts();
    let request = http_client()?
        .request(parts.method, parts.uri.to_string())
        .headers(parts.headers)
        .body(body);
    let received = request.send().await?;
    let mut status = received.status();
    if is_overloaded(status) {
        return Err(NOT_AVAILABLE);
    }
    let content_type = received.headers().get(CONTENT_TYPE).cloned();
    let body = body_of(received).await?;
    // RFC 6749, 5.2; GitHub and Slack send errors with status 200.
    let is_error = |body: Value| body["error"].is_string();
    if status.is_success() && serde_json::from_slice(&body).is_ok_and(is_error) {
        status = StatusCode::BAD_REQUEST;
    }
    let mut response = HttpResponse::new(body);
    *response.status_mut() = status;
    if let Some(content_type) = content_type {
        response.headers_mut().insert(CONTENT_TYPE, content_type);
    }
    Ok(response)
}
