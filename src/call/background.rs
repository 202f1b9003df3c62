//! Calls that outlast their requests: they are handed over, and performed elsewhere.
//!
//! The work is a call of its own, in another invocation of the function or in a task of the local
//! server. Its input waits in the record of the call. It is encrypted with a key that is only in
//! the event that starts the work: without this event, nobody can start the work or read the input.

#[cfg_attr(not(feature = "tasks"), path = "background/sealed/off.rs")]
mod sealed;

use std::{
    collections::BTreeMap,
    pin::{Pin, pin},
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::{HeaderMap, HeaderName};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::{
    select,
    sync::watch,
    time::{Instant, sleep, timeout_at},
};

use super::{
    Background, Call, ClientContext, DEFAULT_LIMIT, Engine, Execution, LONGEST_TIMEOUT, Outcome,
    Rejection, prepare::PreparedCall,
};
use crate::{
    Caller, DEFAULT_TIMEOUT, Failure, Secret, StoreError,
    auth::PermittedUsers,
    idempotency::{
        CallIdentity,
        deduplication::{
            Claim, RunEnd,
            task::{NewTask, NotStarted, Task, TaskId, TaskState},
        },
        owner_of,
    },
    json::JsonObject,
    text::{LONGEST_SHOWN, clipped},
    tool::{
        id::Selector,
        output::Output,
        parts::{TaskSupport, ToolParts},
        progress::{Follower, Progress},
        question::Answers,
        reason::Reason,
        toolkit::ToolEntry,
    },
};
use sealed::Code;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The pauses between two looks at a task, while its first caller waits.
const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The time between two notes about the progress of a task.
const BETWEEN_NOTES: Duration = Duration::from_secs(1);

/// The notes without progress after which the task looks whether it is cancelled.
const QUIET_NOTES: u32 = 2;

/// A function that has a task of a caller performed elsewhere. An error means that it may never start.
pub(crate) type HandOver = Box<dyn Fn(Ticket, &Caller) -> HandingOver + Send + Sync>;
pub(crate) type HandingOver = Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send>>;

/// The start of the work: the task's id, and the code that decrypts its call.
#[derive(Deserialize, Serialize)]
pub(crate) struct Ticket {
    task: String,
    code: Code,
}

/// A call as it is encrypted, with its tokens and secrets, until its work starts.
#[derive(Deserialize)]
struct StoredCall {
    tool: String,
    call_id: String,
    trace_id: Option<String>,
    traceparent: Option<String>,
    input: Value,
    caller: Caller,
    user_id: Option<String>,
    tokens: BTreeMap<String, String>,
    secrets: BTreeMap<String, String>,
    answers: Option<Answers>,
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
            && self.worker.is_some()
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
        let found = self.deduplication.task(id, &owner, false).await?;
        // Of a version that is gone, the rules are those of the newest one.
        let newest = |task: &Task| {
            let selector = task.tool.parse::<Selector>().ok()?;
            let version = None;
            let selector = Selector {
                version,
                ..selector
            };
            self.toolkit.resolve(&selector, |_| true).ok()
        };
        let tool = found.as_ref();
        let tool = tool.and_then(|task| self.tool_of(task).or_else(|| newest(task)));
        if tool.is_some_and(|it| !self.auth.allows(caller, &it)) {
            return Ok(None);
        }
        if !cancels {
            return Ok(found);
        }
        self.deduplication.task(id, &owner, cancels).await
    }

    /// Returns the tool of a task.
    pub(crate) fn tool_of(&self, task: &Task) -> Option<ToolEntry> {
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
    ) -> Result<StartedTask, NotStarted> {
        let id = TaskId::parse(&ticket.task).ok_or(NotStarted::Unknown)?;
        let open = |sealed: &[u8]| {
            let call = ticket.code.open(&ticket.task, sealed)?;
            let call: StoredCall = serde_json::from_slice(&call).ok()?;
            let selector: Selector = call.tool.parse().ok()?;
            let limit = limit_of(&self.toolkit.resolve(&selector, |_| true).ok()?);
            Some(((selector, call), limit))
        };
        let started = self.deduplication.start(&id, deadline, open);
        let (claim, (selector, stored)) = started.await?;
        let parent = stored.traceparent.and_then(|it| it.parse().ok());
        let call = Call {
            call_id: Some(stored.call_id),
            trace_id: stored.trace_id,
            client_context: ClientContext {
                user_id: stored.user_id,
                tokens: secret(stored.tokens),
                secrets: secret(stored.secrets),
                answers: stored.answers,
            },
            background: Background::Started(Box::new(claim.clone())),
            ..Call::new(selector, stored.input)
        };
        Ok(StartedTask {
            call: Box::new(call),
            caller: stored.caller,
            headers: parent.map(|it| (TRACEPARENT, it)).into_iter().collect(),
            claim,
        })
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
        let exposed = |secrets: &BTreeMap<String, Secret>| -> JsonObject {
            let texts = secrets
                .iter()
                .map(|(id, it)| (id.clone(), it.expose().into()));
            texts.collect()
        };
        let call = json!({
            "tool": self.entry.id.to_string(),
            "call_id": self.id,
            "trace_id": trace_id,
            "traceparent": self.spans.parent,
            "input": input,
            "caller": self.caller,
            "user_id": context.user_id,
            "tokens": exposed(&context.tokens),
            "secrets": exposed(&context.secrets),
            "answers": context.answers,
        });
        Some(call.to_string().into_bytes())
    }

    /// Encrypts a call for its record, and returns what starts its work.
    pub(super) fn seal(
        &self,
        identity: &CallIdentity,
        call: &[u8],
        user: Option<&str>,
    ) -> (NewTask, Ticket) {
        let id = TaskId {
            key: identity.key.clone(),
            random: self.engine.clock.id().simple().to_string(),
        };
        let ticket = Ticket {
            task: id.to_string(),
            code: Code::new(),
        };
        let task = NewTask {
            random: id.random,
            owner: owner_of(&self.caller, user),
            tool: self.entry.id.to_string(),
            sealed: ticket.code.seal(&ticket.task, call),
            limit: limit_of(&self.entry),
        };
        (task, ticket)
    }

    /// Returns the time that the caller waits for a call that runs elsewhere, if it is not the usual
    /// one. Clients that send no ids would not come back for an equal call's outcome.
    pub(super) fn patience(&self, is_handed_over: bool) -> Option<Duration> {
        if !is_handed_over {
            let waits = self.follower.is_some()
                || self.entry.tool.once_within.is_some() && !self.has_client_id;
            return waits.then(|| self.time_left());
        }
        let left = self.arrival.invocation.time_left(self.engine.clock.now());
        let left = left.unwrap_or(DEFAULT_LIMIT);
        let elapsed = self.engine.clock.instant() - self.arrival.at;
        Some(match self.background {
            Background::Task => self.engine.task_after.min(left),
            // The client sees that the call goes on.
            _ if self.follower.is_some() => left,
            _ => DEFAULT_TIMEOUT.saturating_sub(elapsed).min(left),
        })
    }
}

