//! The Lambda function: one event, one response.

mod function;
mod one_thread;
mod runtime_api;
#[cfg(feature = "tasks")]
mod self_invocation;

use std::sync::Arc;

use axum::body::BodyDataStream;
use lambda_http::lambda_runtime::{
    Diagnostic, FunctionResponse, LambdaEvent, MetadataPrelude, Runtime, StreamResponse, service_fn,
};
use serde_json::value::RawValue;

use super::Error;
use crate::{Server, event::EventResponse};
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
        let response = function.invoke(Box::<str>::from(event.payload), event.context);
        async { Ok::<_, Diagnostic>(in_parts_or_whole(response.await?)) }
    });
    // Does not use the tracing layer of `lambda_runtime::run`: our span replaces its span.
    let runtime = Runtime::new(service);
    // Spawned, so that it runs on one of tokio's workers, like the connection to the runtime API
    // and the tools. In `main`, it would have to wake another thread for each of them.
    tokio::spawn(runtime.run()).await?
}

/// Returns a response as `lambda_runtime` sends it.
fn in_parts_or_whole(response: EventResponse) -> FunctionResponse<EventResponse, BodyDataStream> {
    match response {
        EventResponse::Stream(response) => {
            let (status_code, headers, cookies) = response.head();
            FunctionResponse::StreamingResponse(StreamResponse {
                metadata_prelude: MetadataPrelude {
                    status_code,
                    headers,
                    cookies,
                },
                stream: response.body.into_data_stream(),
            })
        }
        response => FunctionResponse::BufferedResponse(response),
    }
}
