//! The Lambda function: one event, one answer.

use std::{
    env,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use axum::{Router, body::Body, response::Response};
use http::Request;
use http_body_util::BodyExt;
use lambda_http::{
    lambda_runtime::{self, Diagnostic, LambdaEvent, Runtime, service_fn, tower::ServiceExt},
    request::RequestContext,
};
use serde_json::value::RawValue;
use tracing::Instrument;

use super::{
    Error, REAL,
    answer::{self, Answer},
    event::{Event, Origin},
    kind::EventError,
    log, shutdown,
    telemetry::Telemetry,
};
use crate::{Server, host::Invocation, wire::oxp};

/// 9 September 2001, in milliseconds since 1970. A deadline before that is none: cargo-lambda's
/// emulator sends how long an invocation may take, 600,000, in the place of the time it ends.
const NO_TIME_BEFORE: u64 = 1_000_000_000_000;

/// Initialisation may take 10 seconds before Lambda starts it anew.
const LONGEST_WARM_UP: Duration = Duration::from_secs(4);

/// Takes events from the runtime API until the platform ends the process.
pub(super) async fn run(mut server: Server) -> Result<(), Error> {
    let telemetry = Arc::new(Telemetry::from_environment()?);
    log::to_cloudwatch(&telemetry);
    let hook = server.on_shutdown.take();
    let (router, warm_up) = server.served_on(REAL, REAL);
    shutdown::register(hook, warm_up.protection(), &telemetry).await;
    // Before the first event is asked for, Lambda gives a function all the CPU it has, which is
    // when a connection costs least. The first call waits for it no longer than this.
    // Not a task of its own: most have nothing to get ready, and would wait for another thread.
    let _ = tokio::time::timeout(LONGEST_WARM_UP, warm_up.run()).await;
    let is_cold = Arc::new(AtomicBool::new(is_waited_for()));
    let function = service_fn(move |event: LambdaEvent<Box<RawValue>>| {
        let (router, telemetry) = (router.clone(), Arc::clone(&telemetry));
        let is_cold = is_cold.swap(false, Ordering::Relaxed);
        let request_id = &*event.context.request_id;
        // What tools and routes log shows whose it is. On the level that only `off` leaves out.
        let span = tracing::error_span!(
            target: "lambda_tools::invocation",
            "invocation",
            requestId = request_id
        );
        let answered = async move {
            let deadline = deadline_of(&event.context);
            let answer = invoke(router, event.payload.get(), event.context, is_cold).await;
            telemetry.flush(deadline).await;
            answer.map_err(|error| {
                tracing::error!(%error, "the event is not an HTTP request");
                Diagnostic {
                    error_type: "UnsupportedEvent".into(),
                    error_message: error.to_string(),
                }
            })
        };
        answered.instrument(span)
    });
    // Without the layer that `lambda_runtime::run` adds, whose span ours is.
    let runtime = Runtime::new(function);
    // As a task of its own it runs on one of the runtime's workers, beside the connection to the
    // runtime API and the tools. In `main`'s place each of them would have to wake another thread.
    #[cfg(not(feature = "managed-instances"))]
    let running = tokio::spawn(runtime.run());
    #[cfg(feature = "managed-instances")]
    let running = tokio::spawn(runtime.run_concurrent());
    running.await?
}

/// Whether a caller waits while the process starts: not where Lambda starts it ahead of calls.
fn is_waited_for() -> bool {
    let kind = env::var("AWS_LAMBDA_INITIALIZATION_TYPE");
    kind.map_or(true, |kind| kind == "on-demand")
}

fn deadline_of(context: &lambda_runtime::Context) -> Option<SystemTime> {
    (context.deadline > NO_TIME_BEFORE).then(|| context.deadline())
}

/// The answer to one event.
pub(crate) async fn invoke(
    router: Router,
    event: &str,
    context: lambda_runtime::Context,
    is_cold: bool,
) -> Result<Answer, EventError> {
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
                    .map(Arc::from),
                xray: context.xray_trace_id.as_deref().map(Arc::from),
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
    invocation: Invocation,
) -> Response {
    let extensions = request.extensions_mut();
    extensions.insert(invocation);
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
