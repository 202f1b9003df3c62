//! Lambda events: which HTTP front door sent one, and the request in it.
//!
//! `lambda_http` knows these shapes too, but tries them one after the other, loses the reason why
//! none fits, and panics on base64 that is none. Here the kind is read off the event's first
//! fields, the event is parsed once, and what is wrong with it is said.

use std::fmt;

use axum::{body::Body, response::Response};
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Uri, header};
use lambda_http::{
    aws_lambda_events::{
        alb::AlbTargetGroupRequest,
        apigw::{ApiGatewayProxyRequest, ApiGatewayV2httpRequest},
    },
    request::RequestContext,
};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, IgnoredAny, MapAccess, Visitor},
};

use crate::wire::oxp;

/// The front doors of a Lambda function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// API Gateway REST API, and HTTP API with payload format 1.0.
    Rest,
    /// API Gateway HTTP API with payload format 2.0, and Function URL.
    Http,
    /// Application Load Balancer.
    Alb,
}

/// Which answer the sender of an event expects.
#[derive(Clone, Copy, Debug)]
pub(super) enum Origin {
    Rest,
    Http,
    Alb { multi_value_headers: bool },
}

/// The request in an event.
pub(super) struct Event {
    pub(super) origin: Origin,
    /// The inner error is the answer to a request whose body cannot be decoded.
    pub(super) request: Result<Request<Body>, Box<Response>>,
}

impl Event {
    /// Parses an event.
    pub(super) fn parse(json: &str) -> Result<Self, EventError> {
        let mut peek = Peek::default();
        let outcome = serde_json::Deserializer::from_str(json).deserialize_map(&mut peek);
        let invalid = |error: serde_json::Error| EventError::Invalid(error.to_string());
        match (peek.kind, outcome) {
            (Some(Kind::Rest), _) => serde_json::from_str(json).map(of_rest).map_err(invalid),
            (Some(Kind::Http), _) => serde_json::from_str(json).map(of_http).map_err(invalid),
            (Some(Kind::Alb), _) => serde_json::from_str(json).map(of_alb).map_err(invalid),
            (None, Ok(())) => Err(EventError::NoRequest(peek.fields)),
            (None, Err(error)) => Err(EventError::Invalid(error.to_string())),
        }
    }
}

fn of_rest(event: ApiGatewayProxyRequest) -> Event {
    let multi = event.multi_value_query_string_parameters;
    let query = if multi.is_empty() {
        event.query_string_parameters.to_query_string()
    } else {
        multi.to_query_string()
    };
    let path = event.path.unwrap_or_default();
    let raw = Raw {
        method: event.http_method,
        path: without_stage(&path, event.request_context.stage.as_deref()),
        query: &query,
        headers: merged(&event.headers, event.multi_value_headers),
        body: event.body,
        is_base64: event.is_base64_encoded,
        context: RequestContext::ApiGatewayV1(event.request_context.clone()),
    };
    Event {
        origin: Origin::Rest,
        request: raw.into_request(),
    }
}

fn of_http(event: ApiGatewayV2httpRequest) -> Event {
    let mut headers = event.headers;
    let cookies = event.cookies.map(|cookies| cookies.join("; "));
    if let Some(Ok(cookies)) = cookies.map(HeaderValue::try_from) {
        headers.insert(header::COOKIE, cookies);
    }
    let path = event.raw_path.unwrap_or_default();
    let raw = Raw {
        method: event.request_context.http.method.clone(),
        path: without_stage(&path, event.request_context.stage.as_deref()),
        query: event.raw_query_string.as_deref().unwrap_or_default(),
        headers,
        body: event.body,
        is_base64: event.is_base64_encoded,
        context: RequestContext::ApiGatewayV2(event.request_context.clone()),
    };
    Event {
        origin: Origin::Http,
        request: raw.into_request(),
    }
}

fn of_alb(event: AlbTargetGroupRequest) -> Event {
    let multi_value_headers = !event.multi_value_headers.is_empty();
    let multi = event.multi_value_query_string_parameters;
    let query = if multi.is_empty() {
        event.query_string_parameters.to_query_string()
    } else {
        multi.to_query_string()
    };
    let raw = Raw {
        method: event.http_method,
        path: event.path.as_deref().unwrap_or_default(),
        query: &query,
        headers: merged(&event.headers, event.multi_value_headers),
        body: event.body,
        is_base64: event.is_base64_encoded,
        context: RequestContext::Alb(event.request_context),
    };
    Event {
        origin: Origin::Alb {
            multi_value_headers,
        },
        request: raw.into_request(),
    }
}

