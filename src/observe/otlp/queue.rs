//! Spans that have ended and are waiting to be exported.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use opentelemetry::{Context, trace::Status};
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{Span, SpanData, SpanProcessor},
};

use crate::observe::confidential::without_secrets;

/// The maximum number of queued spans; any more are dropped, so that an unreachable collector does
/// not exhaust memory.
const CAPACITY: usize = 2048;

/// Spans that have ended and have not been sent yet.
#[derive(Clone, Debug, Default)]
pub(super) struct SpanQueue(Arc<Mutex<QueuedSpans>>);

#[derive(Debug, Default)]
pub(super) struct QueuedSpans {
    pub(super) spans: Vec<SpanData>,
    /// The number of spans at the front that an earlier export did not deliver.
    retries: usize,
}

impl SpanQueue {
    fn add(&self, span: SpanData) {
        let mut queued = self.lock();
        if queued.spans.len() < CAPACITY {
            queued.spans.push(span);
        }
    }

    pub(super) fn take(&self) -> QueuedSpans {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, QueuedSpans> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Spans that are being sent. Those left when this is dropped were not delivered.
pub(super) struct SpansInFlight<'a>(pub(super) &'a SpanQueue, pub(super) QueuedSpans);

impl Drop for SpansInFlight<'_> {
    /// Undelivered spans are sent once more, with the next export: the connection may not have
    /// survived a freeze. They are sent only once more, because the collector may never accept
    /// them.
    fn drop(&mut self) {
        let QueuedSpans { mut spans, retries } = std::mem::take(&mut self.1);
        spans.drain(..retries);
        let mut queued = self.0.lock();
        let newer = std::mem::take(&mut queued.spans);
        queued.retries = spans.len();
        spans.extend(newer);
        spans.truncate(CAPACITY);
        queued.spans = spans;
    }
}

impl SpanProcessor for SpanQueue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, mut span: SpanData) {
        redact(&mut span);
        self.add(span);
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
