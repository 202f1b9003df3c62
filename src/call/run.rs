//! Running a tool: inside its time limit, behind a barrier for panics, held to its definition.

use crate::tool::reason::Reason;
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinHandle;
use tracing::Instrument;

use super::prepare::PreparedCall;
use crate::{
    Failure,
    idempotency::deduplication::RunEnd,
    observe::{confidential, spans},
    tool::{output::Output, repeats::RepeatPolicy, toolkit::ToolEntry},
};

/// What came of a call whose tool ran.
pub(crate) struct Outcome {
    pub(crate) call_id: String,
    pub(crate) duration: Duration,
    pub(crate) result: Result<Output, Failure>,
    /// Whether the tool ran for this call.
    pub(crate) has_run: bool,
    /// Whether this is what an earlier call with the same id was answered.
    pub(crate) is_replay: bool,
}

impl Outcome {
    /// The task that ran the call ended without an outcome, because of an error in this library or
    /// because the runtime stops. Nobody knows how far the tool got.
    pub(super) fn lost(call_id: String) -> Self {
        Self {
            call_id,
            duration: Duration::ZERO,
            result: Err(
                Failure::internal(Reason::Lost, "The tool server lost this call").prompt(
                    "The tool may have had its effect; ask the user before calling it again.",
                ),
            ),
            has_run: false,
            is_replay: false,
        }
    }
}

impl PreparedCall {
    /// Runs the tool inside its time limit and behind a barrier for panics.
    pub(super) async fn run(self) -> (Outcome, RunEnd) {
        let limit = self.execution.time_left();
        let clock = self.execution.engine.clock.clone();
        let started = clock.instant();
        let (call_id, result, ending) = if limit.is_zero() {
            // It would be stopped before it has begun, or after.
            let failure = out_of_time(Reason::NoTime, limit).retry();
            let call_id = self.execution.id.into_string();
            (call_id, Err(failure), RunEnd::NotStarted)
        } else {
            self.run_within(limit).await
        };
        let outcome = Outcome {
            call_id,
            duration: clock.instant().saturating_duration_since(started),
            result: result.map(Output::Value),
            has_run: ending != RunEnd::NotStarted,
            is_replay: false,
        };
        (outcome, ending)
    }

    async fn run_within(self, limit: Duration) -> (String, Result<Value, Failure>, RunEnd) {
        let Self {
            execution,
            user_id,
            trace_id,
            run,
            gathered,
            ..
        } = self;
        let entry = &execution.entry;
        let context = gathered.context(&execution, user_id, trace_id, limit);
        let running = confidential::scope(context.clone(), run(context.clone()));
        let span = spans::tool(&entry.id, execution.id.as_str());
        let running = execution.spans.around(running.instrument(span.clone()));
        let task = AbortOnDrop(tokio::spawn(running));
        let (result, ending) = bounded(task, limit, entry.tool.policy).await;
        let result = result.map_err(|failure| failure.redacted(|text| context.redacted(text)));
        let result = result.and_then(|value| conforming(entry, value));
        if let Err(failure) = &result {
            spans::failed(&span, failure.parts().reason.as_str());
        }
        spans::end(&span);
        (execution.id.into_string(), result, ending)
    }
}

/// A task that ends when nobody waits for it any longer: a call that was cut off leaves nothing
/// running behind it.
struct AbortOnDrop(JoinHandle<Result<Value, Failure>>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A task of its own, because a panic then ends only the task, and a tool that blocks its thread
/// does not keep the answer from leaving on another.
async fn bounded(
    mut task: AbortOnDrop,
    limit: Duration,
    policy: RepeatPolicy,
) -> (Result<Value, Failure>, RunEnd) {
    match tokio::time::timeout(limit, &mut task.0).await {
        Ok(Ok(result)) => (result, RunEnd::Returned),
        Ok(Err(_)) => {
            let message = "The tool stopped because of an error in it";
            let failure = Failure::internal(Reason::Panicked, message)
                .developer_message("The tool panicked; the log says where.");
            (Err(stopped(failure, policy)), RunEnd::Stopped)
        }
        Err(_) => {
            task.0.abort();
            // A tool that blocks its thread goes on, whatever is asked of it.
            let ended = tokio::time::timeout(TO_STOP, &mut task.0).await.is_ok();
            let failure = out_of_time(Reason::TimedOut, limit);
            let failure = match policy {
                RepeatPolicy::AtMostOnce => failure,
                _ => failure.retry(),
            };
            let ending = if ended {
                RunEnd::Stopped
            } else {
                RunEnd::Unstoppable
            };
            (Err(stopped(failure, policy)), ending)
        }
    }
}

/// How long a tool may take to notice that it is stopped.
const TO_STOP: Duration = Duration::from_millis(50);

fn out_of_time(reason: Reason, limit: Duration) -> Failure {
    let ms = limit.as_millis();
    Failure::internal(reason, "The tool did not finish in time")
        .developer_message(format!("The tool was stopped after {ms} ms."))
}

fn stopped(failure: Failure, policy: RepeatPolicy) -> Failure {
    match policy {
        RepeatPolicy::AtMostOnce => failure.prompt(
            "The tool may have had its effect; do not call it again without asking the user.",
        ),
        _ => failure,
    }
}

/// A result must be what the tool's definition promises.
fn conforming(entry: &ToolEntry, value: Value) -> Result<Value, Failure> {
    let schema = &entry.tool.output;
    let mistake = if schema.value().is_null() {
        (!value.is_null()).then(|| "it must be null".to_owned())
    } else {
        // Where the definition is broken, and not by what: the names of fields may be secret too.
        match schema.refused_by(&value) {
            Ok(None) => None,
            Ok(Some(places)) => Some(format!("it is refused by {}", places.join(", "))),
            Err(detail) => Some(detail.to_owned()),
        }
    };
    match mistake {
        None => Ok(value),
        Some(mistake) => Err(Failure::internal(
            Reason::InvalidOutput,
            "The tool gave a result that does not fit its definition",
        )
        .developer_message(format!("The output does not fit output_schema: {mistake}."))),
    }
}
