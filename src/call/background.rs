//! Calls that outlast their requests: they are handed over, and performed elsewhere.
//!
//! The work is a call of its own, in another invocation of the function or in a task of the local
//! server. Its input waits in the record of the call. It is encrypted with a key that is only in
//! the event that starts the work: without this event, nobody can start the work or read the input.

#[cfg_attr(not(feature = "tasks"), path = "background/sealed/off.rs")]
mod sealed;

use std::{
    pin::Pin,
    sync::OnceLock,
    time::{Duration, SystemTime},
};

use http::{HeaderMap, HeaderName};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Background, Call, ClientContext, Engine, Execution, execution::DEFAULT_LIMIT};
use crate::{
    Caller, Failure, StoreError,
    auth::PermittedUsers,
    idempotency::{
        deduplication::{
            Claim, RunEnd,
            task::{Start, Task, TaskId},
        },
        owner_of,
    },
    tool::{
        id::Selector,
        parts::{TaskSupport, ToolParts},
        toolkit::{SelectedTool, ToolEntry},
    },
};
pub(super) use sealed::Code;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The function that takes calls that are handed over. It is set once.
pub(crate) type Worker = OnceLock<HandOver>;

/// A function that has a task of a caller performed elsewhere. An error means that it may never start.
pub(crate) type HandOver = Box<dyn Fn(Ticket, &Caller) -> HandingOver + Send + Sync>;
pub(crate) type HandingOver = Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send>>;

/// The start of the work: the task's id, and the code that decrypts its call.
#[derive(Deserialize, Serialize)]
pub(crate) struct Ticket {
    pub(super) task: String,
    pub(super) code: Code,
}

/// A call as it is stored until its work starts.
#[derive(Deserialize)]
struct StoredCall {
    tool: String,
    call_id: String,
    trace_id: Option<String>,
    traceparent: Option<String>,
    input: Value,
    caller: Caller,
    context: ClientContext,
}

/// A task that has been started.
pub(crate) struct StartedTask {
    pub(crate) call: Box<Call>,
    pub(crate) caller: Caller,
    /// The headers that name the call's trace.
    pub(crate) headers: HeaderMap,
    /// The claim, for a call that does not reach its tool.
    pub(crate) claim: Claim,
}

impl Engine {
    /// Returns true if calls of this tool can be handed over.
    pub(crate) fn hands_over(&self, tool: &ToolParts) -> bool {
        cfg!(feature = "tasks")
            && tool.tasks != TaskSupport::Never
            && self.worker.get().is_some()
            && self.deduplication.is_on()
    }

    /// Returns true if any call can become a task.
    pub(crate) fn has_tasks(&self) -> bool {
        let mut entries = self.toolkit.entries().iter();
        entries.any(|entry| self.hands_over(&entry.tool))
    }

    /// Returns a task of this caller, after cancelling it if `cancels` says so.
    pub(crate) async fn task(
        &self,
        id: &TaskId,
        caller: &Caller,
        cancels: bool,
    ) -> Result<Option<Task>, StoreError> {
        let owner = self.owner(caller);
        self.deduplication.task(id, &owner, cancels).await
    }

    /// Returns the tool of a task.
    pub(crate) fn tool_of(&self, task: &Task) -> Option<SelectedTool> {
        self.toolkit
            .resolve(&task.tool.parse().ok()?, |_| true)
            .ok()
    }

    fn owner(&self, caller: &Caller) -> String {
        let user = match self.auth.users_of(caller) {
            PermittedUsers::Only(user) => Some(user),
            PermittedUsers::Any | PermittedUsers::None => None,
        };
        owner_of(caller, user)
    }

    /// Starts the task of a ticket. `deadline` is the platform's.
    pub(crate) async fn start(
        &self,
        ticket: &Ticket,
        deadline: Option<SystemTime>,
    ) -> Result<Start<StartedTask>, StoreError> {
        let Some(id) = TaskId::parse(&ticket.task) else {
            return Ok(Start::Unknown);
        };
        let open = |sealed: &[u8]| {
            let call = ticket.code.open(&ticket.task, sealed)?;
            let call: StoredCall = serde_json::from_slice(&call).ok()?;
            let selector: Selector = call.tool.parse().ok()?;
            let limit = limit_of(&self.toolkit.resolve(&selector, |_| true).ok()?);
            Some(((selector, call), limit))
        };
        let started = self.deduplication.start(&id, deadline, open).await?;
        Ok(started.map(|(claim, (selector, stored))| {
            let parent = stored.traceparent.and_then(|it| it.parse().ok());
            let call = Call {
                call_id: Some(stored.call_id),
                trace_id: stored.trace_id,
                client_context: stored.context,
                background: Background::Started(Box::new(claim.clone())),
                ..Call::new(selector, stored.input)
            };
            StartedTask {
                call: Box::new(call),
                caller: stored.caller,
                headers: parent.map(|it| (TRACEPARENT, it)).into_iter().collect(),
                claim,
            }
        }))
    }

    /// Ends a task whose call did not reach its tool.
    pub(crate) async fn end_task(&self, claim: Claim, failure: Failure) {
        let (deduplication, result) = (&self.deduplication, Err(failure));
        deduplication
            .settle(claim, Duration::ZERO, &result, RunEnd::NotStarted)
            .await;
    }
}

impl Execution {
    /// Returns the call as it is stored until its work starts, if it is handed over.
    pub(super) fn stored(
        &self,
        input: &Value,
        trace_id: Option<&str>,
        context: &ClientContext,
    ) -> Option<Vec<u8>> {
        if !self.is_handed_over() {
            return None;
        }
        let call = json!({
            "tool": self.entry.id.to_string(),
            "call_id": self.id,
            "trace_id": trace_id,
            "traceparent": self.spans.parent,
            "input": input,
            "caller": self.caller,
            "context": context,
        });
        Some(call.to_string().into_bytes())
    }
}

pub(super) fn limit_of(entry: &ToolEntry) -> Duration {
    let limit = entry.tool.timeout.unwrap_or(DEFAULT_LIMIT);
    limit.min(super::execution::LONGEST_TIMEOUT)
}

#[cfg(test)]
mod tests {
    use super::DEFAULT_LIMIT;
    use crate::idempotency::deduplication::task::LONGEST_QUEUE;

    /// Lambda delivers no event that comes too late, and stops no task that has time left.
    #[test]
    #[ignore = "needs the repository's templates; run tests/all"]
    fn the_templates_have_the_limits_of_tasks() {
        let queue = LONGEST_QUEUE.as_secs();
        let queue = format!(" MaximumEventAgeInSeconds: {queue}\n");
        let limit = DEFAULT_LIMIT.as_secs();
        let limit = format!(" Timeout: !If [HasTasks, {limit}, 23]\n");
        for path in ["template.yaml", "templates/function/template.yaml"] {
            let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
            let template = std::fs::read_to_string(file).unwrap();
            for line in [&queue, &limit] {
                assert_eq!(template.matches(&**line).count(), 1, "{path}: {line}");
            }
        }
    }
}
