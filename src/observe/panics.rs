//! Panics in the log: one line each, like everything else there, without secrets and inputs.

use std::{
    backtrace::{Backtrace, BacktraceStatus},
    panic,
    sync::atomic::{AtomicBool, Ordering},
};

use super::confidential::{is_inside, without_secrets};

/// True if the log shows inputs, which only the local server's does.
pub(crate) static SHOWS_INPUTS: AtomicBool = AtomicBool::new(false);

/// Logs the panics of tools, and any others that would show a secret. All other panics go to the
/// previous hook.
///
/// Of a tool's own text, only a literal is logged: one that is put together, as by `unwrap`, may
/// quote the input.
pub(crate) fn log() {
    let previous = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let text = panic.payload_as_str();
        let redacted = text.and_then(without_secrets);
        if redacted.is_none() && !is_inside() {
            return previous(panic);
        }
        let is_shown = !is_inside()
            || panic.payload().is::<&'static str>()
            || SHOWS_INPUTS.load(Ordering::Relaxed);
        let text = redacted.as_deref().or(text).filter(|_| is_shown);
        let place = panic.location().map(ToString::to_string);
        let backtrace = Backtrace::capture();
        let is_captured = backtrace.status() == BacktraceStatus::Captured;
        let backtrace = is_captured.then(|| backtrace.to_string());
        tracing::error!(place, panic = text, backtrace, "a tool panicked");
    }));
}
