//! Spans on their way to a collector, over OTLP.
//!
//! A function is frozen between two invocations, with whatever thread would send spans later. So
//! they are collected while a call runs and sent when its answer is made, before Lambda has it.

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

use super::queue::{QueuedSpans, SpanQueue, SpansInFlight};
use crate::{Error, observe::spans};

/// How long a collector may take, unless `OTEL_EXPORTER_OTLP_TIMEOUT` says otherwise. Callers wait
/// for it.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Where spans go.
pub(super) struct SpanExport {
    tracer: Tracer,
    ended: SpanQueue,
    /// Asked by one at a time.
    exporter: tokio::sync::Mutex<SpanExporter>,
    timeout: Duration,
    _provider: SdkTracerProvider,
}

impl SpanExport {
    /// As OpenTelemetry's variables say: nothing, unless they name a collector.
    pub(super) fn from_environment() -> Result<Option<Self>, Error> {
        let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let is_named = [
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        ]
        .into_iter()
        .any(|name| set(name).is_some());
        let is_off = set("OTEL_SDK_DISABLED").is_some_and(|it| it.eq_ignore_ascii_case("true"))
            || set("OTEL_TRACES_EXPORTER").is_some_and(|it| it != "otlp");
        if is_off || !is_named {
            return Ok(None);
        }
        let protocol = set("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL");
        if let Some(other) = protocol
            .or_else(|| set("OTEL_EXPORTER_OTLP_PROTOCOL"))
            .filter(|it| it != "http/protobuf")
        {
            return Err(format!(
                "OTEL_EXPORTER_OTLP_PROTOCOL is '{other}', and spans are sent as http/protobuf only"
            )
            .into());
        }
        let timeout = set("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT")
            .or_else(|| set("OTEL_EXPORTER_OTLP_TIMEOUT"))
            .and_then(|ms| ms.parse().ok().filter(|&ms| ms > 0))
            .map_or(TIMEOUT, Duration::from_millis);
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        let mut exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            // Callers wait for it.
            .with_retry_policy(RetryPolicy::disabled())
            .build()?;
        let resource = resource();
        exporter.set_resource(&resource);
        let ended = SpanQueue::default();
        let provider = SdkTracerProvider::builder()
            .with_span_processor(ended.clone())
            .with_resource(resource)
            .build();
        Ok(Some(Self {
            tracer: provider.tracer("lambda_tools"),
            ended,
            exporter: tokio::sync::Mutex::new(exporter),
            timeout,
            _provider: provider,
        }))
    }

    /// Takes spans: ours, and those that tools make on level `info` and above. The lines of the
    /// log stay there.
    pub(super) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let targets = Targets::new()
            .with_default(LevelFilter::INFO)
            .with_target(spans::TARGET, LevelFilter::TRACE)
            // For the log: they say the same again.
            .with_target("lambda_tools::call", LevelFilter::OFF)
            .with_target("lambda_tools::invocation", LevelFilter::OFF)
            .with_target("lambda_runtime", LevelFilter::OFF);
        let only_spans = filter_fn(|it: &tracing::Metadata<'_>| it.is_span());
        let layer = tracing_opentelemetry::layer()
            .with_tracer(self.tracer.clone())
            .with_location(false)
            .with_target(false)
            .with_threads(false)
            .with_tracked_inactivity(false);
        layer.with_filter(targets.and(only_spans))
    }

    /// Sends what has ended, within the time that is left.
    pub(super) async fn flush(&self, deadline: Option<SystemTime>) {
        /// For handing the answer over, which may be large. Half of what tools are stopped before
        /// the deadline.
        const MARGIN: Duration = Duration::from_millis(150);
        let left = deadline.map(|deadline| {
            let left = deadline.duration_since(SystemTime::now());
            left.unwrap_or_default().saturating_sub(MARGIN)
        });
        let limit = left.map_or(self.timeout, |left| left.min(self.timeout));
        if limit.is_zero() {
            // The next invocation may have the time.
            return;
        }
        let sent = tokio::time::timeout(limit, self.send()).await;
        match sent {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "spans are not exported"),
            Err(_) => {
                let ms = limit.as_millis();
                tracing::warn!(
                    error = format!("no answer within {ms} ms"),
                    "spans are not exported"
                );
            }
        }
    }
}

impl SpanExport {
    async fn send(&self) -> OTelSdkResult {
        let exporter = self.exporter.lock().await;
        let waiting = self.ended.take();
        if waiting.spans.is_empty() {
            return Ok(());
        }
        let spans = waiting.spans.clone();
        // Also if the time is over first: those of other calls are among them.
        let mut kept = SpansInFlight(&self.ended, waiting);
        exporter.export(spans).await?;
        kept.1 = QueuedSpans::default();
        Ok(())
    }
}

/// Whose spans they are. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` win.
fn resource() -> Resource {
    let on_lambda = [
        ("AWS_LAMBDA_FUNCTION_NAME", "faas.name"),
        ("AWS_LAMBDA_FUNCTION_VERSION", "faas.version"),
        ("AWS_REGION", "cloud.region"),
    ];
    let known = on_lambda
        .into_iter()
        .filter_map(|(variable, name)| Some(KeyValue::new(name, env::var(variable).ok()?)));
    let mut resource = Resource::builder().with_attributes(known);
    if let Ok(name) = env::var("AWS_LAMBDA_FUNCTION_NAME") {
        resource = resource.with_service_name(name);
    }
    // Once more, because what is put there later wins.
    let resource = resource.with_detector(Box::new(EnvResourceDetector::new()));
    match env::var("OTEL_SERVICE_NAME") {
        Ok(name) if !name.is_empty() => resource.with_service_name(name).build(),
        _ => resource.build(),
    }
}
