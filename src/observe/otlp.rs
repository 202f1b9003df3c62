//! The export of spans over OTLP, if the environment names a collector.
//!
//! Without the cargo feature `otlp` the type still exists, and exports nothing.

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

/// Uninhabited: nothing is exported.
#[cfg(not(feature = "otlp"))]
type SpanExport = std::convert::Infallible;

/// The export of spans, if it is on.
pub(crate) struct Telemetry {
    export: Option<SpanExport>,
}

impl Telemetry {
    /// Reads OpenTelemetry's variables: the export is off unless they name a collector.
    #[cfg_attr(
        not(feature = "otlp"),
        expect(
            clippy::unnecessary_wraps,
            reason = "the same signature with and without the feature"
        )
    )]
    pub(crate) fn from_environment() -> Result<Self, Error> {
        Ok(Self {
            #[cfg(feature = "otlp")]
            export: SpanExport::from_environment()?,
            #[cfg(not(feature = "otlp"))]
            export: None,
        })
    }

    pub(crate) fn is_on(&self) -> bool {
        self.export.is_some()
    }

    /// The layer that collects the spans to export.
    pub(crate) fn layer<S>(&self) -> Option<Box<dyn Layer<S> + Send + Sync>>
    where
        S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        let export = self.export.as_ref()?;
        #[cfg(feature = "otlp")]
        return Some(export.layer().boxed());
        #[cfg(not(feature = "otlp"))]
        match *export {}
    }

    /// Sends the spans that have ended, in the time left before the deadline.
    #[cfg_attr(
        not(feature = "otlp"),
        expect(
            clippy::unused_async,
            reason = "the same signature with and without the feature"
        )
    )]
    pub(crate) async fn flush(&self, deadline: Option<SystemTime>) {
        if let Some(export) = &self.export {
            #[cfg(feature = "otlp")]
            export.flush(deadline).await;
            #[cfg(not(feature = "otlp"))]
            match (*export, deadline) {}
        }
    }

    /// Warns that nothing is exported although the environment names a collector.
    #[cfg(not(feature = "otlp"))]
    pub(crate) fn warn_without_feature(&self) {
        let name = "OTEL_EXPORTER_OTLP_ENDPOINT";
        if !self.is_on() && std::env::var_os(name).is_some_and(|value| !value.is_empty()) {
            tracing::warn!(
                "{name} is set, but the program lacks lambda_tools' cargo feature 'otlp'"
            );
        }
    }
}
