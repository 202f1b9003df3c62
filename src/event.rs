//! Lambda events to requests, and answers back: a file for each front door.
//!
//! `lambda_http` knows these shapes too, but tries them one after the other, loses the reason why
//! none fits, and panics on base64 that is none. Here the kind is read off the event's first
//! fields, the event is parsed once, and what is wrong with it is said.

mod encoding;
mod http_api;
mod kind;
mod load_balancer;
mod parse;
mod path;
mod principal;
mod request;
mod rest;

use std::{sync::Arc, time::SystemTime};

use axum::{
    Router,
    body::{Body, Bytes},
    response::Response,
};
use http::{Request, response::Parts};
use http_body_util::BodyExt;
use lambda_http::{
    aws_lambda_events::{
        alb::AlbTargetGroupResponse,
        apigw::{ApiGatewayProxyResponse, ApiGatewayV2httpResponse},
    },
    lambda_runtime::{self, tower::ServiceExt},
    request::RequestContext,
};
use serde::Serialize;

use crate::{Caller, arrival::Invocation, payload::LARGEST_PAYLOAD, protocol::problem};
use kind::{EventError, EventKind, kind_of};
use parse::parse;

/// Which answer the sender of an event expects.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EventSource {
    Rest,
    Http,
    Alb { multi_value_headers: bool },
}

impl EventSource {
    /// How many bytes an answer may have: Lambda's quota, and for load balancers their own.
    pub(crate) fn largest_answer(self) -> usize {
        match self {
            Self::Rest | Self::Http => LARGEST_PAYLOAD,
            Self::Alb { .. } => 1_000_000,
        }
    }
}

/// The request in an event.
pub(crate) struct Event {
    pub(crate) origin: EventSource,
    /// The inner error is the answer to a request whose body cannot be decoded.
    pub(crate) request: Result<Request<Body>, Box<Response>>,
    /// Whom the platform has let through, where it has asked.
    pub(crate) caller: Option<Caller>,
}

impl Event {
    /// Parses an event.
    pub(crate) fn parse(json: &str) -> Result<Self, EventError> {
        match kind_of(json)? {
            EventKind::Rest => parse(json).map(rest::request),
            EventKind::Http => parse(json).map(http_api::request),
            EventKind::Alb => parse(json).map(load_balancer::request),
        }
    }
}

/// 9 September 2001, in milliseconds since 1970. A deadline before that is none: cargo-lambda's
/// emulator sends how long an invocation may take, 600,000, in the place of the time it ends.
const NO_TIME_BEFORE: u64 = 1_000_000_000_000;

pub(crate) fn deadline_of(context: &lambda_runtime::Context) -> Option<SystemTime> {
    (context.deadline > NO_TIME_BEFORE).then(|| context.deadline())
}

/// The answer to one event.
pub(crate) async fn invoke(
    router: Router,
    event: &str,
    context: lambda_runtime::Context,
    is_cold: bool,
) -> Result<EventResponse, EventError> {
    let Event {
        origin,
        request,
        caller,
    } = Event::parse(event)?;
    let response = match request {
        Ok(request) => {
            let invocation = Invocation {
                deadline: deadline_of(&context),
                largest_answer: origin.largest_answer(),
                base_url: request.extensions().get().and_then(base_url),
                request_id: Some(&*context.request_id)
                    .filter(|id| !id.is_empty())
                    .map(str::to_owned),
                xray: context.xray_trace_id.clone(),
                is_cold,
                caller,
            };
            respond(router, request, context, invocation).await
        }
        Err(response) => *response,
    };
    let (parts, body) = response.into_parts();
    match body
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
    {
        Ok(body) if encoding::fits(&body, origin.largest_answer()) => {
            Ok(EventResponse::new(origin, parts, body))
        }
        Ok(_) => Ok(failed(origin, "The response is larger than what can be sent.").await),
        Err(error) => Ok(failed(origin, &format!("The response broke off: {error}")).await),
    }
}

async fn respond(
    router: Router,
    mut request: Request<Body>,
    context: lambda_runtime::Context,
    invocation: Invocation,
) -> Response {
    let extensions = request.extensions_mut();
    extensions.insert(Arc::new(invocation));
    // Where routes of one's own find it: lambda_http's RequestExt.
    extensions.insert(context);
    match router.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// The answer in the form that the event's sender expects.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum EventResponse {
    Rest(ApiGatewayProxyResponse),
    Http(ApiGatewayV2httpResponse),
    Alb(AlbTargetGroupResponse),
}

impl EventResponse {
    fn new(origin: EventSource, parts: Parts, body: Bytes) -> Self {
        match origin {
            EventSource::Rest => Self::Rest(rest::answer(parts, body)),
            EventSource::Http => Self::Http(http_api::answer(parts, body)),
            EventSource::Alb {
                multi_value_headers,
            } => Self::Alb(load_balancer::answer(parts, body, multi_value_headers)),
        }
    }
}

/// Where the platform says that the function is. Load balancers do not.
fn base_url(context: &RequestContext) -> Option<String> {
    let (domain, stage) = match context {
        RequestContext::ApiGatewayV1(it) => (it.domain_name.as_deref()?, it.stage.as_deref()),
        RequestContext::ApiGatewayV2(it) => (it.domain_name.as_deref()?, it.stage.as_deref()),
        _ => return None,
    };
    // Behind a custom domain the stage is not in the path.
    let is_gateway = domain.contains(".execute-api.");
    match stage.filter(|stage| is_gateway && !stage.is_empty() && *stage != "$default") {
        Some(stage) => Some(format!("https://{domain}/{stage}")),
        None => Some(format!("https://{domain}")),
    }
}

async fn failed(origin: EventSource, detail: &str) -> EventResponse {
    let (parts, body) = problem::internal_error(detail).into_parts();
    let body = body
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes);
    EventResponse::new(origin, parts, body.unwrap_or_default())
}
