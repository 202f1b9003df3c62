//! The conversion of Lambda events to HTTP requests, and of HTTP responses to the event source's
//! format, with one file per event source. An event that is a call by itself is passed to the
//! engine.
//!
//! `lambda_http` supports these formats too, but tries one after another, loses the reason why none
//! matches, and panics on invalid base64. Here the event's first fields determine its format,
//! the event is parsed once, and errors are reported.

mod agentcore;
mod client_context;
mod encoding;
mod format;
mod http_api;
mod load_balancer;
mod parse;
mod principal;
mod request;
mod rest;
mod streamed;
mod task;

use std::{sync::Arc, time::SystemTime};

use axum::{
    Router,
    body::{Body, Bytes},
    response::Response,
};
use http::{Request, header::CONTENT_TYPE, response::Parts};
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
use serde_json::value::RawValue;

use crate::{
    Caller, EventKind,
    arrival::{Invocation, InvocationError},
    payload::LARGEST_PAYLOAD,
    protocol::{
        admission::AppState,
        direct::{Admission, EventCall},
        direct_calls,
    },
};
pub(crate) use client_context::read_client_context;
use encoding::EventBody;
use format::{EventError, EventFormat, format_of};
use parse::parse;
use principal::Principal;
pub(crate) use streamed::StreamedResponse;
pub(crate) use task::FIELD as TASK_EVENT;

/// The source of an event, which determines the format of its response.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EventSource {
    Rest,
    Http,
    Alb { multi_value_headers: bool },
}

impl EventSource {
    /// Returns the maximum size of a response in bytes: Lambda's quota, or the load balancer's own.
    pub(crate) fn largest_response(self) -> usize {
        match self {
            Self::Rest | Self::Http => LARGEST_PAYLOAD,
            Self::Alb { .. } => 1_000_000,
        }
    }
}

/// The request in an event.
pub(crate) struct Event {
    pub(crate) source: EventSource,
    pub(crate) request: Request<Body>,
    /// The caller, if the platform has authenticated one.
    pub(crate) principal: Option<Principal>,
}

/// The earliest valid deadline, 9 September 2001, in milliseconds since 1970. cargo-lambda's
/// emulator sends the time limit, 600,000, instead of the time when the invocation ends.
const EARLIEST_DEADLINE: u64 = 1_000_000_000_000;

pub(crate) fn deadline_of(context: &lambda_runtime::Context) -> Option<SystemTime> {
    (context.deadline > EARLIEST_DEADLINE).then(|| context.deadline())
}

/// The type of the error for an event that is not handled.
pub(crate) const UNSUPPORTED_EVENT: &str = "UnsupportedEvent";

impl From<EventError> for InvocationError {
    fn from(error: EventError) -> Self {
        Self {
            kind: UNSUPPORTED_EVENT,
            message: error.to_string(),
        }
    }
}

/// Handles one event.
///
/// The invoker decides before the fields of the event do, which a model may have chosen.
pub(crate) async fn invoke(
    app: &Arc<AppState>,
    router: Router,
    event: &str,
    context: lambda_runtime::Context,
    is_cold: bool,
) -> Result<EventResponse, InvocationError> {
    let accept = |kind| {
        let refusal = EventError::NotAccepted(kind);
        app.events.contains(&kind).then_some(()).ok_or(refusal)
    };
    if agentcore::is_call(&context) {
        accept(EventKind::AgentCore)?;
        let invocation = invocation_of(&context, is_cold);
        return Ok(answer(
            &agentcore::answer(app, event, &context, invocation).await?,
        ));
    }
    let (kind, request) = match format_of(event)? {
        EventFormat::Rest => {
            accept(EventKind::RestApi)?;
            (EventKind::RestApi, parse(event).map(rest::request)?)
        }
        // Accepted like the same event of a REST API, but never answered with a stream.
        EventFormat::HttpAsRest => {
            accept(EventKind::RestApi)?;
            (EventKind::HttpApi, parse(event).map(rest::request)?)
        }
        EventFormat::Http => {
            let parsed = parse(event)?;
            let kind = http_api::kind_of(&parsed);
            accept(kind)?;
            (kind, http_api::request(parsed))
        }
        EventFormat::Alb => {
            let kind = EventKind::LoadBalancer;
            accept(kind)?;
            (kind, parse(event).map(load_balancer::request)?)
        }
        EventFormat::WarmUp => {
            accept(EventKind::WarmUp)?;
            return Ok(answer(b"{}"));
        }
        // Only the function itself sends it, and never with a client context.
        EventFormat::Task if context.client_context.is_some() => {
            return Err(EventError::NotHttp(vec![TASK_EVENT.into()]).into());
        }
        EventFormat::Task => {
            let answer = task::answer(app, event, invocation_of(&context, is_cold)).await?;
            return Ok(EventResponse::Answer(answer));
        }
        EventFormat::Message => {
            accept(EventKind::Direct)?;
            return Ok(answer(&message(router, event, context, is_cold).await));
        }
        EventFormat::Direct => {
            accept(EventKind::Direct)?;
            // IAM has admitted whoever invokes the function itself, so the call needs no credentials.
            let call = EventCall {
                request: Request::new(Bytes::copy_from_slice(event.as_bytes())),
                admission: Admission::Admitted(Caller::Invoker),
                invocation: invocation_of(&context, is_cold),
            };
            return Ok(answer(&direct_calls::answer(app, call).await));
        }
    };
    let streams = app.streaming.contains(&kind);
    Ok(respond(router, request, context, is_cold, streams).await)
}

