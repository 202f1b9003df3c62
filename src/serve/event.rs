//! Lambda events: which HTTP front door sent one, and the request in it.
//!
//! `lambda_http` knows these shapes too, but tries them one after the other, loses the reason why
//! none fits, and panics on base64 that is none. Here the kind is read off the event's first
//! fields, the event is parsed once, and what is wrong with it is said.

use axum::{body::Body, response::Response};
use http::{HeaderMap, HeaderName, HeaderValue, Request, header};
use lambda_http::{
    aws_lambda_events::{
        alb::AlbTargetGroupRequest,
        apigw::{ApiGatewayProxyRequest, ApiGatewayV2httpRequest},
    },
    request::RequestContext,
};
use serde::Deserialize;
use serde_json::Value;

use super::{
    kind::{EventError, Kind, kind_of},
    principal,
    request::{Raw, as_it_came, encoded},
};
use crate::{Caller, host::LARGEST_PAYLOAD};

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
    /// Whom the platform has let through, where it has asked.
    pub(super) caller: Option<Caller>,
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

fn parse<T: for<'de> Deserialize<'de>>(json: &str) -> Result<T, EventError> {
    serde_json::from_str(json).or_else(|error| {
        // A failed invocation raises the alarm, and one odd header of a stranger is no reason.
        without_invalid_headers(json)
            .and_then(|event| serde_json::from_value(event).ok())
            .ok_or_else(|| EventError::invalid(&error))
    })
}

/// The event without the headers that are not valid HTTP, if there are any.
fn without_invalid_headers(json: &str) -> Option<Value> {
    let mut event: Value = serde_json::from_str(json).ok()?;
    let mut dropped = 0;
    for headers in ["headers", "multiValueHeaders"] {
        if let Some(headers) = event.get_mut(headers).and_then(Value::as_object_mut) {
            headers.retain(|name, value| {
                let before = dropped;
                dropped += invalid_in(value);
                let is_header = !value.is_null() && HeaderName::try_from(name).is_ok();
                dropped += usize::from(!is_header && dropped == before);
                is_header
            });
        }
    }
    if dropped == 0 {
        return None;
    }
    tracing::warn!(dropped, "headers that are not valid HTTP are left out");
    Some(event)
}

/// Takes the values that are not valid out, and says how many; null is left where all are gone.
fn invalid_in(value: &mut Value) -> usize {
    let is_value = |value: &Value| {
        value
            .as_str()
            .is_some_and(|it| HeaderValue::try_from(it).is_ok())
    };
    let (invalid, is_gone) = if let Value::Array(values) = value {
        let before = values.len();
        values.retain(is_value);
        (before - values.len(), values.is_empty())
    } else {
        let is_gone = !is_value(value);
        (usize::from(is_gone), is_gone)
    };
    if is_gone {
        *value = Value::Null;
    }
    invalid
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
    let caller = principal::of_rest(&context);
    let raw = Raw {
        method: event.http_method,
        path: match &context.path {
            // As it is with REST APIs: the stage stands in the context's path only.
            Some(whole) if *whole != path => &path,
            // Behind a custom domain it stands in neither.
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
        origin: Origin::Rest,
        request: raw.into_request(),
        caller,
    }
}

fn of_http(event: ApiGatewayV2httpRequest) -> Event {
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
    // Behind a custom domain the path begins with the mapping, and the stage is not in it.
    let has_stage = has_stage(context.domain_name.as_deref());
    let stage = context.stage.as_deref().filter(|_| has_stage);
    let caller = principal::of_http(&context);
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
        caller,
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
        // It passes on whom it has let through in headers, which others can send as well.
        caller: None,
    }
}

/// Whether paths of this domain begin with a stage: those of API Gateway's own.
fn has_stage(domain: Option<&str>) -> bool {
    domain.is_none_or(|domain| domain.contains(".execute-api."))
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
