//! API Gateway REST APIs, and HTTP APIs with payload format 1.0.

use http::response::Parts;
use lambda_http::{
    aws_lambda_events::apigw::{ApiGatewayProxyRequest, ApiGatewayProxyResponse},
    request::RequestContext,
};

use super::{
    Event, EventSource, principal,
    request::{RawEvent, encoded, has_stage, merged, without_stage},
};

pub(super) fn request(event: ApiGatewayProxyRequest) -> Event {
    let multi = event.multi_value_query_string_parameters;
    let query = if multi.is_empty() {
        encoded(&event.query_string_parameters)
    } else {
        encoded(&multi)
    };
    let path = event.path.unwrap_or_default();
    let context = event.request_context;
    let principal = principal::of_rest(&context);
    let raw = RawEvent {
        method: event.http_method,
        path: match &context.path {
            // REST APIs: only the context's path contains the stage.
            Some(full) if *full != path => &path,
            // Custom domains: neither path contains the stage.
            _ if !has_stage(context.domain_name.as_deref()) => &path,
            _ => without_stage(&path, context.stage.as_deref()),
        },
        query: &query,
        headers: merged(&event.headers, event.multi_value_headers),
        body: event.body,
        is_base64: event.is_base64_encoded,
        context: RequestContext::ApiGatewayV1(context),
    };
    Event {
        source: EventSource::Rest,
        request: raw.into_request(),
        principal,
    }
}

/// Returns the response without its body.
pub(super) fn response(parts: Parts, is_base64: bool) -> ApiGatewayProxyResponse {
    let mut response = ApiGatewayProxyResponse::default();
    response.status_code = parts.status.as_u16().into();
    response.is_base64_encoded = is_base64;
    // The gateway would send headers in both maps twice.
    response.multi_value_headers = parts.headers;
    response
}
