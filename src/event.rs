//! The conversion of Lambda events to HTTP requests, and of HTTP responses to the event source's
//! format. An event that is a call by itself is passed to the engine.
//!
//! `lambda_http` supports these formats too, but tries one after another, loses the reason why none
//! matches, and panics on invalid base64. Here the event's first fields determine its format,
//! the event is parsed once, and errors are reported.

mod agentcore;
mod format;
mod principal;
mod request;
mod response;

use std::{sync::Arc, time::SystemTime};

use axum::{
    Router,
    body::{Body, Bytes},
    response::Response,
};
use http::{Request, header::CONTENT_TYPE};
use lambda_http::{
    lambda_runtime::{Context, Diagnostic, tower::ServiceExt},
    request::RequestContext,
};
use serde::{Deserialize, de::IgnoredAny};

use crate::{
    Caller, EventKind,
    arrival::Invocation,
    call::background::Ticket,
    protocol::{answer_direct_call, app::AppState, driver},
};
pub(crate) use agentcore::read_client_context;
use format::{EventError, EventFormat, format_of, parse};
#[cfg(test)]
pub(crate) use response::EventSource;
pub(crate) use response::StreamedResponse;

/// The name of the only field of the event with which a function invokes itself, to perform a task. No
/// other event has it.
pub(crate) const TASK_EVENT: &str = "lambda_tools";

/// The earliest valid deadline, 9 September 2001, in milliseconds since 1970. cargo-lambda's
/// emulator sends the time limit, 600,000, instead of the time when the invocation ends.
const EARLIEST_DEADLINE: u64 = 1_000_000_000_000;

pub(crate) fn deadline_of(context: &Context) -> Option<SystemTime> {
    (context.deadline > EARLIEST_DEADLINE).then(|| context.deadline())
}

/// The type of the error for an event that is not handled.
pub(crate) const UNSUPPORTED_EVENT: &str = "UnsupportedEvent";

/// Returns the error with which an invocation fails.
pub(crate) fn diagnostic(error_type: &str, message: impl Into<String>) -> Diagnostic {
    Diagnostic {
        error_type: error_type.into(),
        error_message: message.into(),
    }
}

impl From<EventError> for Diagnostic {
    fn from(error: EventError) -> Self {
        diagnostic(UNSUPPORTED_EVENT, error.to_string())
    }
}

/// The response to an event.
pub(crate) enum EventResponse {
    /// JSON.
    Whole(Bytes),
    /// A response that is sent in parts.
    Stream(Box<StreamedResponse>),
}

