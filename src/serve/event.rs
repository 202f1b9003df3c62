//! Lambda events: which HTTP front door sent one, and the request in it.
//!
//! `lambda_http` knows these shapes too, but tries them one after the other, loses the reason why
//! none fits, and panics on base64 that is none. Here the kind is read off the event's first
//! fields, the event is parsed once, and what is wrong with it is said.

use axum::{body::Body, response::Response};
use http::{HeaderMap, HeaderValue, Request, header};
use lambda_http::{
    aws_lambda_events::{
        alb::AlbTargetGroupRequest,
        apigw::{ApiGatewayProxyRequest, ApiGatewayV2httpRequest},
    },
    request::RequestContext,
};
use serde::Deserialize;

use super::{
    kind::{EventError, Kind, kind_of},
    request::{Raw, as_it_came, encoded},
};
use crate::host::LARGEST_PAYLOAD;

/// Which answer the sender of an event expects.
#[derive(Clone, Copy, Debug)]
pub(super) enum Origin {
    Rest,
    Http,
    Alb { multi_value_headers: bool },
}

impl Origin {
    /// How many bytes an answer may have: Lambda's quota, and for load balancers their own.
    pub(super) fn largest_answer(self) -> usize {
        match self {
            Self::Rest | Self::Http => LARGEST_PAYLOAD,
            Self::Alb { .. } => 1_000_000,
        }
    }
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
        match kind_of(json)? {
            Kind::Rest => parse(json).map(of_rest),
            Kind::Http => parse(json).map(of_http),
            Kind::Alb => parse(json).map(of_alb),
        }
    }
}

fn parse<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, EventError> {
    serde_json::from_str(json).map_err(|error| EventError::invalid(&error))
}

fn of_rest(event: ApiGatewayProxyRequest) -> Event {
    let multi = event.multi_value_query_string_parameters;
    let query = if multi.is_empty() {
        encoded(&event.query_string_parameters)
    } else {
        encoded(&multi)
    };
    let path = event.path.unwrap_or_default();
    let context = event.request_context;
    let raw = Raw {
        method: event.http_method,
        path: match &context.path {
            // As it is with REST APIs: the stage stands in the context's path only.
            Some(whole) if *whole != path => &path,
            _ => without_stage(&path, context.stage.as_deref()),
        },
        query: &query,
        headers: merged(&event.headers, event.multi_value_headers),
        body: event.body,
        is_base64: event.is_base64_encoded,
        context: RequestContext::ApiGatewayV1(context),
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
    let context = event.request_context;
    // Behind a custom domain the path begins with the mapping, and the stage is not in it.
    let domain = context.domain_name.as_deref();
    let has_stage = domain.is_none_or(|domain| domain.contains(".execute-api."));
    let stage = context.stage.as_deref().filter(|_| has_stage);
    let raw = Raw {
        method: context.http.method.clone(),
        path: without_stage(&path, stage),
        query: event.raw_query_string.as_deref().unwrap_or_default(),
        headers,
        body: event.body,
        is_base64: event.is_base64_encoded,
        context: RequestContext::ApiGatewayV2(context),
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
        as_it_came(&event.query_string_parameters)
    } else {
        as_it_came(&multi)
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