/// Some senders repeat every header in both maps; none may count twice.
fn merged(single: &HeaderMap, multi: HeaderMap) -> HeaderMap {
    let mut headers = multi;
    for (name, value) in single {
        if !headers.contains_key(name) {
            headers.insert(name.clone(), value.clone());
        }
    }
    headers
}

/// API Gateway puts its stage's name before the path, except for `$default` and behind custom
/// domains.
fn without_stage<'a>(path: &'a str, stage: Option<&str>) -> &'a str {
    let stage = stage
        .filter(|stage| !stage.is_empty())
        .unwrap_or("$default");
    let rest = path
        .strip_prefix('/')
        .and_then(|path| path.strip_prefix(stage));
    match rest {
        Some("") => "/",
        Some(rest) if rest.starts_with('/') => rest,
        _ => path,
    }
}

/// What all kinds of events have.
struct Raw<'a> {
    method: Method,
    path: &'a str,
    query: &'a str,
    headers: HeaderMap,
    body: Option<String>,
    is_base64: bool,
    context: RequestContext,
}

impl Raw<'_> {
    fn into_request(self) -> Result<Request<Body>, Box<Response>> {
        let uri = uri_of(self.path, self.query);
        let body = match (self.body, self.is_base64) {
            (None, _) => Bytes::new(),
            (Some(text), false) => Bytes::from(text),
            (Some(text), true) => match BASE64_STANDARD.decode(text) {
                Ok(bytes) => Bytes::from(bytes),
                Err(_) => return Err(Box::new(oxp::undecodable_body())),
            },
        };
        let mut request = Request::new(Body::from(body));
        *request.method_mut() = self.method;
        *request.uri_mut() = uri;
        *request.headers_mut() = self.headers;
        // Where routes of one's own find it: lambda_http's RequestExt.
        request.extensions_mut().insert(self.context);
        Ok(request)
    }
}

/// REST APIs and load balancers hand over paths and queries in which anything may stand.
fn uri_of(path: &str, query: &str) -> Uri {
    const NOT_IN_PATH: &AsciiSet = &CONTROLS
        .add(b' ')
        .add(b'"')
        .add(b'#')
        .add(b'<')
        .add(b'>')
        .add(b'?')
        .add(b'`')
        .add(b'{')
        .add(b'}')
        .add(b'\\')
        .add(b'^')
        .add(b'|');
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
    let mut text = String::with_capacity(path.len() + query.len() + 2);
    if !path.starts_with('/') {
        text.push('/');
    }
    text.extend(utf8_percent_encode(path, NOT_IN_PATH));
    if !query.is_empty() {
        text.push('?');
        text.extend(utf8_percent_encode(query, NOT_IN_QUERY));
    }
    // What is no URI even now (one that is too long) is no path of ours either.
    Uri::try_from(text).unwrap_or_else(|_| Uri::from_static("/-"))
}

/// Reads an event's first fields until they tell its kind, then stops.
#[derive(Default)]
struct Peek {
    kind: Option<Kind>,
    fields: Vec<String>,
}

#[derive(Deserialize)]
struct ContextKeys {
    elb: Option<IgnoredAny>,
    http: Option<IgnoredAny>,
}

impl<'de> Visitor<'de> for &mut Peek {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            self.kind = match key.as_str() {
                "rawPath" | "rawQueryString" | "routeKey" => Some(Kind::Http),
                "resource" => Some(Kind::Rest),
                "requestContext" => match map.next_value::<ContextKeys>()? {
                    ContextKeys { elb: Some(_), .. } => Some(Kind::Alb),
                    ContextKeys { http: Some(_), .. } => Some(Kind::Http),
                    ContextKeys { .. } => Some(Kind::Rest),
                },
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    None
                }
            };
            if self.kind.is_some() {
                return Err(A::Error::custom("known"));
            }
            if self.fields.len() < 8 {
                self.fields.push(key.chars().take(40).collect());
            }
        }
        Ok(())
    }
}

/// Why an event cannot be answered as an HTTP request.
#[derive(Debug)]
pub(crate) enum EventError {
    /// An event of another service.
    NoRequest(Vec<String>),
    /// The event of a front door, damaged.
    Invalid(String),
}

impl fmt::Display for EventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const EXPECTED: &str = "This function answers HTTP requests from API Gateway, Function \
                                URLs and Application Load Balancers";
        match self {
            Self::NoRequest(fields) if fields.is_empty() => {
                write!(f, "{EXPECTED}; the event is an empty object")
            }
            Self::NoRequest(fields) => {
                write!(
                    f,
                    "{EXPECTED}; the event has the fields {}",
                    fields.join(", ")
                )
            }
            Self::Invalid(error) => {
                write!(
                    f,
                    "{EXPECTED}; the event looks like one of theirs, but: {error}"
                )
            }
        }
    }
}

impl std::error::Error for EventError {}