/// Handles one event.
///
/// The invoker decides before the fields of the event do, which a model may have chosen.
pub(crate) async fn invoke(
    app: &Arc<AppState>,
    router: Router,
    event: &str,
    context: Context,
    is_cold: bool,
) -> Result<EventResponse, Diagnostic> {
    let accept = |kind| {
        let refusal = EventError::NotAccepted(kind);
        app.events.contains(&kind).then_some(kind).ok_or(refusal)
    };
    let invocation = Invocation {
        deadline: deadline_of(&context),
        request_id: Some(&*context.request_id)
            .filter(|id| !id.is_empty())
            .map(str::to_owned),
        xray: context.xray_trace_id.clone(),
        is_cold,
        ..Invocation::default()
    };
    if agentcore::is_call(&context) {
        accept(EventKind::AgentCore)?;
        let body = agentcore::answer(app, event, &context, invocation).await?;
        return Ok(answer(body));
    }
    let (kind, event) = match format_of(event)? {
        EventFormat::Rest => {
            let kind = accept(EventKind::RestApi)?;
            (kind, parse(event).map(request::of_rest)?)
        }
        // Accepted like the same event of a REST API, but never answered with a stream.
        EventFormat::HttpAsRest => {
            accept(EventKind::RestApi)?;
            (EventKind::HttpApi, parse(event).map(request::of_rest)?)
        }
        EventFormat::Http => {
            let parsed = parse(event)?;
            let kind = accept(request::kind_of(&parsed))?;
            (kind, request::of_http(parsed))
        }
        EventFormat::Alb => {
            let kind = accept(EventKind::LoadBalancer)?;
            (kind, parse(event).map(request::of_load_balancer)?)
        }
        EventFormat::WarmUp => {
            accept(EventKind::WarmUp)?;
            return Ok(answer(Bytes::new()));
        }
        // Only the function itself sends it, if it has tasks, and never with a client context.
        EventFormat::Task if context.client_context.is_some() || app.engine.worker.is_none() => {
            return Err(EventError::NotHttp(vec![TASK_EVENT.into()]).into());
        }
        EventFormat::Task => return perform_task(app, event, invocation).await,
        EventFormat::Message => {
            accept(EventKind::Direct)?;
            return Ok(answer(message(router, event, context, invocation).await));
        }
        EventFormat::Direct => {
            accept(EventKind::Direct)?;
            return Ok(answer(answer_direct_call(app, event, invocation).await));
        }
    };
    let streams = app.streaming.contains(&kind);
    let (verified, caller) = event
        .principal
        .map_or((None, None), |it| (it.verified, Some(it.caller)));
    let invocation = Invocation {
        max_response_size: Some(event.source.largest_response()),
        streams,
        base_url: event.request.extensions().get().and_then(base_url),
        verified,
        caller,
        ..invocation
    };
    let response = routed(router, event.request, context, invocation).await;
    let (parts, body) = response.into_parts();
    let response = StreamedResponse {
        source: event.source,
        parts,
        body,
    };
    if streams {
        return Ok(EventResponse::Stream(Box::new(response)));
    }
    response.whole().await.map(EventResponse::Whole)
}

/// Returns an answer with this body. AWS's client takes an empty object for no answer, and a
/// notification has no body.
fn answer(body: Bytes) -> EventResponse {
    let is_json = serde_json::from_slice::<IgnoredAny>(&body).is_ok();
    let nothing = Bytes::from_static(b"{}");
    EventResponse::Whole(if is_json { body } else { nothing })
}

/// Performs a task. Nobody waits for the answer; an error goes to the function's destination for
/// failed events.
async fn perform_task(
    app: &Arc<AppState>,
    event: &str,
    invocation: Invocation,
) -> Result<EventResponse, Diagnostic> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct TaskEvent {
        lambda_tools: Ticket,
    }

    let unknown = || diagnostic(UNSUPPORTED_EVENT, "The event belongs to no task.");
    let event: TaskEvent = serde_json::from_str(event).map_err(|_| unknown())?;
    match driver::perform(app, &event.lambda_tools, invocation).await {
        Ok(true) => Ok(answer(Bytes::from_static(b"null"))),
        Ok(false) => Err(unknown()),
        Err(cause) => Err(diagnostic("TaskNotStarted", cause.to_string())),
    }
}

/// Answers a message as `POST /mcp` does, for a caller that IAM has admitted.
async fn message(
    router: Router,
    event: &str,
    context: Context,
    mut invocation: Invocation,
) -> Bytes {
    let request = Request::post("/mcp").header(CONTENT_TYPE, "application/json");
    let request = request.body(Body::from(event.to_owned()));
    let request = request.expect("our own request is valid");
    invocation.caller = Some(Caller::Invoker);
    let response = routed(router, request, context, invocation).await;
    response::collected(response.into_body())
        .await
        .unwrap_or_default()
}

async fn routed(
    router: Router,
    mut request: Request<Body>,
    context: Context,
    invocation: Invocation,
) -> Response {
    let extensions = request.extensions_mut();
    extensions.insert(Arc::new(invocation));
    // Routes added by the program read it through lambda_http's `RequestExt`.
    extensions.insert(context);
    let Ok(response) = router.oneshot(request).await;
    response
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
