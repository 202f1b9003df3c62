//! Panics in the log: one line each, like everything else there, and without secrets.

use std::{
    backtrace::{Backtrace, BacktraceStatus},
    panic,
};

use super::confidential::{is_inside, without_secrets};

/// Logs the panics of tools, and any other that would show a secret. The rest goes where it went
/// before.
pub(crate) fn log() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let text = panic.payload_as_str().unwrap_or("a value that is no text");
        let redacted = without_secrets(text);
        if redacted.is_none() && !is_inside() {
            return before(panic);
        }
        let text = redacted.as_deref().unwrap_or(text);
        let place = panic.location().map(ToString::to_string);
        let backtrace = Backtrace::capture();
        let is_there = backtrace.status() == BacktraceStatus::Captured;
        let backtrace = is_there.then(|| backtrace.to_string());
        tracing::error!(place, panic = text, backtrace, "a tool panicked");
    }));
}
