//! Shutdown: the last work before the process ends.

#[cfg(feature = "otlp")]
use std::sync::Arc;
use std::time::Duration;

use crate::{idempotency::deduplication::Deduplication, observe::otlp::Telemetry};

/// Registers for Lambda's SIGTERM, if spans are exported.
///
/// Lambda sends SIGTERM only to functions with an extension, half a second before SIGKILL.
/// `lambda_runtime` can register an extension for this purpose alone, which costs a request to the
/// platform at start-up.
#[cfg(feature = "otlp")]
pub(super) async fn register(deduplication: Arc<Deduplication>, telemetry: &Arc<Telemetry>) {
    /// The time limit for the work at shutdown: less than the time that Lambda allows.
    const LIMIT: Duration = Duration::from_millis(450);
    if !telemetry.is_on() {
        return;
    }
    let telemetry = Arc::clone(telemetry);
    let registration = lambda_runtime::spawn_graceful_shutdown_handler(move || async move {
        let _ = tokio::time::timeout(LIMIT, end(&deduplication, &telemetry)).await;
    });
    // Registration panics if the platform rejects the extension; the function runs without it.
    if tokio::spawn(registration).await.is_err() {
        tracing::error!("Lambda rejected the extension; nothing will run at shutdown");
    }
}

/// Waits until the outcomes of calls are recorded, and exports the last spans.
pub(super) async fn end(deduplication: &Deduplication, telemetry: &Telemetry) {
    let _ = tokio::time::timeout(Duration::from_millis(250), deduplication.idle()).await;
    telemetry.flush(None).await;
}
