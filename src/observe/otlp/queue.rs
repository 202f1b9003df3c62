//! Spans between their end and their way to the collector.

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

/// More are dropped: a collector that is away must not fill the memory.
const MOST: usize = 2048;

/// Spans that have ended and not been sent.
#[derive(Clone, Debug, Default)]
pub(super) struct SpanQueue(Arc<Mutex<QueuedSpans>>);

#[derive(Debug, Default)]
pub(super) struct QueuedSpans {
    pub(super) spans: Vec<SpanData>,
    /// How many of them, from the first on, the collector has not taken before.
    refused: usize,
}

impl SpanQueue {
    fn add(&self, span: SpanData) {
        let mut waiting = self.waiting();
        if waiting.spans.len() < MOST {
            waiting.spans.push(span);
        }
    }

    pub(super) fn take(&self) -> QueuedSpans {
        std::mem::take(&mut *self.waiting())
    }

    fn waiting(&self) -> MutexGuard<'_, QueuedSpans> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Spans that are on their way; what is left of them when this is dropped was not taken.
pub(super) struct SpansInFlight<'a>(pub(super) &'a SpanQueue, pub(super) QueuedSpans);

impl Drop for SpansInFlight<'_> {
    /// They are tried once more with the next: a collector may have been asked through a connection
    /// that did not outlive a freeze. It may also be that it cannot take them, ever.
    fn drop(&mut self) {
        let QueuedSpans { mut spans, refused } = std::mem::take(&mut self.1);
        spans.drain(..refused);
        let mut waiting = self.0.waiting();
        let since = std::mem::take(&mut waiting.spans);
        waiting.refused = spans.len();
        spans.extend(since);
        spans.truncate(MOST);
        waiting.spans = spans;
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

/// Takes secrets of calls out of what tools say in spans of their own.
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
