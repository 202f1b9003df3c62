//! The Lambda function: one event, one response.

use std::{
    env,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use lambda_http::lambda_runtime::{Diagnostic, LambdaEvent, Runtime, service_fn};
use serde_json::value::RawValue;
use tracing::Instrument;

use super::{Error, settings, shutdown};
use crate::{
    DirectCalls, Server,
    assemble::assemble,
    clock::REAL,
    event::{self, InvocationError},
    observe::{log, otlp::Telemetry},
};

/// Lambda restarts an initialization that takes more than 10 seconds.
const LONGEST_WARM_UP: Duration = Duration::from_secs(4);

/// Handles events from the runtime API until the platform ends the process.
pub(super) async fn run(mut server: Server) -> Result<(), Error> {
    let telemetry = Arc::new(Telemetry::from_environment()?);
    log::to_cloudwatch(&telemetry);
    settings::log(&server);
    let direct_errors = server.direct_calls == Some(DirectCalls::Errors);
    let hook = server.on_shutdown.take();
    let (router, warm_up) = assemble(server, REAL, REAL);
    shutdown::register(hook, warm_up.deduplication(), &telemetry).await;
    // Lambda gives a function its full CPU power until the function requests the first event, so
    // connecting is cheapest now. The first call waits no longer than this limit. Not spawned: most
    // functions have nothing to warm up, and would only wait for another thread.
    let _ = tokio::time::timeout(LONGEST_WARM_UP, warm_up.run()).await;
    let is_cold = Arc::new(AtomicBool::new(is_on_demand()));
    let function = service_fn(move |event: LambdaEvent<Box<RawValue>>| {
        let (router, telemetry) = (router.clone(), Arc::clone(&telemetry));
        let is_cold = is_cold.swap(false, Ordering::Relaxed);
        let request_id = &*event.context.request_id;
        // Links the log lines of tools and routes to their invocation. Only `off` disables the
        // error level.
        let span = tracing::error_span!(
            target: "lambda_tools::invocation",
            "invocation",
            requestId = request_id
        );
        let invocation = async move {
            let deadline = event::deadline_of(&event.context);
            let result = event::invoke(
                router,
                event.payload.get(),
                event.context,
                is_cold,
                direct_errors,
            )
            .await;
            telemetry.flush(deadline).await;
            result.map_err(|error| {
                if let InvocationError::Event(error) = &error {
                    tracing::error!(%error, "the event is neither an HTTP request nor a call");
                }
                Diagnostic {
                    error_type: error.kind().into(),
                    error_message: error.to_string(),
                }
            })
        };
        invocation.instrument(span)
    });
    // Does not use the tracing layer of `lambda_runtime::run`: our span replaces its span.
    let runtime = Runtime::new(function);
    // Spawned, so that it runs on one of tokio's workers, like the connection to the runtime API
    // and the tools. In `main`, it would have to wake another thread for each of them.
    #[cfg(not(feature = "managed-instances"))]
    let task = tokio::spawn(runtime.run());
    #[cfg(feature = "managed-instances")]
    let task = tokio::spawn(runtime.run_concurrent());
    task.await?
}

/// True if a caller waits for the process to start; false if Lambda starts it ahead of calls.
fn is_on_demand() -> bool {
    let kind = env::var("AWS_LAMBDA_INITIALIZATION_TYPE");
    kind.map_or(true, |kind| kind == "on-demand")
}

#[cfg(test)]
mod tests {
    use super::LONGEST_WARM_UP;

    #[test]
    fn the_documentation_states_the_longest_warm_up() {
        let page = include_str!("../../docs/lambda.md");
        let seconds = LONGEST_WARM_UP.as_secs();
        let row = format!("| getting ready, before the first call | {seconds} |");
        assert!(page.contains(&row), "{row}");
    }
}
