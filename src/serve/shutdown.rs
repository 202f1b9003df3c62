//! The end of the process: what is left to do before Lambda takes it away.
//!
//! Lambda sends SIGTERM only to functions with an extension, and half a second before SIGKILL.
//! `lambda_runtime` registers one that does nothing else; it costs a request to the platform at
//! the start, so that it is made only where somebody wants to know.

use std::{sync::Arc, time::Duration};

use crate::{
    idempotency::deduplication::Deduplication, observe::otlp::Telemetry, server::ShutdownHook,
};

/// Less than what Lambda gives.
#[cfg(feature = "graceful-shutdown")]
const LIMIT: Duration = Duration::from_millis(450);

/// Asks Lambda for a signal, if there is something to do at the end.
#[cfg(feature = "graceful-shutdown")]
pub(super) async fn register(
    hook: Option<ShutdownHook>,
    deduplication: Arc<Deduplication>,
    telemetry: &Arc<Telemetry>,
) {
    if hook.is_none() && !telemetry.is_on() {
        return;
    }
    let telemetry = Arc::clone(telemetry);
    let registering = lambda_runtime::spawn_graceful_shutdown_handler(move || async move {
        let _ = tokio::time::timeout(LIMIT, end(hook, &deduplication, &telemetry)).await;
    });
    // It panics where the platform does not take the extension, and a function without one is
    // better than none.
    if tokio::spawn(registering).await.is_err() {
        tracing::error!("Lambda takes no extension; nothing is done before the process ends");
    }
}

/// Nobody can ask for it.
#[cfg(not(feature = "graceful-shutdown"))]
#[expect(clippy::unused_async, reason = "the same with and without the feature")]
pub(super) async fn register(_: Option<ShutdownHook>, _: Arc<Deduplication>, _: &Arc<Telemetry>) {}

/// Beside each other: a hook that hangs or panics must not cost the spans.
pub(super) async fn end(
    hook: Option<ShutdownHook>,
    deduplication: &Deduplication,
    telemetry: &Telemetry,
) {
    let hook = async {
        if let Some(hook) = hook {
            let _ = tokio::spawn(async move { hook().await }).await;
            // What it has left itself.
            telemetry.flush(None).await;
        }
    };
    let calls = async {
        // Their outcomes are still to be recorded.
        let _ = tokio::time::timeout(Duration::from_millis(250), deduplication.idle()).await;
        telemetry.flush(None).await;
    };
    tokio::join!(hook, calls);
}
