//! The secrets of calls, which log lines and panic messages must not contain.
//!
//! A panic's message may contain any value, and is printed before anything can inspect it. The task
//! that runs a tool knows the secrets of its call. A task or a thread started by the tool does not,
//! and may outlive the call; its output is searched for the secrets of the server's store alone.

use std::future::Future;

use crate::{Context, secrets::stored};

tokio::task_local! {
    static CALL: Context;
}

/// Runs a tool in a task that knows its call.
pub(crate) fn scope<F: Future>(context: Context, run: F) -> impl Future<Output = F::Output> {
    CALL.scope(context, run)
}

/// Returns true in the task of a call.
pub(crate) fn is_inside() -> bool {
    CALL.try_with(|_| ()).is_ok()
}

/// Returns the text with secrets removed: those of the store and, inside a call, its own. `None` if
/// the text contains none.
pub(crate) fn without_secrets(text: &str) -> Option<String> {
    let redacted = CALL.try_with(|context| context.redacted(text));
    redacted.unwrap_or_else(|_| stored::redacted(text, None))
}
