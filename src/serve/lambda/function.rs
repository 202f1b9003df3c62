//! A server as a Lambda function: what happens before the first event, and to each event.

use std::{
    env,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::Router;
use lambda_http::lambda_runtime::{Context, Diagnostic};
use tracing::Instrument;

use crate::{
    Error, Server,
    arrival::InvocationError,
    assemble::{assemble, warm_up},
    clock::REAL,
    event::{self, EventResponse, UNSUPPORTED_EVENT},
    observe::{log, otlp::Telemetry},
    protocol::admission::AppState,
    serve::{settings, shutdown},
};

/// Lambda restarts an initialization that takes more than 10 seconds.
const LONGEST_WARM_UP: Duration = Duration::from_secs(4);

/// The function that handles events.
pub(super) struct Function {
    router: Router,
    telemetry: Arc<Telemetry>,
    app: Arc<AppState>,
    is_cold: AtomicBool,
}

impl Function {
    /// Starts the server, and warms it up for its first event.
    pub(super) async fn start(mut server: Server) -> Result<Self, Error> {
        let telemetry = Arc::new(Telemetry::from_environment()?);
        log::to_cloudwatch(&telemetry);
        settings::log(&server);
        let hook = server.on_shutdown.take();
        let (router, app) = assemble(server, REAL, REAL);
        #[cfg(feature = "tasks")]
        super::self_invocation::enable(&app);
        let deduplication = Arc::clone(&app.engine.deduplication);
        shutdown::register(hook, deduplication, &telemetry).await;
        // Lambda gives a function its full CPU power until the function requests the first event,
        // so connecting is cheapest now. The first call waits no longer than this limit. Not
        // spawned: most functions have nothing to warm up, and would only wait for another thread.
        let _ = tokio::time::timeout(LONGEST_WARM_UP, warm_up(&app)).await;
        Ok(Self {
            router,
            telemetry,
            app,
            is_cold: AtomicBool::new(is_on_demand()),
        })
    }

    /// Handles one event.
    pub(super) fn invoke<E: AsRef<str> + Send + Sync + 'static>(
        self: &Arc<Self>,
        event: E,
        context: Context,
    ) -> impl Future<Output = Result<EventResponse, Diagnostic>> + Send + use<E> {
        let function = Arc::clone(self);
        let is_cold = self.is_cold.swap(false, Ordering::Relaxed);
        let request_id = &*context.request_id;
        // Links the log lines of tools and routes to their invocation. Only `off` disables the
        // error level.
        let span = tracing::error_span!(
            target: "lambda_tools::invocation",
            "invocation",
            requestId = request_id
        );
        let invocation = async move {
            let deadline = event::deadline_of(&context);
            let router = function.router.clone();
            let event = event.as_ref();
            let result = event::invoke(&function.app, router, event, context, is_cold).await;
            let telemetry = Arc::clone(&function.telemetry);
            match result {
                Ok(EventResponse::Stream(mut response)) => {
                    response.flush_after(async move { telemetry.flush(deadline).await });
                    Ok(EventResponse::Stream(response))
                }
                result => {
                    telemetry.flush(deadline).await;
                    result.map_err(|error| diagnostic(&error))
                }
            }
        };
        invocation.instrument(span)
    }
}

fn diagnostic(error: &InvocationError) -> Diagnostic {
    if error.kind == UNSUPPORTED_EVENT {
        tracing::error!(%error, "the event is not supported");
    }
    Diagnostic {
        error_type: error.kind.into(),
        error_message: error.message.clone(),
    }
}

/// Returns true if a caller waits for the process to start; false if Lambda starts it ahead of
/// calls.
fn is_on_demand() -> bool {
    let kind = env::var("AWS_LAMBDA_INITIALIZATION_TYPE");
    kind.map_or(true, |kind| kind == "on-demand")
}

#[cfg(test)]
mod tests {
    use super::LONGEST_WARM_UP;

    #[test]
    fn the_documentation_states_the_longest_warm_up() {
        let page = include_str!("../../../docs/lambda.md");
        let seconds = LONGEST_WARM_UP.as_secs();
        let row = format!("| getting ready, before the first call | {seconds} |");
        assert!(page.contains(&row), "{row}");
    }
}
