//! The run of a tool within its time limit, with its panics caught, and its output checked against
//! its definition.

use std::{
    future::poll_fn,
    mem,
    pin::pin,
    task::{Poll, Waker},
    time::{Duration, SystemTime},
};

use serde_json::Value;
use tokio::{
    sync::Semaphore,
    task::{JoinHandle, spawn_blocking},
    time::{Instant, timeout, timeout_at},
};
use tracing::Instrument;

use super::{
    prepare::PreparedCall,
    validate::ValidatedCall,
    watch::{self, Watch},
};
use crate::{
    Failure,
    idempotency::deduplication::{RunEnd, task::Task},
    observe::{confidential, otlp, request_log::CallSummary, spans},
    tool::{output::Output, reason::Reason, repeats::RepeatPolicy, toolkit::ToolEntry},
};

/// The turns of functions that are not async. Tokio has 512 threads for them, and for DNS lookups,
/// which must not wait for functions that block.
static TURNS: Semaphore = Semaphore::const_new(64);

/// The outcome of a call that was not rejected.
pub(crate) struct Outcome {
    pub(crate) call_id: String,
    pub(crate) duration: Duration,
    pub(crate) result: Result<Output, Failure>,
    /// True if the tool ran for this call.
    pub(crate) has_run: bool,
    /// True if this is the outcome of an earlier call: with the same id, or equal to this one.
    pub(crate) is_replay: bool,
    /// The time since the equal call ended, if this is its outcome.
    pub(crate) age: Option<Duration>,
    /// The task that the call has become; the result is then the failure for clients without tasks.
    pub(crate) task: Option<Box<Task>>,
}

impl Outcome {
    /// Creates the outcome of a call that ran elsewhere, or before.
    pub(crate) fn of(call_id: String, duration: Duration, result: Result<Output, Failure>) -> Self {
        Self {
            call_id,
            duration,
            result,
            has_run: false,
            is_replay: false,
            age: None,
            task: None,
        }
    }

    /// Returns the outcome of a call whose task ended without one, because of an error in this
    /// library or because the runtime is stopping. It is unknown how far the tool got.
    pub(super) fn lost(call_id: String) -> Self {
        let failure = Failure::internal(Reason::Lost, "The tool server lost this call")
            .prompt("The tool may have had its effect; ask the user before calling it again.");
        Self::of(call_id, Duration::ZERO, Err(failure))
    }

    /// Replaces an output whose response would have `size` bytes by a failure.
    pub(crate) fn replace_too_large(&mut self, size: usize, largest: usize) {
        let failure = Failure::internal(Reason::TooLarge, "The tool's result is too large to send");
        self.result = Err(failure.developer_message(format!(
            "The response would be {size} bytes; at most {largest} can be sent."
        )));
    }

    /// Returns the facts for the log.
    pub(crate) fn summary(&self) -> CallSummary<'_> {
        CallSummary {
            duration: self.has_run.then_some(self.duration),
            failure: self.result.as_ref().err(),
            is_task: self.task.is_some(),
            is_replay: self.is_replay,
        }
    }
}

impl PreparedCall {
    /// Runs the tool within its time limit, and catches its panics.
    ///
    /// Nothing runs after the end of the call's claim, which may have passed if the machine was
    /// suspended: monotonic clocks stand still during that time.
    pub(super) async fn run(self, claimed_until: Option<SystemTime>) -> (Outcome, RunEnd) {
        let clock = self.valid.execution.engine.clock.clone();
        let mut limit = self.valid.execution.time_left();
        if let Some(until) = claimed_until {
            limit = limit.min(until.duration_since(clock.now()).unwrap_or_default());
        }
        let started = clock.instant();
        let (call_id, result, end) = if limit.is_zero() {
            // The tool would be stopped before it starts, or just after.
            let failure = no_time("The deadline passed before the tool started.");
            let call_id = self.valid.execution.id;
            (call_id, Err(failure), RunEnd::NotStarted)
        } else {
            self.run_within(limit).await
        };
        let duration = clock.instant().saturating_duration_since(started);
        let outcome = Outcome {
            has_run: end != RunEnd::NotStarted,
            ..Outcome::of(call_id, duration, result.map(Output::Value))
        };
        (outcome, end)
    }

