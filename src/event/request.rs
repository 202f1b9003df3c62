//! The HTTP requests in the events of API Gateway, function URLs and load balancers.

use std::collections::BTreeMap;

use axum::body::Body;
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, Method, Request, Uri, header};
use lambda_http::{
    aws_lambda_events::{
        alb::AlbTargetGroupRequest,
        apigw::{ApiGatewayProxyRequest, ApiGatewayV2httpRequest},
        query_map::QueryMap,
    },
    request::RequestContext,
};
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{
    principal::{self, Principal},
    response::EventSource,
};
use crate::EventKind;

/// The request in an event.
pub(super) struct Event {
    pub(super) source: EventSource,
    pub(super) request: Request<Body>,
    /// The caller, if the platform has authenticated one.
    pub(super) principal: Option<Principal>,
}

/// Returns the request of a REST API, or of an HTTP API with payload format 1.0.
pub(super) fn of_rest(event: ApiGatewayProxyRequest) -> Event {
    let query = query_of(
        &event.query_string_parameters,
        &event.multi_value_query_string_parameters,
        |decoded| utf8_percent_encode(decoded, NON_ALPHANUMERIC).to_string(),
    );
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

/// Returns the request of an HTTP API with payload format 2.0, or of a function URL.
pub(super) fn of_http(event: ApiGatewayV2httpRequest) -> Event {
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

/// Returns the request of an Application Load Balancer.
pub(super) fn of_load_balancer(event: AlbTargetGroupRequest) -> Event {
    let multi_value_headers = !event.multi_value_headers.is_empty();
    // Still encoded, as in the URL.
    let query = query_of(
        &event.query_string_parameters,
        &event.multi_value_query_string_parameters,
        str::to_owned,
    );
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

const NOT_BASE64: &str = "The event marks the body as base64, but it is not valid base64.";

/// The parts that all kinds of events have in common.
struct RawEvent<'a> {
    method: Method,
    path: &'a str,
    query: &'a str,
    headers: HeaderMap,
    body: Option<String>,
    is_base64: bool,
    context: RequestContext,
}

impl RawEvent<'_> {
    fn into_request(self) -> Request<Body> {
        let uri = uri_of(self.path, self.query);
        let body = match (self.body, self.is_base64) {
            (None, _) => Body::empty(),
            (Some(text), false) => Body::from(text),
            // The protocol of the path words the error.
            (Some(text), true) => BASE64_STANDARD.decode(text).map_or_else(
                |_| Body::from_stream(stream::iter([Err::<Bytes, _>(NOT_BASE64)])),
                Body::from,
            ),
        };
        let mut request = Request::new(body);
        *request.method_mut() = self.method;
        *request.uri_mut() = uri;
        *request.headers_mut() = self.headers;
        // Routes added by the program read it through lambda_http's `RequestExt`.
        request.extensions_mut().insert(self.context);
        request
    }
}

/// Returns the request's URI, with invalid characters encoded: REST APIs and load balancers pass
/// arbitrary characters in paths and queries.
fn uri_of(path: &str, query: &str) -> Uri {
    const NOT_IN_QUERY: &AsciiSet = &CONTROLS
        .add(b' ')
        .add(b'"')
        .add(b'#')
        .add(b'<')
        .add(b'>')
        .add(b'`')
        .add(b'\\')
        .add(b'^')
        .add(b'|')
        .add(b'{')
        .add(b'}');
    const NOT_IN_PATH: &AsciiSet = &NOT_IN_QUERY.add(b'?');
    let mut text = String::with_capacity(path.len() + query.len() + 2);
    if !path.starts_with('/') {
        text.push('/');
    }
    text.extend(utf8_percent_encode(path, NOT_IN_PATH));
    if !query.is_empty() {
        text.push('?');
        text.extend(utf8_percent_encode(query, NOT_IN_QUERY));
    }
    // If the result is still not a URI, for example because it is too long, it becomes a path
    // that matches no route of the library.
    Uri::try_from(text).unwrap_or_else(|_| Uri::from_static("/-"))
}

/// Returns the query in one of the two maps, of which REST APIs and load balancers fill the second one
/// if they fill any. `encode` encodes names and values.
fn query_of(single: &QueryMap, multi: &QueryMap, encode: fn(&str) -> String) -> String {
    let query = if multi.is_empty() { single } else { multi };
    // `QueryMap`'s own iterator panics on a name without values.
    let map: BTreeMap<String, Vec<String>> = serde_json::to_value(query)
        .and_then(serde_json::from_value)
        .unwrap_or_default();
    let mut pairs = Vec::new();
    for (name, values) in &map {
        let pair = |value: &String| format!("{}={}", encode(name), encode(value));
        pairs.extend(values.iter().map(pair));
    }
    pairs.join("&")
}

/// Merges the two maps of headers. Some sources repeat every header in both; none may be
/// duplicated.
fn merged(single: &HeaderMap, multi: HeaderMap) -> HeaderMap {
    let mut headers = multi;
    for (name, value) in single {
        if !headers.contains_key(name) {
            headers.insert(name.clone(), value.clone());
        }
    }
    headers
}

/// Returns true for API Gateway's own domains: their paths begin with a stage.
fn has_stage(domain: Option<&str>) -> bool {
    domain.is_none_or(|domain| domain.contains(".execute-api."))
}

/// Strips the stage from the front of a path. API Gateway adds none for `$default` or with custom
/// domains.
fn without_stage<'a>(path: &'a str, stage: Option<&str>) -> &'a str {
    let stage = stage.filter(|it| !it.is_empty()).unwrap_or("$default");
    let rest = path.strip_prefix('/');
    match rest.and_then(|path| path.strip_prefix(stage)) {
        Some("") => "/",
        Some(rest) if rest.starts_with('/') => rest,
        _ => path,
    }
}
