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
pub(super) struct SpanQueue(Arc<Mutex<Vec<SpanData>>>);

impl SpanQueue {
    pub(super) fn take(&self) -> Vec<SpanData> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<SpanData>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SpanProcessor for SpanQueue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

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
