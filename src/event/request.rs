//! The HTTP request that every kind of event carries.

use std::collections::BTreeMap;

use axum::body::Body;
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, Method, Request, Uri};
use lambda_http::{aws_lambda_events::query_map::QueryMap, request::RequestContext};
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};

const NOT_BASE64: &str = "The event marks the body as base64, but it is not valid base64.";

/// The parts that all kinds of events have in common.
pub(super) struct RawEvent<'a> {
    pub(super) method: Method,
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<String>,
    pub(super) is_base64: bool,
    pub(super) context: RequestContext,
}

impl RawEvent<'_> {
    pub(super) fn into_request(self) -> Request<Body> {
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

/// Encodes a query from a REST API, which passes names and values decoded.
pub(super) fn encoded(query: &QueryMap) -> String {
    let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    joined(query, |name, value| {
        format!("{}={}", encode(name), encode(value))
    })
}

/// Joins a query from a load balancer, which passes names and values still encoded, as in the URL.
pub(super) fn verbatim(query: &QueryMap) -> String {
    joined(query, |name, value| format!("{name}={value}"))
}

fn joined(query: &QueryMap, pair: impl Fn(&str, &str) -> String) -> String {
    if query.is_empty() {
        return String::new();
    }
    // `QueryMap`'s own iterator panics on a name without values.
    let map: BTreeMap<String, Vec<String>> = serde_json::to_value(query)
        .and_then(serde_json::from_value)
        .unwrap_or_default();
    let mut pairs = Vec::new();
    for (name, values) in &map {
        pairs.extend(values.iter().map(|value| pair(name, value)));
    }
    pairs.join("&")
}

/// Merges the two maps of headers. Some sources repeat every header in both; none may be
/// duplicated.
pub(super) fn merged(single: &HeaderMap, multi: HeaderMap) -> HeaderMap {
    let mut headers = multi;
    for (name, value) in single {
        if !headers.contains_key(name) {
            headers.insert(name.clone(), value.clone());
        }
    }
    headers
}

/// Returns true for API Gateway's own domains: their paths begin with a stage.
pub(super) fn has_stage(domain: Option<&str>) -> bool {
    domain.is_none_or(|domain| domain.contains(".execute-api."))
}

/// Strips the stage from the front of a path. API Gateway adds none for `$default` or with custom
/// domains.
pub(super) fn without_stage<'a>(path: &'a str, stage: Option<&str>) -> &'a str {
    let stage = stage.filter(|it| !it.is_empty()).unwrap_or("$default");
    let rest = path.strip_prefix('/');
    match rest.and_then(|path| path.strip_prefix(stage)) {
        Some("") => "/",
        Some(rest) if rest.starts_with('/') => rest,
        _ => path,
    }
}
