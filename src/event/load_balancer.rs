//! Application Load Balancers.

use axum::body::Bytes;
use http::response::Parts;
use lambda_http::{
    aws_lambda_events::alb::{AlbTargetGroupRequest, AlbTargetGroupResponse},
    request::RequestContext,
};

use super::{
    Event, EventSource, encoding,
    request::{RawEvent, as_it_came, merged},
};

pub(super) fn request(event: AlbTargetGroupRequest) -> Event {
    let multi_value_headers = !event.multi_value_headers.is_empty();
    let multi = event.multi_value_query_string_parameters;
    let query = if multi.is_empty() {
        as_it_came(&event.query_string_parameters)
    } else {
        as_it_came(&multi)
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
        origin: EventSource::Alb {
            multi_value_headers,
        },
        request: raw.into_request(),
        // It passes on whom it has let through in headers, which others can send as well.
        caller: None,
    }
}

pub(super) fn answer(
    parts: Parts,
    body: Bytes,
    has_multi_value_headers: bool,
) -> AlbTargetGroupResponse {
    let mut answer = AlbTargetGroupResponse::default();
    answer.status_code = parts.status.as_u16().into();
    answer.status_description = Some(parts.status.to_string());
    (answer.is_base64_encoded, answer.body) = encoding::of(&parts.headers, body);
    if has_multi_value_headers {
        answer.multi_value_headers = parts.headers;
    } else {
        answer.headers = parts.headers;
    }
    answer
}
