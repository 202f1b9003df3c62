//! Application Load Balancers.

use http::response::Parts;
use lambda_http::{
    aws_lambda_events::alb::{AlbTargetGroupRequest, AlbTargetGroupResponse},
    request::RequestContext,
};

use super::{
    Event, EventSource,
    request::{RawEvent, merged, verbatim},
};

pub(super) fn request(event: AlbTargetGroupRequest) -> Event {
    let multi_value_headers = !event.multi_value_headers.is_empty();
    let multi = event.multi_value_query_string_parameters;
    let query = if multi.is_empty() {
        verbatim(&event.query_string_parameters)
    } else {
        verbatim(&multi)
    };
    let raw = RawEvent {
        method: event.http_method,
        path: event.path.as_deref().unwrap_or_default(),
        query: &query,
        headers: merged(&event.headers, event.multi_value_headers),
        body: event.body,
        is_base64: event.is_base64_encoded,
        context: RequestContext::Alb(event.request_context),
    };
    Event {
        source: EventSource::Alb {
            multi_value_headers,
        },
        request: raw.into_request(),
        // Load balancers name authenticated callers only in headers, which anyone can set.
        principal: None,
    }
}

/// Returns the response without its body.
pub(super) fn response(
    parts: Parts,
    is_base64: bool,
    has_multi_value_headers: bool,
) -> AlbTargetGroupResponse {
    let mut response = AlbTargetGroupResponse::default();
    response.status_code = parts.status.as_u16().into();
    response.status_description = Some(parts.status.to_string());
    response.is_base64_encoded = is_base64;
    if has_multi_value_headers {
        response.multi_value_headers = parts.headers;
    } else {
        response.headers = parts.headers;
    }
    response
}