/// Returns an answer with this body. AWS's client takes an empty object for no answer, and a
/// notification has no body.
fn answer(body: &[u8]) -> EventResponse {
    let nothing = || RawValue::from_string("{}".to_owned()).expect("it is JSON");
    EventResponse::Answer(serde_json::from_slice(body).unwrap_or_else(|_| nothing()))
}

/// Answers a message as `POST /mcp` does, for a caller that IAM has admitted.
async fn message(
    router: Router,
    event: &str,
    context: lambda_runtime::Context,
    is_cold: bool,
) -> Bytes {
    let request = Request::post("/mcp").header(CONTENT_TYPE, "application/json");
    let request = request.body(Body::from(event.to_owned()));
    let request = request.expect("our own request is valid");
    let invocation = Invocation {
        caller: Some(Caller::Invoker),
        ..invocation_of(&context, is_cold)
    };
    let response = routed(router, request, context, invocation).await;
    collected(response.into_body()).await.unwrap_or_default()
}

fn invocation_of(context: &lambda_runtime::Context, is_cold: bool) -> Invocation {
    Invocation {
        deadline: deadline_of(context),
        request_id: Some(&*context.request_id)
            .filter(|id| !id.is_empty())
            .map(str::to_owned),
        xray: context.xray_trace_id.clone(),
        is_cold,
        ..Invocation::default()
    }
}

async fn respond(
    router: Router,
    event: Event,
    context: lambda_runtime::Context,
    is_cold: bool,
    streams: bool,
) -> EventResponse {
    let Event {
        source,
        request,
        principal,
    } = event;
    let invocation = Invocation {
        max_response_size: source.largest_response(),
        streams,
        base_url: request.extensions().get().and_then(base_url),
        verified: principal.as_ref().and_then(|it| it.verified.clone()),
        caller: principal.map(|it| it.caller),
        ..invocation_of(&context, is_cold)
    };
    let response = routed(router, request, context, invocation).await;
    let (parts, body) = response.into_parts();
    let response = StreamedResponse {
        source,
        parts,
        body,
    };
    if streams {
        return EventResponse::Stream(Box::new(response));
    }
    response.whole().await
}

async fn routed(
    router: Router,
    mut request: Request<Body>,
    context: lambda_runtime::Context,
    invocation: Invocation,
) -> Response {
    let extensions = request.extensions_mut();
    extensions.insert(Arc::new(invocation));
    // Routes added by the program read it through lambda_http's `RequestExt`.
    extensions.insert(context);
    match router.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// The response in the format of the event's source.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum EventResponse {
    Http {
        #[serde(flatten)]
        head: Box<ResponseHead>,
        body: EventBody,
    },
    /// The answer to a call by itself.
    Answer(Box<RawValue>),
    /// A response that is sent in parts, not as JSON.
    #[serde(skip)]
    Stream(Box<StreamedResponse>),
}

/// A response without its body.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum ResponseHead {
    Rest(ApiGatewayProxyResponse),
    Http(ApiGatewayV2httpResponse),
    Alb(AlbTargetGroupResponse),
}

impl EventResponse {
    fn new(source: EventSource, parts: Parts, body: EventBody) -> Self {
        let is_base64 = body.is_base64();
        let head = match source {
            EventSource::Rest => ResponseHead::Rest(rest::response(parts, is_base64)),
            EventSource::Alb {
                multi_value_headers,
            } => ResponseHead::Alb(load_balancer::response(
                parts,
                is_base64,
                multi_value_headers,
            )),
            EventSource::Http => ResponseHead::Http(http_api::response(parts, is_base64)),
        };
        Self::Http {
            head: Box::new(head),
            body,
        }
    }

    /// Encodes the response as JSON.
    pub(crate) fn encode(self) -> serde_json::Result<Bytes> {
        serde_json::to_vec(&self).map(Bytes::from)
    }
}

/// Returns the function's URL, according to the platform. Load balancers do not send it.
fn base_url(context: &RequestContext) -> Option<String> {
    let (domain, stage) = match context {
        RequestContext::ApiGatewayV1(it) => (it.domain_name.as_deref()?, it.stage.as_deref()),
        RequestContext::ApiGatewayV2(it) => (it.domain_name.as_deref()?, it.stage.as_deref()),
        _ => return None,
    };
    // With a custom domain, the stage is not in the path.
    let is_gateway = domain.contains(".execute-api.");
    match stage.filter(|stage| is_gateway && !stage.is_empty() && *stage != "$default") {
        Some(stage) => Some(format!("https://{domain}/{stage}")),
        None => Some(format!("https://{domain}")),
    }
}

async fn collected(body: Body) -> Result<Bytes, axum::Error> {
    Ok(body.collect().await?.to_bytes())
}
