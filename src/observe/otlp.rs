//! The export of spans over OTLP, if the environment names a collector.
//!
//! Lambda freezes a function between two invocations, including any thread that would send spans
//! later. So they are collected while a call runs, and sent when its response is complete, before
//! Lambda receives it.
//!
//! Without the Cargo feature `otlp`, `otlp/off.rs` takes the place of this module.

use std::{
    env, mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use opentelemetry::{
    Context, KeyValue,
    trace::{
        SpanContext, SpanId, Status, TraceContextExt, TraceFlags, TraceId, TraceState,
        TracerProvider,
    },
};
use opentelemetry_otlp::{RetryPolicy, SpanExporter, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    resource::EnvResourceDetector,
    trace::{
        SdkTracerProvider, Span as SdkSpan, SpanData, SpanExporter as Export, SpanProcessor, Tracer,
    },
};
use tracing::{Span, Subscriber, level_filters::LevelFilter};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::{
    Layer,
    filter::{FilterExt, Targets, filter_fn},
    registry::LookupSpan,
};

use super::{
    confidential::without_secrets,
    spans::{self, Trace, TracePosition},
};
use crate::Error;

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
        let send = async {
            let exporter = export.exporter.lock().await;
            let spans = mem::take(&mut *export.queue.lock());
            if spans.is_empty() {
                return Ok(());
            }
            exporter.export(spans).await
        };
        let error = match tokio::time::timeout(limit, send).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no response within {} ms", limit.as_millis()),
        };
        tracing::warn!(%error, "spans could not be exported");
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

/// The maximum number of queued spans; any more are dropped, so that an unreachable collector does
/// not exhaust memory.
const CAPACITY: usize = 2048;

/// Spans that have ended and have not been sent yet.
#[derive(Clone, Debug, Default)]
struct SpanQueue(Arc<Mutex<Vec<SpanData>>>);

impl SpanQueue {
    fn lock(&self) -> MutexGuard<'_, Vec<SpanData>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SpanProcessor for SpanQueue {
    fn on_start(&self, _: &mut SdkSpan, _: &Context) {}

    fn on_end(&self, mut span: SpanData) {
        redact(&mut span);
        let mut queued = self.lock();
        if queued.len() < CAPACITY {
            queued.push(span);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Removes the secrets of calls from the texts in tools' own spans.
fn redact(span: &mut SpanData) {
    if let Some(name) = without_secrets(&span.name) {
        span.name = name.into();
    }
    for attribute in &mut span.attributes {
        let text = attribute.value.as_str();
        if let Some(text) = without_secrets(&text) {
            attribute.value = text.into();
        }
    }
    if let Status::Error { description } = &mut span.status
        && let Some(text) = without_secrets(description)
    {
        *description = text.into();
    }
}

/// Ends a span now, so that it is exported with its call even if a task that the tool left running
/// is still inside it.
pub(crate) fn end(span: &Span) {
    if !span.is_disabled() {
        span.context().span().end();
    }
}

/// Makes a span part of its trace, and links it to X-Ray's trace if that is another one.
pub(crate) fn join_trace(span: &Span, trace: &Trace) {
    let context = |position: TracePosition, state: TraceState| {
        // The call's `trace_id` names no parent span. OpenTelemetry lets a span join a trace only
        // through a parent, so one is derived from the id: the same for all calls of a trace, so that
        // their spans are siblings.
        #[expect(clippy::cast_possible_truncation, reason = "half of it is enough")]
        let of_trace = (position.trace ^ (position.trace >> 64)) as u64;
        let parent = position.span.unwrap_or(of_trace.max(1));
        let flags = TraceFlags::default().with_sampled(position.is_sampled);
        let (trace, parent) = (position.trace.to_be_bytes(), parent.to_be_bytes());
        let (trace, parent) = (TraceId::from_bytes(trace), SpanId::from_bytes(parent));
        SpanContext::new(trace, parent, flags, true, state)
    };
    if span.is_disabled() {
        return;
    }
    if let Some(position) = trace.position {
        let state = trace.state.as_deref().and_then(|text| text.parse().ok());
        let parent = context(position, state.unwrap_or_default());
        // Fails for a span that has started; this one has not.
        let _ = span.set_parent(Context::new().with_remote_span_context(parent));
    }
    if let Some(link) = trace.xray_link {
        span.add_link(context(link, TraceState::default()));
    }
}
