//! Claiming a call before it runs, so that it runs once.

use std::sync::Arc;

use super::{Outcome, Ready, rejection::Rejection, time_left};
use crate::idempotency::{
    Identity,
    protection::{Claimed, Limits, Protection},
};

impl Ready {
    /// Runs the tool, unless the same call has run before or runs elsewhere.
    pub(crate) async fn run_once(self, protection: &Arc<Protection>) -> Result<Outcome, Rejection> {
        let Some(identity) = self.identity() else {
            return Ok(self.run().await.0);
        };
        let call_id = self.call.call_id.clone().unwrap_or_default();
        let running = protection.running();
        let protection = Arc::clone(protection);
        let spans = self.spans.clone();
        // A task of its own, from the claim on: whoever asks again wants the outcome, even if the
        // first one has stopped waiting.
        let task = Box::pin(async move {
            let _running = running;
            self.claimed(identity, &protection).await
        });
        let done = tokio::spawn(spans.around(task)).await;
        done.unwrap_or_else(|_| Ok(Outcome::lost(call_id)))
    }

    async fn claimed(
        self,
        identity: Identity,
        protection: &Protection,
    ) -> Result<Outcome, Rejection> {
        let (entry, host) = (self.entry.clone(), self.host.clone());
        let arrival = self.arrival.clone();
        let limits = move || Limits {
            tool: time_left(&entry, &arrival, &host),
            deadline: arrival.invocation.deadline,
        };
        let policy = self.entry.tool.policy;
        match protection.claim(identity, policy, limits).await? {
            Claimed::Run => Ok(self.run().await.0),
            Claimed::Recorded(claim) => {
                let (outcome, ending) = self.run().await;
                let (duration, result) = (outcome.duration, &outcome.result);
                protection.settle(claim, duration, result, ending).await;
                Ok(outcome)
            }
            Claimed::Known(known) => Ok(Outcome {
                call_id: self.call.call_id.unwrap_or_default(),
                duration: known.duration,
                result: known.result,
                has_run: false,
                is_replay: known.is_replay,
            }),
        }
    }

    fn identity(&self) -> Option<Identity> {
        let call_id = self.call.call_id.as_deref()?;
        let fingerprint = self.fingerprint.clone()?;
        let tool = &self.entry.id;
        Some(Identity::new(&self.caller, tool, call_id, fingerprint))
    }
}
