//! The secrets of the call that a task runs for, where a panic can find them.
//!
//! A panic's message is made from whatever failed, and printed before anybody can look at it.
//! While a tool runs, its task knows which values may not stand in it.

use std::future::Future;

use crate::{Context, secrets::redaction::redacted};

tokio::task_local! {
    static CALL: Context;
}

/// Runs a tool so that a panic in it knows the call.
pub(super) fn scope<F: Future>(context: Context, running: F) -> impl Future<Output = F::Output> {
    CALL.scope(context, running)
}

/// The text without the secrets of the call that this task runs for. None outside of a call.
pub(crate) fn without_secrets(text: &str) -> Option<String> {
    CALL.try_with(|context| redacted(text, context.confidential()))
        .ok()
}