impl PreparedCall {
    /// Hands the call over, and waits for its outcome.
    pub(super) async fn hand_over(
        self,
        claim: Claim,
        ticket: Ticket,
        until: Instant,
    ) -> Result<Outcome, Rejection> {
        let (engine, started) = (Arc::clone(&self.valid.execution.engine), Instant::now());
        let first = claim.task(engine.clock.now());
        let first = first.expect("a call that is handed over is a task");
        let worker = engine.worker.as_ref().expect("calls are handed over to it");
        if let Err(error) = worker(ticket, &self.valid.execution.caller).await {
            // Delivered nevertheless, the event finds no task, unless it has started it by now.
            if engine.deduplication.withdraw(claim).await {
                return Err(Rejection::Unprotected(error));
            }
        }
        let owner = owner_of(&self.valid.execution.caller, self.valid.user());
        let task = wait(&engine, first, &owner, until).await;
        let has_id = self.valid.execution.has_client_id;
        let call_id = self.valid.execution.id;
        let elapsed = started.elapsed();
        Ok(match task {
            Some(task) => match task.state {
                TaskState::Ended(it) => Outcome::of(call_id, it.duration, it.result),
                TaskState::Lost(failure) => Outcome::of(call_id, elapsed, Err(failure)),
                TaskState::Working | TaskState::Cancelled => Outcome {
                    task: Some(Box::new(task)),
                    ..Outcome::of(call_id, elapsed, Err(goes_on(has_id)))
                },
            },
            None => Outcome::lost(call_id),
        })
    }

