//! Panics in the log: one line each, like everything else there, and without secrets.

use std::{
    backtrace::{Backtrace, BacktraceStatus},
    panic,
};

use super::confidential::{is_inside, without_secrets};

/// Logs the panics of tools, and any others that would show a secret. All other panics go to the
/// previous hook.
pub(crate) fn log() {
    let previous = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let text = panic
            .payload_as_str()
            .unwrap_or("a payload that is not text");
        let redacted = without_secrets(text);
        if redacted.is_none() && !is_inside() {
            return previous(panic);
        }
        let text = redacted.as_deref().unwrap_or(text);
        let place = panic.location().map(ToString::to_string);
        let backtrace = Backtrace::capture();
        let is_captured = backtrace.status() == BacktraceStatus::Captured;
        let backtrace = is_captured.then(|| backtrace.to_string());
        tracing::error!(place, panic = text, backtrace, "a tool panicked");
    }));
}
