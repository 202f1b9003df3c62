//! The Lambda function: one event, one response.

mod function;
mod one_thread;
mod runtime_api;

use std::sync::Arc;

use lambda_http::lambda_runtime::{LambdaEvent, Runtime, service_fn};
use serde_json::value::RawValue;

use super::Error;
use crate::Server;
use function::Function;

pub(super) use one_thread::{is_possible, run as run_on_one_thread};

/// Handles events from the runtime API, on the current tokio runtime, until the platform ends the
/// process.
pub(super) async fn run(server: Server) -> Result<(), Error> {
    let toolkit = Arc::clone(server.toolkit());
    let warm_up = tokio::task::spawn_blocking(move || toolkit.warm_up());
    let function = Arc::new(Function::start(server).await?);
    let _ = warm_up.await;
    let service = service_fn(move |event: LambdaEvent<Box<RawValue>>| {
        function.invoke(Box::<str>::from(event.payload), event.context)
    });
    // Does not use the tracing layer of `lambda_runtime::run`: our span replaces its span.
    let runtime = Runtime::new(service);
    // Spawned, so that it runs on one of tokio's workers, like the connection to the runtime API
    // and the tools. In `main`, it would have to wake another thread for each of them.
    #[cfg(not(feature = "managed-instances"))]
    let task = tokio::spawn(runtime.run());
    #[cfg(feature = "managed-instances")]
    let task = tokio::spawn(runtime.run_concurrent());
    task.await?
}
