//! The provider's redirect back to the server, which completes a challenge.

use std::{sync::Arc, time::Duration};

use super::{
    Browser, CHALLENGE_LIFE, ChallengePage, Parameters, Provider,
    broker::Broker,
    challenge::{ChallengeStatus, StoredChallenge, cookie_name, parse_attempt, parse_id},
    flow::{Flow, FlowError, split_state},
    grant::{Grant, grant_record_id},
    records::{Records, Versioned},
};
use crate::{clock::since_epoch, store::Change};

/// The life of a challenge during the exchange: it fails after this time if the process stops.
const EXCHANGE_LIFE: Duration = Duration::from_mins(1);
const RETRY_DELAY: Duration = Duration::from_millis(300);

impl Broker {
    /// Handles the provider's redirect, and completes the challenge.
    pub async fn callback(
        self: &Arc<Self>,
        provider: &str,
        query: Parameters,
        browser: Browser<'_>,
    ) -> Result<ChallengePage, ChallengePage> {
        let provider = self.provider(provider).ok_or(ChallengePage::Expired)?;
        let state = query.get("state").and_then(split_state);
        let flow = state.and_then(|(attempt, signature)| {
            let (id, until) = parse_attempt(attempt)?;
            let (record_id, nonce) = parse_id(id)?;
            let flow = Flow::new(attempt, provider, browser.binding(&cookie_name(id))?);
            let is_over = since_epoch(self.clock.now()).as_secs() >= until;
            (!is_over).then(|| (flow, signature, record_id, nonce.to_owned()))
        });
        let (flow, signature, record_id, nonce) = flow.ok_or(ChallengePage::OtherBrowser)?;
        let records = self.records(None).await?;
        let returned = flow.returned(&records.keys, signature);
        let returned = returned.ok_or(ChallengePage::OtherBrowser)?;
        let exchange = ChallengeExchange {
            broker: Arc::clone(self),
            records,
            provider: Arc::clone(provider),
            base: browser.base.to_owned(),
            verifier: returned.verifier,
            record_id,
            nonce,
        };
        // In a task, because the browser may disconnect and a code works only once.
        let page = tokio::spawn(exchange.run(query)).await;
        page.unwrap_or(Err(ChallengePage::Unavailable))
    }
}

/// The exchange of an authorization code for a grant: the last step of a challenge.
struct ChallengeExchange {
    broker: Arc<Broker>,
    records: Records,
    provider: Arc<Provider>,
    base: String,
    verifier: String,
    record_id: String,
    nonce: String,
}

impl ChallengeExchange {
    async fn run(self, query: Parameters) -> Result<ChallengePage, ChallengePage> {
        let provider = &self.provider.id;
        let pending = self.begin().await?;
        let (status, page) = match self.complete(&pending, &query).await {
            Ok(ChallengePage::Completed) => {
                tracing::info!(provider, "a user has allowed tools to act for them");
                (ChallengeStatus::Completed, ChallengePage::Completed)
            }
            Ok(page) => {
                let why = "the user has not allowed all requested scopes";
                tracing::warn!(provider, why, "a challenge has failed");
                (ChallengeStatus::Failed, page)
            }
            // The code has not been used: the challenge's URL still works.
            Err(FlowError::Unavailable(why)) => {
                tracing::error!(
                    provider,
                    why,
                    "a challenge cannot be completed at the moment"
                );
                (ChallengeStatus::Pending, ChallengePage::Unavailable)
            }
            Err(error) => {
                tracing::warn!(provider, why = error.reason(), "a challenge has failed");
                let page = match error {
                    FlowError::Denied(_) => ChallengePage::NotAllowed,
                    _ => ChallengePage::Failed,
                };
                (ChallengeStatus::Failed, page)
            }
        };
        self.record_status(status).await;
        Ok(page)
    }

    /// Marks the challenge as being exchanged. Of several requests with the same code and state,
    /// only the one that writes this continues.
    async fn begin(&self) -> Result<StoredChallenge, ChallengePage> {
        let change = |versioned: Versioned<StoredChallenge>| {
            let Some(pending) = versioned.value.filter(|it| it.has_nonce(&self.nonce)) else {
                return Change::Leave(Err(ChallengePage::Expired));
            };
            if let Err(page) = pending.status.check() {
                return Change::Leave(Err(page));
            }
            let status = ChallengeStatus::Exchanging;
            let exchanging = StoredChallenge { status, ..pending };
            Change::Write(exchanging.clone(), Ok(exchanging))
        };
        let begun = self.records.update(&self.record_id, EXCHANGE_LIFE, change);
        begun.await?.inspect_err(|_| {
            let provider = &self.provider.id;
            tracing::warn!(
                provider,
                "a redirect was repeated, or its challenge has ended"
            );
        })
    }

    /// Records the status after the exchange. Without it, the challenge is reported as pending
    /// until it expires, and then as failed.
    async fn record_status(&self, status: ChallengeStatus) {
        let change = |versioned: Versioned<StoredChallenge>| {
            let exchanging = versioned
                .value
                .filter(|it| it.has_nonce(&self.nonce) && it.status == ChallengeStatus::Exchanging);
            match exchanging {
                Some(it) => Change::Write(StoredChallenge { status, ..it }, ()),
                // Already written, by an earlier attempt whose response was lost; or expired.
                None => Change::Leave(()),
            }
        };
        let life = CHALLENGE_LIFE;
        for _ in 0..3 {
            match self.records.update(&self.record_id, life, change).await {
                Ok(()) => return,
                Err(error) => tracing::warn!(%error, "a challenge's status could not be written"),
            }
            tokio::time::sleep(RETRY_DELAY).await;
        }
        tracing::error!("a finished challenge could not be recorded");
    }

    async fn complete(
        &self,
        pending: &StoredChallenge,
        query: &Parameters,
    ) -> Result<ChallengePage, FlowError> {
        let (provider, verifier) = (&self.provider, self.verifier.clone());
        let tokens = self.broker.redeem(provider, &self.base, query, verifier);
        let grant = Grant::new(tokens.await?, &pending.requested, self.records.clock.now());
        if !grant.has_all(&pending.scopes) {
            return Ok(ChallengePage::InsufficientScopes);
        }
        let record_id = grant_record_id(&pending.caller, &pending.user, &provider.id);
        let saved = self.records.add_grant(&record_id, &grant).await;
        // The code has been used: after an error, the user must start again.
        saved.map_err(|error| FlowError::Failed(error.to_string()))?;
        Ok(ChallengePage::Completed)
    }
}
