//! A function whose events, responses and tools share one thread.
//!
//! The platform sends one event at a time, so a second thread would only be woken and put to sleep
//! again.

use std::{
    env,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    task::Poll,
    thread,
};

use lambda_http::lambda_runtime::{Context, Diagnostic};
use tokio::{runtime::Builder, sync::oneshot};

use super::{
    function::Function,
    runtime_api::{Answer, Endpoint, Event, RuntimeApi},
};
use crate::{
    Error, Server,
    call::watch::{OnlyThread, Watch},
    event::EventResponse,
};

/// Returns false under `SnapStart`, which needs `lambda_runtime`.
pub(in crate::serve) fn is_possible() -> bool {
    !env::var("AWS_LAMBDA_INITIALIZATION_TYPE").is_ok_and(|kind| kind == "snap-start")
}

/// Handles events from the runtime API until the platform ends the process.
pub(in crate::serve) fn run(mut server: Server) -> Result<(), Error> {
    let api = RuntimeApi::new(Endpoint::from_environment()?);
    let only_thread = Arc::<OnlyThread>::default();
    server.watch = Watch::Limits(Arc::clone(&only_thread));
    let toolkit = Arc::clone(server.toolkit());
    let (is_warm, warm) = oneshot::channel();
    thread::Builder::new().name("watch".into()).spawn(move || {
        toolkit.warm_up();
        let _ = is_warm.send(());
        only_thread.watch();
    })?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let function = Arc::new(Function::start(server).await?);
        // An error would mean that the other thread has ended.
        let _ = warm.await;
        handle_events(&function, api).await
    });
    // Does not wait for functions that are not async.
    runtime.shutdown_background();
    result
}

async fn handle_events(function: &Arc<Function>, mut api: RuntimeApi) -> Result<(), Error> {
    loop {
        let Event { body, context, id } = api.next().await?;
        tracing::trace!(bytes = body.len(), "received an event");
        let answer = match (String::from_utf8(body.into()), context) {
            (Ok(event), Ok(context)) => handle(function, event, context).await,
            (_, Err(error)) => Answer::Error(error),
            (Err(_), _) => Answer::Error(diagnostic("UnsupportedEvent", "The event is not UTF-8.")),
        };
        api.respond(&id, answer).await?;
    }
}

/// Handles an event, and encodes its response as JSON, unless it is sent in parts. A panic outside
/// of tools fails only its own invocation.
async fn handle(function: &Arc<Function>, event: String, context: Context) -> Answer {
    let mut response = pin!(function.invoke(event, context));
    let response = poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| response.as_mut().poll(context)));
        let panicked = |_| {
            let message = "The function panicked; the log says where.";
            Poll::Ready(Err(diagnostic("Panic", message)))
        };
        polled.unwrap_or_else(panicked)
    });
    match response.await {
        Ok(EventResponse::Stream(response)) => Answer::Stream(response),
        Ok(response) => response.encode().map_or_else(
            |error| {
                let message = format!("The response cannot be encoded: {error}");
                Answer::Error(diagnostic("Internal", &message))
            },
            Answer::Whole,
        ),
        Err(error) => Answer::Error(error),
    }
}

fn diagnostic(error_type: &str, message: &str) -> Diagnostic {
    Diagnostic {
        error_type: error_type.into(),
        error_message: message.into(),
    }
}
