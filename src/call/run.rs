//! Running a tool: inside its time limit, behind a barrier for panics, held to its definition.

use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinHandle;
use tracing::Instrument;

use super::{Ready, confidential};
use crate::{Failure, toolkit::Entry};

/// What came of a call whose tool ran.
pub(crate) struct Outcome {
    pub(crate) tool: String,
    pub(crate) call_id: String,
    pub(crate) duration: Duration,
    pub(crate) result: Result<Value, Failure>,
}

impl Ready<'_> {
    /// Runs the tool inside its time limit and behind a barrier for panics.
    pub(crate) async fn run(self) -> Outcome {
        let running = confidential::scope(self.context.clone(), self.running);
        let task = Cancelled(tokio::spawn(running.in_current_span()));
        let result = bounded(task, self.limit).await;
        let result = result.map_err(|failure| failure.without(&self.context));
        let duration = (self.instant)().saturating_duration_since(self.started);
        Outcome {
            tool: self.entry.id.to_string(),
            call_id: self.call_id,
            duration,
            result: result.and_then(|value| conforming(self.entry, value)),
        }
    }
}

/// A task that ends when nobody waits for it any longer: a call that was cut off leaves nothing
/// running behind it.
struct Cancelled(JoinHandle<Result<Value, Failure>>);

impl Drop for Cancelled {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A task of its own, because a panic then ends only the task, and a tool that blocks its thread
/// does not keep the answer from leaving on another.
async fn bounded(mut task: Cancelled, limit: Duration) -> Result<Value, Failure> {
    match tokio::time::timeout(limit, &mut task.0).await {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(Failure::new("The tool stopped because of an error in it")
            .developer_message("The tool panicked; the log says where.")),
        Err(_) => Err(Failure::new("The tool did not finish in time")
            .developer_message(format!(
                "The tool was stopped after {} ms.",
                limit.as_millis()
            ))
            .retry()),
    }
}

/// A result must be what the tool's definition promises.
fn conforming(entry: &Entry, value: Value) -> Result<Value, Failure> {
    let schema = &entry.tool.output;
    let mistake = if schema.value().is_null() {
        (!value.is_null()).then(|| "The output must be null".to_owned())
    } else {
        match schema.check(&value, "value") {
            Ok(Ok(())) => None,
            Ok(Err(errors)) => {
                let named = |(path, text)| format!("{path}: {text}");
                Some(errors.into_iter().map(named).collect::<Vec<_>>().join("; "))
            }
            Err(detail) => Some(detail.to_owned()),
        }
    };
    match mistake {
        None => Ok(value),
        Some(mistake) => Err(Failure::new(
            "The tool gave a result that does not fit its definition",
        )
        .developer_message(format!("The output does not fit output_schema: {mistake}"))),
    }
}
