//! Claiming a call before it runs, so that it runs once.

use std::sync::Arc;

use super::{Outcome, Ready, time_left};
use crate::{
    idempotency::{
        Identity, Policy,
        protection::{Claimed, Limits, Protection},
    },
    rejection::Rejection,
};

/// A call that may run, or whose outcome is known already.
pub(crate) struct Admitted {
    ready: Ready,
    claimed: Claimed,
    protection: Arc<Protection>,
}

impl Ready {
    /// Finds out whether the call may run, where its client gave it an id.
    pub(crate) async fn claim(self, protection: &Arc<Protection>) -> Result<Admitted, Rejection> {
        let claimed = match self.identity() {
            None => Claimed::Run,
            Some(identity) => {
                let (entry, host) = (Arc::clone(&self.entry), self.host.clone());
                let arrival = self.arrival.clone();
                let limits = move || Limits {
                    tool: time_left(&entry, &arrival, &host),
                    deadline: arrival.invocation.deadline,
                };
                let policy = self.entry.tool.policy;
                protection.claim(identity, policy, limits).await?
            }
        };
        Ok(Admitted {
            ready: self,
            claimed,
            protection: Arc::clone(protection),
        })
    }

    fn identity(&self) -> Option<Identity> {
        let call_id = self.call.call_id.as_deref()?;
        let fingerprint = self.fingerprint.clone()?;
        let tool = &self.entry.id;
        Some(Identity::new(&self.caller, tool, call_id, fingerprint))
    }
}

impl Admitted {
    /// Runs the tool, unless that was done before.
    pub(crate) async fn run(self) -> Outcome {
        let Self {
            ready,
            claimed,
            protection,
        } = self;
        match claimed {
            Claimed::Run => ready.run(Policy::default()).await.0,
            Claimed::Recorded(claim) => {
                let tool = ready.entry.id.to_string();
                let call_id = ready.call.call_id.clone().unwrap_or_default();
                // Whoever asks again wants the outcome, even if the first one has stopped waiting.
                let running = tokio::spawn(async move {
                    let (outcome, ending) = ready.run(claim.policy).await;
                    let (duration, result) = (outcome.duration, &outcome.result);
                    protection.settle(claim, duration, result, ending).await;
                    outcome
                });
                running
                    .await
                    .unwrap_or_else(|_| Outcome::lost(tool, call_id))
            }
            Claimed::Known(known) => Outcome {
                tool: ready.entry.id.to_string(),
                call_id: ready.call.call_id.unwrap_or_default(),
                duration: known.duration,
                result: known.result,
                is_replay: known.is_replay,
            },
        }
    }
}
