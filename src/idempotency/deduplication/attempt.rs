//! One attempt to claim a call, and the withdrawal of its claim.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{Claim, ClaimLimits, ClaimResult, Deduplication};
use crate::{
    StoreError,
    idempotency::{CallIdentity, CallRecord, CallState},
    store::{self, Over, PutOutcome, Store, Write, within},
    tool::repeats::RepeatPolicy,
};

/// The extra time for which a claim is held beyond the limits of the tool and the store, if the
/// platform sets no deadline.
pub(super) const GRACE: Duration = Duration::from_secs(1);

/// The maximum difference between the clocks of two processes. To a process whose clock is ahead, a
/// call that is still running appears to have ended, so claims become free that much later.
pub(super) const CLOCK_MARGIN: Duration = Duration::from_secs(2);

impl Deduplication {
    pub(super) fn new_claim(
        &self,
        identity: &CallIdentity,
        policy: RepeatPolicy,
        limits: ClaimLimits,
        now: SystemTime,
    ) -> Claim {
        let to_settle = self.idempotency.timeout + GRACE;
        let until = limits.deadline.unwrap_or(now + limits.tool + to_settle);
        // With no time left, nothing runs, so clocks do not matter.
        let has_time = until > now;
        let over_at = if has_time {
            until + CLOCK_MARGIN
        } else {
            until
        };
        let expires_at = (now + self.idempotency.expire_after).max(over_at);
        let at_most_once = policy == RepeatPolicy::AtMostOnce;
        let record = CallRecord {
            claim: store::new_version(),
            fingerprint: identity.fingerprint.clone(),
            at_most_once,
            state: CallState::Running { until },
            task: None,
            free_at: if at_most_once { expires_at } else { over_at },
            expires_at,
        };
        Claim {
            key: identity.key.clone(),
            record,
            deadline: limits.deadline,
        }
    }

    /// Writes a claim. Returns the existing record that prevents it, if any.
    pub(super) async fn write_claim(
        &self,
        store: &dyn Store,
        claim: &Claim,
        limit: Duration,
    ) -> Result<Option<CallRecord>, StoreError> {
        let write = Write {
            id: &claim.key,
            record: &claim.record.clone().into_stored(),
            over: Over::Nothing,
            now: self.clock.now(),
        };
        match store::put(store, limit, write).await? {
            PutOutcome::Written => Ok(None),
            PutOutcome::Conflict(Some(existing)) => CallRecord::from_stored(existing).map(Some),
            PutOutcome::Conflict(None) => Err(StoreError::unavailable(
                "the store rejected a claim without returning the existing record",
            )),
        }
    }

    /// Lets a call run although its claim may not have been written, if the owner prefers that, or
    /// returns the error.
    pub(super) async fn run_unclaimed(
        &self,
        store: &Arc<dyn Store>,
        claim: Claim,
        error: StoreError,
    ) -> Result<ClaimResult, StoreError> {
        // A full store is reachable, and knows calls that must not run twice.
        let is_unreachable = error.is_temporary() && !error.is_full();
        if !self.idempotency.runs_unprotected || !is_unreachable {
            self.withdraw(claim).await;
            return Err(error);
        }
        let (store, limit, now) = (
            Arc::clone(store),
            self.idempotency.timeout,
            self.clock.now(),
        );
        tokio::spawn(async move {
            // If this fails too, the claim expires by itself.
            let _ = undo(&*store, limit, claim, now).await;
        });
        tracing::error!(%error, "the call runs without deduplication");
        Ok(ClaimResult::Unclaimed)
    }

    /// Withdraws a claim that may have been written although the store did not confirm it, or whose
    /// call was not handed over. The call must not run afterwards. Returns false if it may: it is a
    /// task that has been started or cancelled since, or the store does not respond.
    ///
    /// Must finish before the response is sent: afterwards the platform may stop the process.
    pub(crate) async fn withdraw(&self, claim: Claim) -> bool {
        let limit = self.time_to_settle(claim.deadline);
        let undone = undo(self.store(), limit, claim, self.clock.now()).await;
        undone.unwrap_or_else(|error| {
            tracing::debug!(%error, "a withdrawn claim may still be in the store");
            false
        })
    }
}

/// Deletes a claim; the claim of a task ends the task instead, which a repeated call may have found.
/// Returns false if the task has changed since, and does not end.
async fn undo(
    store: &dyn Store,
    limit: Duration,
    claim: Claim,
    now: SystemTime,
) -> Result<bool, StoreError> {
    let (id, version, mut ended) = (&*claim.key, claim.record.claim, claim.record);
    if !ended.end() {
        let deleted = within(limit, store.delete(id, version)).await;
        return deleted.flatten().map(|()| true);
    }
    ended.claim = store::new_version();
    let write = Write {
        id,
        record: &ended.into_stored(),
        over: Over::Version(version),
        now,
    };
    let outcome = store::put(store, limit, write).await?;
    Ok(matches!(outcome, PutOutcome::Written))
}
