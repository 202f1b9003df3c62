//! The export of spans to a collector, over OTLP.
//!
//! Lambda freezes a function between two invocations, including any thread that would send spans
//! later. So they are collected while a call runs, and sent when its response is complete, before
//! Lambda receives it.

use std::{
    env,
    time::{Duration, SystemTime},
};

use opentelemetry::{KeyValue, trace::TracerProvider};
use opentelemetry_otlp::{RetryPolicy, SpanExporter, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    resource::EnvResourceDetector,
    trace::{SdkTracerProvider, SpanExporter as Export, Tracer},
};
use tracing::{Subscriber, level_filters::LevelFilter};
use tracing_subscriber::{
    Layer,
    filter::{FilterExt, Targets, filter_fn},
    registry::LookupSpan,
};

use super::queue::SpanQueue;
use crate::{Error, observe::spans};

/// The time limit of an export, unless `OTEL_EXPORTER_OTLP_TIMEOUT` sets another. Callers wait for
/// the export.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The export of spans, if it is on.
pub(crate) struct Telemetry(Option<SpanExport>);

/// The spans to send to the collector.
struct SpanExport {
    tracer: Tracer,
    queue: SpanQueue,
    /// Used by one flush at a time.
    exporter: tokio::sync::Mutex<SpanExporter>,
    timeout: Duration,
    _provider: SdkTracerProvider,
}

impl Telemetry {
    /// Reads OpenTelemetry's variables: the export is off unless they name a collector.
    pub(crate) fn from_environment() -> Result<Self, Error> {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let setting = |name: &str| {
            let of_traces = variable(&format!("OTEL_EXPORTER_OTLP_TRACES_{name}"));
            of_traces.or_else(|| variable(&format!("OTEL_EXPORTER_OTLP_{name}")))
        };
        let is_off = variable("OTEL_SDK_DISABLED")
            .is_some_and(|it| it.eq_ignore_ascii_case("true"))
            || variable("OTEL_TRACES_EXPORTER").is_some_and(|it| it != "otlp");
        if is_off || setting("ENDPOINT").is_none() {
            return Ok(Self(None));
        }
        if let Some(other) = setting("PROTOCOL").filter(|it| it != "http/protobuf") {
            return Err(format!(
                "OTEL_EXPORTER_OTLP_PROTOCOL is '{other}', but only http/protobuf is supported"
            )
            .into());
        }
        let timeout = setting("TIMEOUT")
            .and_then(|ms| ms.parse().ok().filter(|&ms| ms > 0))
            .map_or(TIMEOUT, Duration::from_millis);
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        let mut exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            // Callers wait for the export.
            .with_retry_policy(RetryPolicy::disabled())
            .build()?;
        let resource = resource();
        exporter.set_resource(&resource);
        let queue = SpanQueue::default();
        let provider = SdkTracerProvider::builder()
            .with_span_processor(queue.clone())
            .with_resource(resource)
            .build();
        Ok(Self(Some(SpanExport {
            tracer: provider.tracer("lambda_tools"),
            queue,
            exporter: tokio::sync::Mutex::new(exporter),
            timeout,
            _provider: provider,
        })))
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Does nothing: the feature is on.
    pub(crate) fn warn_without_feature() {}

    /// Returns the layer that collects spans: ours, and those that tools create at level `info` and
    /// above. Log lines are not exported.
    pub(crate) fn layer<S>(&self) -> Option<Box<dyn Layer<S> + Send + Sync>>
    where
        S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        let targets = Targets::new()
            .with_default(LevelFilter::INFO)
            .with_target(spans::TARGET, LevelFilter::TRACE)
            // The log's spans, which repeat the same facts.
            .with_target("lambda_tools::call", LevelFilter::OFF)
            .with_target("lambda_tools::invocation", LevelFilter::OFF)
            .with_target("lambda_runtime", LevelFilter::OFF);
        let only_spans = filter_fn(|it: &tracing::Metadata<'_>| it.is_span());
        let layer = tracing_opentelemetry::layer()
            .with_tracer(self.0.as_ref()?.tracer.clone())
            .with_location(false)
            .with_target(false)
            .with_threads(false)
            .with_tracked_inactivity(false);
        Some(layer.with_filter(targets.and(only_spans)).boxed())
    }

    /// Sends the spans that have ended, in the time left before the deadline.
    pub(crate) async fn flush(&self, deadline: Option<SystemTime>) {
        /// The time for handing over the response, which may be large. It is half of the margin by
        /// which tools are stopped before the deadline.
        const MARGIN: Duration = Duration::from_millis(150);
        let Some(export) = &self.0 else {
            return;
        };
        let left = deadline.map(|deadline| {
            let left = deadline.duration_since(SystemTime::now());
            left.unwrap_or_default().saturating_sub(MARGIN)
        });
        let limit = left.map_or(export.timeout, |left| left.min(export.timeout));
        if limit.is_zero() {
            // The next invocation may have time for them.
            return;
        }
        let error = match tokio::time::timeout(limit, export.send()).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no response within {} ms", limit.as_millis()),
        };
        tracing::warn!(%error, "spans could not be exported");
    }
}

impl SpanExport {
    async fn send(&self) -> OTelSdkResult {
        let exporter = self.exporter.lock().await;
        let spans = self.queue.take();
        if spans.is_empty() {
            return Ok(());
        }
        exporter.export(spans).await
    }
}

/// Returns the service that the spans belong to. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`
/// take precedence.
fn resource() -> Resource {
    let on_lambda = [
        ("AWS_LAMBDA_FUNCTION_NAME", "service.name"),
        ("AWS_LAMBDA_FUNCTION_NAME", "faas.name"),
        ("AWS_LAMBDA_FUNCTION_VERSION", "faas.version"),
        ("AWS_REGION", "cloud.region"),
    ];
    let attributes = on_lambda
        .into_iter()
        .filter_map(|(variable, name)| Some(KeyValue::new(name, env::var(variable).ok()?)));
    let resource = Resource::builder().with_attributes(attributes);
    // Applied once more, because later attributes win.
    let resource = resource.with_detector(Box::new(EnvResourceDetector::new()));
    match env::var("OTEL_SERVICE_NAME") {
        Ok(name) if !name.is_empty() => resource.with_service_name(name).build(),
        _ => resource.build(),
    }
}
