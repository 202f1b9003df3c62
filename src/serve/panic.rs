//! Panics in the log: one line each, like everything else there, and without the call's secrets.

use std::{backtrace::Backtrace, backtrace::BacktraceStatus, panic};

use crate::call::confidential::without_secrets;

/// Logs the panics of tools, and any other that would show a call's secret. The rest goes where it
/// went before.
pub(super) fn log() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let text = panic.payload_as_str().unwrap_or("a value that is no text");
        let Some(text) = without_secrets(text) else {
            return before(panic);
        };
        let place = panic.location().map(ToString::to_string);
        let backtrace = Backtrace::capture();
        let is_there = backtrace.status() == BacktraceStatus::Captured;
        let backtrace = is_there.then(|| backtrace.to_string());
        tracing::error!(place, panic = text, backtrace, "a tool panicked");
    }));
}
