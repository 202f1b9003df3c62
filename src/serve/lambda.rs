//! The Lambda function: what happens before the first event, and to each event.

mod runtime_api;
#[cfg(feature = "tasks")]
mod self_invocation;

use std::{env, panic::AssertUnwindSafe, sync::Arc, thread, time::Duration};

use axum::Router;
use futures_util::FutureExt;
use lambda_http::lambda_runtime::{Context, Diagnostic};
use tokio::runtime::Builder;
use tracing::Instrument;

use super::{Error, settings};
use crate::{
    Server,
    assemble::{assemble, warm_up},
    call::watch::{OnlyThread, Watch},
    clock::REAL,
    event::{self, EventResponse, UNSUPPORTED_EVENT, diagnostic},
    observe::{log, otlp::Telemetry},
    protocol::app::AppState,
};
use runtime_api::{Event, RuntimeApi};

/// Lambda restarts an initialization that takes more than 10 seconds.
const LONGEST_WARM_UP: Duration = Duration::from_secs(4);

/// Handles events from the runtime API, on the current tokio runtime, until the platform ends the
/// process.
pub(super) async fn run(server: Server) -> Result<(), Error> {
    let api = RuntimeApi::from_environment()?;
    let function = Function::start(server).await?;
    // A task of its own: waking the future of `block_on` takes two system calls more, and with several
    // threads, another thread. In a box, because its state would be moved twice.
    tokio::spawn(Box::pin(function.handle_events(api))).await?
}

/// Does the same with one thread for events, responses and tools. The platform sends one event at a
/// time, so a second thread would only be woken and put to sleep again.
pub(super) fn run_on_one_thread(mut server: Server) -> Result<(), Error> {
    let only_thread = Arc::<OnlyThread>::default();
    server.watch = Watch::Limits(Arc::clone(&only_thread));
    thread::Builder::new().spawn(move || only_thread.watch())?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(run(server));
    // Does not wait for functions that are not async.
    runtime.shutdown_background();
    result
}

/// The function that handles events.
struct Function {
    router: Router,
    telemetry: Arc<Telemetry>,
    app: Arc<AppState>,
}

impl Function {
    /// Starts the server, and warms it up for its first event.
    async fn start(server: Server) -> Result<Self, Error> {
        let telemetry = Arc::new(Telemetry::from_environment()?);
        log::to_cloudwatch(&telemetry);
        settings::log(&server);
        #[cfg(feature = "tasks")]
        let server = self_invocation::enabled(server);
        let (router, app) = assemble(server, REAL, REAL);
        #[cfg(feature = "otlp")]
        super::shutdown::register(Arc::clone(&app.engine.deduplication), &telemetry).await;
        // Lambda gives a function its full CPU power until the function requests the first event,
        // so connecting is cheapest now. The first call waits no longer than this limit. Not
        // spawned: most functions have nothing to warm up, and would only wait for another thread.
        let _ = tokio::time::timeout(LONGEST_WARM_UP, warm_up(&app)).await;
        Ok(Self {
            router,
            telemetry,
            app,
        })
    }

    async fn handle_events(self, mut api: RuntimeApi) -> Result<(), Error> {
        let kind = env::var("AWS_LAMBDA_INITIALIZATION_TYPE");
        if kind.as_deref() == Ok("snap-start") {
            api.restore().await?;
        }
        // A caller waits for the process to start, unless Lambda starts it ahead of calls.
        let mut is_cold = kind.map_or(true, |kind| kind == "on-demand");
        loop {
            let Event { body, context, id } = api.next().await?;
            tracing::trace!(bytes = body.len(), "received an event");
            let response = match (String::from_utf8(body.into()), context) {
                (Ok(event), Ok(context)) => self.handle(&event, context, is_cold).await,
                (_, Err(error)) => Err(error),
                (Err(_), _) => Err(diagnostic(UNSUPPORTED_EVENT, "The event is not UTF-8.")),
            };
            is_cold = false;
            api.respond(&id, response).await?;
        }
    }

    /// Handles an event. A panic outside of tools fails only its own invocation.
    async fn handle(
        &self,
        event: &str,
        context: Context,
        is_cold: bool,
    ) -> Result<EventResponse, Diagnostic> {
        // Links the log lines of tools and routes to their invocation. Only `off` disables the
        // error level.
        let span = tracing::error_span!(
            target: "lambda_tools::invocation",
            "invocation",
            requestId = context.request_id
        );
        let handled = async {
            let deadline = event::deadline_of(&context);
            let router = self.router.clone();
            let result = event::invoke(&self.app, router, event, context, is_cold).await;
            if let Ok(EventResponse::Stream(mut response)) = result {
                let telemetry = Arc::clone(&self.telemetry);
                response.flush_after(async move { telemetry.flush(deadline).await });
                return Ok(EventResponse::Stream(response));
            }
            self.telemetry.flush(deadline).await;
            result.inspect_err(|error| {
                if error.error_type == UNSUPPORTED_EVENT {
                    tracing::error!(error = %error.error_message, "the event is not supported");
                }
            })
        };
        let handled = AssertUnwindSafe(handled.instrument(span)).catch_unwind();
        handled.await.unwrap_or_else(|_| {
            let message = "The function panicked; the log says where.";
            Err(diagnostic("Panic", message))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::LONGEST_WARM_UP;

    #[test]
    fn the_documentation_states_the_longest_warm_up() {
        let page = include_str!("../../docs/costs.md");
        let seconds = LONGEST_WARM_UP.as_secs();
        let row = format!("| getting ready, before the first call | {seconds} |");
        assert!(page.contains(&row), "{row}");
    }
}
