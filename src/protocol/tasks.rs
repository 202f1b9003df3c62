//! The driver of tasks: performs a call that was handed over, and logs it like any other.

use std::sync::Arc;

use super::{admission::AppState, exchange::log_refusal, refusal::Refusal};
use crate::{
    StoreError,
    arrival::{Arrival, Invocation},
    call::background::Ticket,
    idempotency::deduplication::task::NotStarted,
    observe::request_log::RequestLog,
};

/// Performs the task of a ticket, unless it has been started before. Returns false if there is no such
/// task.
pub(crate) async fn perform(
    app: &Arc<AppState>,
    ticket: &Ticket,
    invocation: Invocation,
) -> Result<bool, StoreError> {
    let engine = &app.engine;
    let arrival = Arrival {
        at: engine.clock.instant(),
        invocation: Arc::new(invocation),
    };
    let started = match engine.start(ticket, arrival.invocation.deadline).await {
        Ok(started) => started,
        Err(NotStarted::TooLate) => return Ok(true),
        Err(NotStarted::Unknown) => return Ok(false),
        Err(NotStarted::Undecided(error)) => return Err(error),
    };
    let headers = &started.headers;
    let span = Some("task");
    let mut log = RequestLog::begin(&app.observer, arrival.clone(), headers, "call", span);
    log.set_trace(headers, started.call.trace_id.as_deref());
    log.set_caller("task", &started.caller);
    let called = engine.call(started.call, arrival, started.caller, &mut log.trail);
    match called.await {
        Ok(outcome) => log.write_call(&outcome.summary()),
        Err(rejection) => {
            let refusal = Refusal::from(rejection);
            log_refusal(&refusal, &mut log);
            engine.end_task(started.claim, refusal.into()).await;
        }
    }
    Ok(true)
}
