//! The Lambda function: one event, one answer.

use std::time::Duration;

use axum::{Router, body::Body, response::Response};
use http::Request;
use http_body_util::BodyExt;
use lambda_http::{
    lambda_runtime::{self, Diagnostic, LambdaEvent, service_fn, tower::ServiceExt},
    request::RequestContext,
};
use serde_json::value::RawValue;

use super::{
    Error, REAL,
    answer::{self, Answer},
    event::{Event, Origin},
    kind::EventError,
    log,
};
use crate::{Server, host::Invocation, wire::oxp};

/// 9 September 2001, in milliseconds since 1970. A deadline before that is none: cargo-lambda's
/// emulator sends how long an invocation may take, 600,000, in the place of the time it ends.
const NO_TIME_BEFORE: u64 = 1_000_000_000_000;

/// Initialisation may take 10 seconds before Lambda starts it anew.
const LONGEST_WARM_UP: Duration = Duration::from_secs(4);

/// Takes events from the runtime API until the platform ends the process.
pub(super) async fn run(server: Server) -> Result<(), Error> {
    log::to_cloudwatch();
    let (router, warm_up) = server.served_on(REAL, REAL);
    // Before the first event is asked for, Lambda gives a function all the CPU it has, which is
    // when a connection costs least. The first call waits for it no longer than this.
    // Not a task of its own: most have nothing to get ready, and would wait for another thread.
    let _ = tokio::time::timeout(LONGEST_WARM_UP, warm_up.run()).await;
    let function = service_fn(move |event: LambdaEvent<Box<RawValue>>| {
        let router = router.clone();
        async move {
            let answer = invoke(router, event.payload.get(), event.context).await;
            answer.map_err(|error| {
                tracing::error!(%error, "the event is not an HTTP request");
                Diagnostic {
                    error_type: "UnsupportedEvent".into(),
                    error_message: error.to_string(),
                }
            })
        }
    });
    // As a task of its own it runs on one of the runtime's workers, beside the connection to the
    // runtime API and the tools. In `main`'s place each of them would have to wake another thread.
    tokio::spawn(lambda_runtime::run(function)).await?
}

/// The answer to one event.
pub(crate) async fn invoke(
    router: Router,
    event: &str,
    context: lambda_runtime::Context,
) -> Result<Answer, EventError> {
    let Event { origin, request } = Event::parse(event)?;
    let response = match request {
        Ok(request) => respond(router, request, context, origin.largest_answer()).await,
        Err(response) => *response,
    };
    let (parts, body) = response.into_parts();
    match body
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
    {
        Ok(body) if answer::fits(&body, origin.largest_answer()) => {
            Ok(Answer::new(origin, parts, body))
        }
        Ok(_) => Ok(failed(origin, "The response is larger than what can be sent.").await),
        Err(error) => Ok(failed(origin, &format!("The response broke off: {error}")).await),
    }
}

async fn respond(
    router: Router,
    mut request: Request<Body>,
    context: lambda_runtime::Context,
    largest_answer: usize,
) -> Response {
    let deadline = (context.deadline > NO_TIME_BEFORE).then(|| context.deadline());
    let extensions = request.extensions_mut();
    let base_url = extensions.get().and_then(base_url);
    extensions.insert(Invocation {
        deadline,
        largest_answer,
        base_url,
    });
    // Where routes of one's own find it: lambda_http's RequestExt.
    extensions.insert(context);
    match router.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
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

async fn failed(origin: Origin, detail: &str) -> Answer {
    let (parts, body) = oxp::internal_error(detail).into_parts();
    let body = body
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes);
    Answer::new(origin, parts, body.unwrap_or_default())
}
