//! API Gateway HTTP APIs with payload format 2.0, and Function URLs.

use http::{HeaderValue, header, response::Parts};
use lambda_http::{
    aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse},
    request::RequestContext,
};

use super::{
    Event, EventSource, principal,
    request::{RawEvent, has_stage, without_stage},
};
use crate::EventKind;

/// Returns the kind of an event: the domain of a function URL is `ID.lambda-url.REGION.on.aws`.
pub(super) fn kind_of(event: &ApiGatewayV2httpRequest) -> EventKind {
    let context = &event.request_context;
    let domain = context.domain_name.as_deref().unwrap_or_default();
    let labels = domain.split('.').skip(1).step_by(2).take(2);
    if labels.eq(["lambda-url", "on"]) {
        return EventKind::FunctionUrl;
    }
    EventKind::HttpApi
}

pub(super) fn request(event: ApiGatewayV2httpRequest) -> Event {
    let mut headers = event.headers;
    let cookies = event.cookies.into_iter().flatten();
    let cookies: Vec<_> = cookies
        .filter(|cookie| HeaderValue::try_from(cookie).is_ok())
        .collect();
    if let (false, Ok(cookies)) = (
        cookies.is_empty(),
        HeaderValue::try_from(cookies.join("; ")),
    ) {
        headers.insert(header::COOKIE, cookies);
    }
    let path = event.raw_path.unwrap_or_default();
    let context = event.request_context;
    // With a custom domain, the path begins with the mapping and does not contain the stage.
    let has_stage = has_stage(context.domain_name.as_deref());
    let stage = context.stage.as_deref().filter(|_| has_stage);
    let principal = principal::of_http(&context);
    let raw = RawEvent {
        method: context.http.method.clone(),
        path: without_stage(&path, stage),
        query: event.raw_query_string.as_deref().unwrap_or_default(),
        headers,
        body: event.body,
        is_base64: event.is_base64_encoded,
        context: RequestContext::ApiGatewayV2(context),
    };
    Event {
        source: EventSource::Http,
        request: raw.into_request(),
        principal,
    }
}

/// Returns the response without its body.
pub(super) fn response(parts: Parts, is_base64: bool) -> ApiGatewayV2httpResponse {
    let mut response = ApiGatewayV2httpResponse::default();
    response.status_code = parts.status.as_u16().into();
    response.is_base64_encoded = is_base64;
    let mut headers = parts.headers;
    let cookies = headers.get_all(header::SET_COOKIE).iter();
    response.cookies = cookies
        .filter_map(|cookie| cookie.to_str().ok().map(str::to_owned))
        .collect();
    headers.remove(header::SET_COOKIE);
    response.headers = headers;
    response
}
