//! The secrets of the calls that run, where a panic can find them.
//!
//! A panic's message is made from whatever failed, and printed before anybody can look at it.
//! While a tool runs, its task knows which values may not stand in it; a task or a thread that the
//! tool has started does not, and is held to those of all calls.

use std::{
    future::Future,
    sync::{Mutex, MutexGuard, PoisonError, Weak},
};

use crate::{Context, context::Inner, secrets::redaction::redacted};

tokio::task_local! {
    static CALL: Context;
}

/// The calls that have secrets, those that have ended among them until the next one begins.
static RUNNING: Mutex<Vec<Weak<Inner>>> = Mutex::new(Vec::new());

/// Runs a tool so that a panic in it knows the call.
pub(super) fn scope<F: Future>(context: Context, running: F) -> impl Future<Output = F::Output> {
    if !context.confidential().is_empty() {
        let mut all = running_now();
        all.retain(|call| call.strong_count() > 0);
        all.push(context.watched());
    }
    CALL.scope(context, running)
}

/// The text of a panic without secrets: inside of a call those of the call, outside of one those
/// of all calls. None where there is nothing to say about it: outside of calls, without secrets in
/// it.
pub(crate) fn without_secrets(text: &str) -> Option<String> {
    let inside = CALL.try_with(|context| redacted(text, &context.confidential()));
    if let Ok(inside) = inside {
        return Some(inside);
    }
    let calls: Vec<_> = running_now().iter().filter_map(Weak::upgrade).collect();
    let secrets: Vec<_> = calls.iter().flat_map(|call| call.confidential()).collect();
    let outside = redacted(text, &secrets);
    (outside != text).then_some(outside)
}

fn running_now() -> MutexGuard<'static, Vec<Weak<Inner>>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}
