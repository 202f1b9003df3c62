//! The Lambda function: one event, one answer.

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

use super::{Error, shutdown};
use crate::{
    Server,
    assemble::assemble,
    clock::REAL,
    event,
    observe::{log, otlp::Telemetry},
};

/// Initialisation may take 10 seconds before Lambda starts it anew.
const LONGEST_WARM_UP: Duration = Duration::from_secs(4);

/// Takes events from the runtime API until the platform ends the process.
pub(super) async fn run(mut server: Server) -> Result<(), Error> {
    let telemetry = Arc::new(Telemetry::from_environment()?);
    log::to_cloudwatch(&telemetry);
    let hook = server.on_shutdown.take();
    let (router, warm_up) = assemble(server, REAL, REAL);
    shutdown::register(hook, warm_up.deduplication(), &telemetry).await;
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
            let deadline = event::deadline_of(&event.context);
            let answer = event::invoke(router, event.payload.get(), event.context, is_cold).await;
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

#[cfg(test)]
mod tests {
    use super::LONGEST_WARM_UP;

    #[test]
    fn the_documentation_states_the_longest_warm_up() {
        let page = include_str!("../../docs/operations.md");
        let seconds = LONGEST_WARM_UP.as_secs();
        let row = format!("| getting ready, before the first call | {seconds} |");
        assert!(page.contains(&row), "{row}");
    }
}