    async fn run_within(self, limit: Duration) -> (String, Result<Value, Failure>, RunEnd) {
        let ValidatedCall {
            execution,
            client_context,
            trace_id,
            run,
            ..
        } = self.valid;
        let entry = &execution.entry;
        let values = self.values;
        let context = values.context(&execution, client_context, trace_id, limit);
        let blocks = entry.tool.blocks;
        let until = Instant::now() + limit;
        let (turn, watch) = if blocks {
            let Ok(turn) = timeout_at(until, TURNS.acquire()).await else {
                let failure = no_time("All 64 threads for functions that are not async were busy.");
                return (execution.id, Err(failure), RunEnd::NotStarted);
            };
            (Some(turn), Watch::Off)
        } else {
            (None, execution.engine.watch.clone())
        };
        let run = watch.run(entry.clone(), limit, run(context.clone()));
        let run = confidential::scope(context.clone(), run);
        let span = spans::tool(&entry.id, &execution.id);
        let run = execution.spans.enclose(run.instrument(span.clone()));
        let task = AbortOnDrop(if blocks {
            // The turn lasts until the function returns, which may be after its call has ended.
            spawn_blocking(move || (output_of(run), turn).0)
        } else {
            tokio::spawn(run)
        });
        let (result, end) = await_or_abort(task, until, limit, entry).await;
        let result = result.map_err(|failure| failure.redacted(|text| context.redacted(text)));
        let result = result.and_then(|value| check_output(entry, value));
        if let Err(failure) = &result {
            spans::mark_failed(&span, failure.parts().reason.as_str());
        }
        otlp::end(&span);
        (execution.id, result, end)
    }
}

/// Runs a function that is not async, and so never waits, and returns its output. Nothing here
/// marks the thread as one of an async runtime: blocking clients may start a runtime of their own
/// on it.
fn output_of<T>(run: impl Future<Output = T>) -> T {
    match pin!(run).poll(&mut std::task::Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("only async functions wait"),
    }
}

/// A task that is aborted when this is dropped: a call that is cut off leaves nothing running,
/// unless its function is not async.
struct AbortOnDrop(JoinHandle<Result<Value, Failure>>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Waits for the tool's task, and aborts it at the limit. It is a separate task so that a panic
/// ends only that task, and a tool that blocks its thread does not prevent another thread from
/// sending the response.
async fn await_or_abort(
    mut task: AbortOnDrop,
    until: Instant,
    limit: Duration,
    entry: &ToolEntry,
) -> (Result<Value, Failure>, RunEnd) {
    let is_once = entry.tool.policy == RepeatPolicy::AtMostOnce;
    let_others_run().await;
    let (mut failure, end) = match timeout_at(until, &mut task.0).await {
        Ok(Ok(result)) => return (result, RunEnd::Returned),
        Ok(Err(_)) => {
            let message = "The tool stopped because of an internal error";
            let failure = Failure::internal(Reason::Panicked, message)
                .developer_message("The tool panicked; the log says where.");
            (failure, RunEnd::Stopped)
        }
        Err(_) => {
            task.0.abort();
            // A tool that blocks its thread cannot be aborted.
            let has_ended = timeout(STOP_LIMIT, &mut task.0).await.is_ok();
            if !has_ended && !entry.tool.blocks {
                watch::report(entry);
            }
            let ms = limit.as_millis();
            let failure = Failure::internal(Reason::TimedOut, "The tool did not finish in time")
                .developer_message(format!("The tool was stopped after {ms} ms."));
            let end = if has_ended {
                RunEnd::Stopped
            } else {
                RunEnd::Unstoppable
            };
            (if is_once { failure } else { failure.retry() }, end)
        }
    };
    if is_once {
        failure = failure.prompt(
            "The tool may have had its effect; do not call it again without asking the user.",
        );
    }
    (Err(failure), end)
}

/// Lets the tasks that are ready run first: a tool that does not wait then needs no timer, which takes
/// two system calls. `yield_now` would take one, because it also looks for events.
async fn let_others_run() {
    let mut has_waited = false;
    poll_fn(|context| {
        if mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The time that an aborted tool is given to stop.
const STOP_LIMIT: Duration = Duration::from_millis(50);

fn no_time(cause: &str) -> Failure {
    Failure::internal(Reason::NoTime, "There was no time left to run the tool")
        .developer_message(format!("{cause} Nothing was run."))
        .retry()
}

/// Checks a result against the tool's definition.
fn check_output(entry: &ToolEntry, value: Value) -> Result<Value, Failure> {
    if entry.tool.returns_content {
        // The type itself ensures it, and decoding base64 takes time.
        return Ok(value);
    }
    let schema = &entry.tool.output;
    let violation = if schema.value().is_null() {
        (!value.is_null()).then(|| "it must be null".to_owned())
    } else {
        // Names the violated parts of the schema, not of the output, whose field names may be
        // secret.
        match schema.rejecting_keywords(&value) {
            Ok(None) => None,
            Ok(Some(places)) => Some(format!("it is rejected by {}", places.join(", "))),
            Err(detail) => Some(detail.to_owned()),
        }
    };
    match violation {
        None => Ok(value),
        Some(violation) => Err(Failure::internal(
            Reason::InvalidOutput,
            "The tool returned a result that does not match its definition",
        )
        .developer_message(format!(
            "The output does not match output_schema: {violation}."
        ))),
    }
}
