//! The secrets of calls, which log lines and panic messages must not contain.
//!
//! A panic's message may contain any value, and is printed before anything can inspect it. The task
//! that runs a tool knows the secrets of its call. A task or a thread started by the tool does not,
//! and may outlive the call; its output is searched for the secrets of the server's store alone.

use std::future::Future;

use crate::{Context, secrets::stored};

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

/// Returns true in the task of a call.
pub(crate) fn is_inside() -> bool {
    CALL.try_with(|_| ()).is_ok()
}

/// Returns the text with secrets removed: those of the store and, inside a call, its own. `None` if
/// the text contains none.
pub(crate) fn without_secrets(text: &str) -> Option<String> {
    let redacted = CALL.try_with(|it| it.as_ref().map(|context| context.redacted(text)));
    let redacted = redacted.ok().flatten();
    redacted.unwrap_or_else(|| stored::redacted(text, None))
}
