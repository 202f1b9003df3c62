//! Shutdown: the last work before the process ends.
//!
//! Lambda sends SIGTERM only to functions with an extension, half a second before SIGKILL.
//! `lambda_runtime` can register an extension for this purpose alone. Registration costs a request
//! to the platform at start-up, so it happens only if there is work to do at shutdown.

use std::{sync::Arc, time::Duration};

use crate::{
    idempotency::deduplication::Deduplication, observe::otlp::Telemetry, server::ShutdownHook,
};

/// Registers for Lambda's SIGTERM, if there is work to do at shutdown.
#[cfg(feature = "graceful-shutdown")]
pub(super) async fn register(
    hook: Option<ShutdownHook>,
    deduplication: Arc<Deduplication>,
    telemetry: &Arc<Telemetry>,
) {
    /// The time limit for the work at shutdown: less than the time that Lambda allows.
    const LIMIT: Duration = Duration::from_millis(450);
    if hook.is_none() && !telemetry.is_on() {
        return;
    }
    let telemetry = Arc::clone(telemetry);
    let registration = lambda_runtime::spawn_graceful_shutdown_handler(move || async move {
        let _ = tokio::time::timeout(LIMIT, end(hook, &deduplication, &telemetry)).await;
    });
    // Registration panics if the platform rejects the extension; the function runs without it.
    if tokio::spawn(registration).await.is_err() {
        tracing::error!("Lambda rejected the extension; nothing will run at shutdown");
    }
}

/// Does nothing: the feature is off.
#[cfg(not(feature = "graceful-shutdown"))]
#[expect(clippy::unused_async, reason = "the same with and without the feature")]
pub(super) async fn register(_: Option<ShutdownHook>, _: Arc<Deduplication>, _: &Arc<Telemetry>) {}

/// Runs the hook and finishes the calls concurrently: a hook that hangs or panics must not cause
/// the loss of spans.
pub(super) async fn end(
    hook: Option<ShutdownHook>,
    deduplication: &Deduplication,
    telemetry: &Telemetry,
) {
    let hook = async {
        if let Some(hook) = hook {
            let _ = tokio::spawn(async move { hook().await }).await;
            // Exports the hook's own spans.
            telemetry.flush(None).await;
        }
    };
    let calls = async {
        // Waits until the outcomes of calls are recorded.
        let _ = tokio::time::timeout(Duration::from_millis(250), deduplication.idle()).await;
        telemetry.flush(None).await;
    };
    tokio::join!(hook, calls);
}
