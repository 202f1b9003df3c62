//! Handing a call over, and waiting for its outcome.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, timeout_at};

use super::{
    Background, Engine, Execution, Outcome, Rejection,
    background::{Code, Ticket, limit_of},
    execution::DEFAULT_LIMIT,
    prepare::PreparedCall,
};
use crate::{
    DEFAULT_TIMEOUT, Failure,
    idempotency::{
        CallIdentity,
        deduplication::{
            Claim,
            task::{NewTask, Task, TaskId, TaskState},
        },
        owner_of,
    },
    tool::reason::Reason,
};

/// The pauses between two looks at a task, while its first caller waits.
const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl PreparedCall {
    /// Hands the call over, and waits for its outcome.
    pub(super) async fn hand_over(
        self,
        claim: Claim,
        ticket: Ticket,
        until: Instant,
    ) -> Result<Outcome, Rejection> {
        let (engine, started) = (Arc::clone(&self.valid.execution.engine), Instant::now());
        let Some(first) = claim.task(engine.clock.now()) else {
            return Ok(Outcome::lost(self.valid.execution.id));
        };
        let worker = engine.worker.get().expect("calls are handed over to it");
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
}

impl Execution {
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
    /// one.
    pub(super) fn patience(&self, is_handed_over: bool) -> Option<Duration> {
        if !is_handed_over && self.follower.is_none() {
            return None;
        }
        let left = self.arrival.invocation.time_left(self.engine.clock.now());
        let left = left.unwrap_or(DEFAULT_LIMIT);
        let elapsed = self.engine.clock.instant() - self.arrival.at;
        match self.background {
            Background::Task if is_handed_over => Some(self.engine.task_after.min(left)),
            // The client sees that the call goes on.
            _ if self.follower.is_some() && is_handed_over => Some(left),
            _ if !is_handed_over => Some(self.time_left()),
            _ => Some(DEFAULT_TIMEOUT.saturating_sub(elapsed).min(left)),
        }
    }
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
