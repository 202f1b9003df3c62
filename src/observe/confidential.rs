//! The secrets of calls, which log lines and panic messages must not contain.
//!
//! A panic's message may contain any value, and is printed before anything can inspect it. The task
//! that runs a tool knows the secrets of its call. A task or a thread started by the tool does not,
//! and may outlive the call; its output is searched for the secrets of the server's store alone.

use std::{
    backtrace::{Backtrace, BacktraceStatus},
    panic,
    sync::atomic::{AtomicBool, Ordering},
};

use crate::{Context, secret::stored};

tokio::task_local! {
    /// `None` while the input is decoded, which needs no secrets.
    static CALL: Option<Context>;
}

/// Runs a tool in a task that knows its call.
pub(crate) fn scope<F: Future>(context: Context, run: F) -> impl Future<Output = F::Output> {
    CALL.scope(Some(context), run)
}

/// Decodes an input in its own type, which may panic just as the tool may.
pub(crate) fn decoding<T>(decode: impl FnOnce() -> T) -> T {
    CALL.sync_scope(None, decode)
}

/// Returns the text with secrets removed: those of the store and, inside a call, its own. `None` if
/// the text contains none.
pub(crate) fn without_secrets(text: &str) -> Option<String> {
    let redacted = CALL.try_with(|it| it.as_ref().map(|context| context.redacted(text)));
    let redacted = redacted.ok().flatten();
    redacted.unwrap_or_else(|| stored::redacted(text, None))
}

/// True if the log shows inputs, which only the local server's does.
pub(crate) static SHOWS_INPUTS: AtomicBool = AtomicBool::new(false);

/// Logs the panics of tools, and any others that would show a secret, in one line each. All other
/// panics go to the previous hook.
///
/// Of a tool's own text, only a literal is logged: one that is put together, as by `unwrap`, may
/// quote the input.
pub(crate) fn log_panics() {
    let previous = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let text = panic.payload_as_str();
        let redacted = text.and_then(without_secrets);
        let is_in_call = CALL.try_with(|_| ()).is_ok();
        if redacted.is_none() && !is_in_call {
            return previous(panic);
        }
        let is_shown = !is_in_call
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
