//! What of a call may not leave in texts, where a log line or a panic can find it.
//!
//! A panic's message is made from whatever failed, and printed before anybody can look at it.
//! While a tool runs, its task knows which values may not stand in it; a task or a thread that the
//! tool has started does not, may outlive the call, and is held to those of all recent calls.

use std::future::Future;

use crate::{Context, secrets::recent};

tokio::task_local! {
    static CALL: Context;
}

/// Runs a tool so that its task knows the call, and what it leaves behind the secrets.
pub(crate) fn scope<F: Future>(context: Context, running: F) -> impl Future<Output = F::Output> {
    context.remember();
    CALL.scope(context, running)
}

/// Whether this is the task of a call.
pub(crate) fn is_inside() -> bool {
    CALL.try_with(|_| ()).is_ok()
}

/// The text without secrets: inside of a call those of the call, outside of one all that are known.
/// `None` where there are none in it.
pub(crate) fn without_secrets(text: &str) -> Option<String> {
    let inside = CALL.try_with(|context| context.redacted(text));
    inside.unwrap_or_else(|_| recent::redacted(text))
}
