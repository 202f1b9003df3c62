//! The claim of a call before it runs, so that it runs only once.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{Background, Execution, Outcome, Rejection, prepare::PreparedCall};
use crate::{
    idempotency::{
        CallIdentity,
        deduplication::{Claim, ClaimLimits, ClaimResult},
    },
    quotas::CountedCall,
    tool::output::Output,
};

/// The time that the store may take to count a call.
const LONGEST_COUNT: Duration = Duration::from_secs(3);

impl PreparedCall {
    /// Runs the tool, unless the same call has run before or is running elsewhere. If a token that
    /// the user had granted was rejected, the user is challenged again.
    pub(super) async fn run_once(mut self) -> Result<Outcome, Rejection> {
        if let Background::Started(claim) = &self.valid.execution.background {
            let claim = Claim::clone(claim);
            // Boxed, like what follows a rejected token, so that other calls' futures stay small.
            return Box::pin(self.perform_task(claim)).await;
        }
        #[cfg(feature = "oauth")]
        let reauthorization = self.reauthorization();
        let outcome = if let Some(identity) = self.valid.identity.take() {
            self.run_claimed(identity).await?
        } else {
            self.valid.execution.count(self.valid.user()).await?;
            self.run(None).await.0
        };
        #[cfg(feature = "oauth")]
        if let Some(reauthorization) = reauthorization {
            return Box::pin(reauthorization.challenge_instead_of(outcome)).await;
        }
        Ok(outcome)
    }

    /// Claims and runs the call in a separate task: a repeated call needs the outcome even if the
    /// first caller has stopped waiting.
    async fn run_claimed(self, identity: CallIdentity) -> Result<Outcome, Rejection> {
        let call_id = self.valid.execution.id.clone();
        let running = self.valid.execution.engine.deduplication.count_running();
        let spans = self.valid.execution.spans.clone();
        let task = Box::pin(async move {
            let result = self.claim_and_run(identity).await;
            drop(running);
            result
        });
        let result = tokio::spawn(spans.enclose(task)).await;
        result.unwrap_or_else(|_| Ok(Outcome::lost(call_id)))
    }

    async fn claim_and_run(mut self, identity: CallIdentity) -> Result<Outcome, Rejection> {
        let execution = &self.valid.execution;
        let deduplication = Arc::clone(&execution.engine.deduplication);
        let stored = self.valid.stored.take();
        let stored = stored.filter(|it| deduplication.can_keep(it.len()));
        let patience = execution.patience(stored.is_some());
        let until = patience.map(|it| Instant::now() + it);
        let handed = stored.map(|it| execution.seal(&identity, &it, self.valid.user()));
        let (task, ticket) = handed.unzip();
        let limits = || ClaimLimits {
            tool: execution.time_left(),
            patience,
            deadline: execution.arrival.invocation.deadline,
        };
        let policy = execution.entry.tool.policy;
        let claimed = deduplication.claim(identity, policy, limits, task.as_ref());
        match claimed.await.map_err(Rejection::Unprotected)? {
            ClaimResult::Claimed(claim) => {
                if let Err(rejection) = self.valid.execution.count(self.valid.user()).await {
                    if !deduplication.withdraw(claim).await {
                        tracing::warn!(
                            "a rejected call blocks its call_id until its claim expires"
                        );
                    }
                    return Err(rejection);
                }
                if let (Some(ticket), Some(until)) = (ticket, until) {
                    return self.hand_over(claim, ticket, until).await;
                }
                let (mut outcome, end) = self.run(claim.until()).await;
                // The record and the response are the same text.
                outcome.result = outcome.result.map(Output::into_json);
                let (duration, result) = (outcome.duration, &outcome.result);
                deduplication.settle(claim, duration, result, end).await;
                Ok(outcome)
            }
            ClaimResult::IdReused => Err(Rejection::CallIdReused),
            ClaimResult::Duplicate(recorded) => {
                let call_id = self.valid.execution.id;
                Ok(Outcome {
                    is_replay: recorded.is_replay,
                    age: recorded.age,
                    task: recorded.task,
                    ..Outcome::of(call_id, recorded.duration, recorded.result)
                })
            }
        }
    }
}

impl Execution {
    /// Counts the call against the quotas. Replays are not counted: whoever lost the response to a call
    /// gets it, although the quota is used up by now.
    async fn count(&self, user: Option<&str>) -> Result<(), Rejection> {
        let quotas = &self.engine.quotas;
        if quotas.is_empty() {
            return Ok(());
        }
        let call = CountedCall {
            caller: &self.caller,
            user,
            tool: self.entry.id.qualified(),
        };
        let limit = LONGEST_COUNT.min(self.time_left() / 2);
        let counted = quotas.count(call, self.engine.clock.now(), limit);
        match counted.await {
            Ok(None) => Ok(()),
            Ok(Some(quota)) => Err(Rejection::QuotaExceeded(Box::new(quota))),
            Err(error) => Err(Rejection::Uncounted(error)),
        }
    }
}