    /// Performs a call that was handed over, and records how far it has got and how it ended.
    pub(super) async fn perform_task(mut self, mut claim: Claim) -> Result<Outcome, Rejection> {
        let (reports, mut latest) = watch::channel(None);
        let follower = Follower::new(move |progress| {
            reports.send_replace(Some(progress));
        });
        self.valid.execution.follower = Some(follower.clone());
        let deduplication = Arc::clone(&self.valid.execution.engine.deduplication);
        let _running = deduplication.count_running();
        #[cfg(feature = "oauth")]
        let reauthorization = self.reauthorization();
        let until = claim.until();
        let (mut outcome, end) = {
            let mut run = pin!(self.run(until));
            let mut quiet = 0;
            loop {
                select! {
                    done = &mut run => break done,
                    () = sleep(BETWEEN_NOTES) => {}
                }
                let changed = latest.has_changed().unwrap_or(false);
                quiet = if changed { 0 } else { quiet + 1 };
                if !changed && quiet < QUIET_NOTES {
                    continue;
                }
                quiet = 0;
                let message = changed.then(|| latest.borrow_and_update().as_ref().map(text_of));
                select! {
                    done = &mut run => break done,
                    noted = deduplication.note(&mut claim, message.flatten()) => match noted {
                        Ok(true) => follower.cancel(),
                        Ok(false) => {}
                        Err(error) => tracing::warn!(%error, "the progress of a task is not recorded"),
                    },
                }
            }
        };
        #[cfg(feature = "oauth")]
        if let Some(reauthorization) = reauthorization {
            outcome = reauthorization.challenge_instead_of(outcome).await?;
        }
        outcome.result = outcome.result.map(Output::into_json);
        deduplication
            .settle(claim, outcome.duration, &outcome.result, end)
            .await;
        Ok(outcome)
    }
}

fn secret(texts: BTreeMap<String, String>) -> BTreeMap<String, Secret> {
    texts.into_iter().map(|(id, it)| (id, it.into())).collect()
}

fn limit_of(entry: &ToolEntry) -> Duration {
    let limit = entry.tool.timeout.unwrap_or(DEFAULT_LIMIT);
    limit.min(LONGEST_TIMEOUT)
}

/// Waits until a task has ended. Returns what is known of it last; `None` if another call has
/// replaced its record.
async fn wait(engine: &Engine, first: Task, owner: &str, until: Instant) -> Option<Task> {
    let (mut pause, mut last) = (FIRST_PAUSE, first);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Some(last);
        }
        sleep(pause.min(left)).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        let looked = timeout_at(until, engine.deduplication.task(&last.id, owner, false)).await;
        match looked {
            Err(_) => return Some(last),
            Ok(Ok(task)) => last = task?,
            // The store may respond again; the client asks, in any case.
            Ok(Err(_)) => {}
        }
        if !matches!(last.state, TaskState::Working) {
            return Some(last);
        }
    }
}

/// Returns the failure for a client without tasks. Only one that has sent an id can repeat the call.
fn goes_on(has_id: bool) -> Failure {
    let failure = Failure::internal(Reason::Running, "The tool is still working")
        .developer_message(
            "The call goes on. The same call with the same call_id gets its outcome.",
        );
    if !has_id {
        let prompt = "The work goes on. Do not call the tool again for its effect.";
        return failure.prompt(prompt);
    }
    let prompt =
        "The work goes on: repeat the same call, with the same call id, to get its outcome.";
    failure.prompt(prompt).retry_after(Duration::from_secs(5))
}

/// Returns the text of a report, of a length that any store can keep.
fn text_of(progress: &Progress) -> String {
    let done = &progress.done;
    match (&*progress.message, progress.total) {
        ("", None) => done.to_string(),
        ("", Some(total)) => format!("{done} of {total}"),
        (message, _) => clipped(message, LONGEST_SHOWN).into_owned(),
    }
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
