//! Claiming a call before it runs, so that it runs once.

use std::sync::Arc;

use super::{Outcome, Rejection, prepare::PreparedCall};
use crate::idempotency::{
    CallIdentity,
    deduplication::{ClaimError, ClaimLimits, ClaimResult},
};

impl PreparedCall {
    /// Runs the tool, unless the same call has run before or runs elsewhere. Where a token that the
    /// user had granted was refused, the user is asked anew.
    pub(super) async fn run_once(self) -> Result<Outcome, Rejection> {
        #[cfg(feature = "oauth")]
        let regrant = self.regrant();
        let outcome = match self.identity() {
            Some(identity) => self.run_claimed(identity).await?,
            None => self.run().await.0,
        };
        #[cfg(feature = "oauth")]
        if let Some(regrant) = regrant {
            return regrant.instead_of(outcome).await;
        }
        Ok(outcome)
    }

    /// A task of its own, from the claim on: whoever asks again wants the outcome, even if the first
    /// one has stopped waiting.
    async fn run_claimed(self, identity: CallIdentity) -> Result<Outcome, Rejection> {
        let call_id = self.execution.id.as_str().to_owned();
        let running = self.execution.engine.deduplication.running();
        let spans = self.execution.spans.clone();
        let task = Box::pin(async move {
            let _running = running;
            self.claimed(identity).await
        });
        let done = tokio::spawn(spans.around(task)).await;
        done.unwrap_or_else(|_| Ok(Outcome::lost(call_id)))
    }

    async fn claimed(self, identity: CallIdentity) -> Result<Outcome, Rejection> {
        let execution = &self.execution;
        let deduplication = Arc::clone(&execution.engine.deduplication);
        let limits = || ClaimLimits {
            tool: execution.time_left(),
            deadline: execution.arrival.invocation.deadline,
        };
        let policy = execution.entry.tool.policy;
        match deduplication.claim(identity, policy, limits).await? {
            ClaimResult::Run => Ok(self.run().await.0),
            ClaimResult::Recorded(claim) => {
                let (outcome, ending) = self.run().await;
                let (duration, result) = (outcome.duration, &outcome.result);
                deduplication.settle(claim, duration, result, ending).await;
                Ok(outcome)
            }
            ClaimResult::Known(known) => Ok(Outcome {
                call_id: self.execution.id.into_string(),
                duration: known.duration,
                result: known.result,
                has_run: false,
                is_replay: known.is_replay,
            }),
        }
    }

    fn identity(&self) -> Option<CallIdentity> {
        let execution = &self.execution;
        let call_id = execution.id.given()?;
        let fingerprint = self.fingerprint.clone()?;
        let tool = &execution.entry.id;
        Some(CallIdentity::new(
            &execution.caller,
            tool,
            call_id,
            fingerprint,
        ))
    }
}

impl From<ClaimError> for Rejection {
    fn from(error: ClaimError) -> Self {
        match error {
            ClaimError::IdReused => Self::CallIdReused,
            ClaimError::Unprotected(error) => Self::Unprotected(error),
        }
    }
}
