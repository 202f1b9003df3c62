//! The export of spans over OTLP, where the environment names a collector.
//!
//! The type is there without the cargo feature `otlp` as well, and exports nothing.

#[cfg(feature = "otlp")]
mod export;
#[cfg(feature = "otlp")]
mod queue;

use std::time::SystemTime;

use tracing::Subscriber;
use tracing_subscriber::{Layer, registry::LookupSpan};

use crate::Error;
#[cfg(feature = "otlp")]
use export::SpanExport;

/// Nothing is exported.
#[cfg(not(feature = "otlp"))]
type SpanExport = std::convert::Infallible;

/// Exports spans, or nothing.
pub(crate) struct Telemetry {
    exporting: Option<SpanExport>,
}

impl Telemetry {
    /// As OpenTelemetry's variables say: nothing, unless they name a collector.
    #[cfg_attr(
        not(feature = "otlp"),
        expect(
            clippy::unnecessary_wraps,
            reason = "the same with and without the feature"
        )
    )]
    pub(crate) fn from_environment() -> Result<Self, Error> {
        Ok(Self {
            #[cfg(feature = "otlp")]
            exporting: SpanExport::from_environment()?,
            #[cfg(not(feature = "otlp"))]
            exporting: None,
        })
    }

    pub(crate) fn is_on(&self) -> bool {
        self.exporting.is_some()
    }

    /// Takes the spans that are exported.
    pub(crate) fn layer<S>(&self) -> Option<Box<dyn Layer<S> + Send + Sync>>
    where
        S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        let exporting = self.exporting.as_ref()?;
        #[cfg(feature = "otlp")]
        return Some(exporting.layer().boxed());
        #[cfg(not(feature = "otlp"))]
        match *exporting {}
    }

    /// Sends what has ended, within the time that is left.
    #[cfg_attr(
        not(feature = "otlp"),
        expect(clippy::unused_async, reason = "the same with and without the feature")
    )]
    pub(crate) async fn flush(&self, deadline: Option<SystemTime>) {
        if let Some(exporting) = &self.exporting {
            #[cfg(feature = "otlp")]
            exporting.flush(deadline).await;
            #[cfg(not(feature = "otlp"))]
            match (*exporting, deadline) {}
        }
    }

    /// Says that nothing is exported, where that is asked for.
    #[cfg(not(feature = "otlp"))]
    pub(crate) fn explain(&self) {
        let name = "OTEL_EXPORTER_OTLP_ENDPOINT";
        if !self.is_on() && std::env::var_os(name).is_some_and(|value| !value.is_empty()) {
            tracing::warn!(
                "{name} is set, and this program is built without lambda_tools' cargo feature 'otlp'"
            );
        }
    }
}
