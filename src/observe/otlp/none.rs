//! Spans, without the feature that exports them: nothing.

#![expect(
    clippy::unused_async,
    clippy::unused_self,
    clippy::unnecessary_wraps,
    reason = "the same with and without the feature"
)]

use std::{env, time::SystemTime};

use tracing_subscriber::layer::Identity;

use crate::Error;

/// Nothing.
pub(crate) struct Telemetry;

impl Telemetry {
    pub(crate) fn from_environment() -> Result<Self, Error> {
        Ok(Self)
    }

    /// No layer.
    pub(crate) fn layer(&self) -> Option<Identity> {
        None
    }

    pub(crate) fn is_on(&self) -> bool {
        false
    }

    pub(crate) async fn flush(&self, _: Option<SystemTime>) {}

    /// Says that nothing is exported, where that is asked for.
    pub(crate) fn explain(&self) {
        let name = "OTEL_EXPORTER_OTLP_ENDPOINT";
        if env::var_os(name).is_some_and(|value| !value.is_empty()) {
            tracing::warn!(
                "{name} is set, and this program is built without lambda_tools' cargo feature 'otlp'"
            );
        }
    }
}
