//! The exchange of an authorization code for a grant: the last step of a challenge.

use std::{sync::Arc, time::Duration};

use super::{
    Provider,
    broker::{Broker, grant_record_id},
    challenge::{ChallengeStatus, StoredChallenge},
    exchange::{ProviderError, ProviderTokens},
    grant::Grant,
    keys::EncryptionKeys,
    page::{CallbackPage, CallbackQuery},
    records::Versioned,
};
use crate::{
    StoreError,
    store::{Change, Start},
};

/// The life of a challenge during the exchange: it fails after this time if the process stops.
const EXCHANGE_LIFE: Duration = Duration::from_mins(1);
const RETRY_DELAY: Duration = Duration::from_millis(300);

/// A redirect whose `state` has been verified.
pub(super) struct Redemption {
    pub(super) broker: Arc<Broker>,
    pub(super) keys: EncryptionKeys,
    pub(super) provider: Arc<Provider>,
    pub(super) redirect: String,
    pub(super) verifier: String,
    pub(super) record_id: String,
    pub(super) nonce: String,
}

impl Redemption {
    pub(super) async fn run(self, query: CallbackQuery) -> Result<CallbackPage, StoreError> {
        let provider = &self.provider.id;
        let pending = match self.begin().await? {
            Ok(pending) => pending,
            Err(page) => {
                tracing::warn!(
                    provider,
                    "a redirect was repeated, or its challenge has ended"
                );
                return Ok(page);
            }
        };
        let (page, why) = match self.redeem(&pending, query).await {
            Ok(()) => (CallbackPage::Completed, String::new()),
            Err(failure) => failure,
        };
        let status = match page {
            CallbackPage::Completed => {
                tracing::info!(provider, "a user has allowed tools to act for them");
                ChallengeStatus::Completed
            }
            // The code has not been used: the challenge's URL still works.
            CallbackPage::Unavailable => {
                tracing::error!(
                    provider,
                    why,
                    "a challenge cannot be completed at the moment"
                );
                ChallengeStatus::Pending
            }
            _ => {
                tracing::warn!(provider, why, "a challenge has failed");
                ChallengeStatus::Failed
            }
        };
        self.record_status(status).await;
        Ok(page)
    }

    /// Marks the challenge as being exchanged. Of several requests with the same code and state,
    /// only the one that writes this continues.
    async fn begin(&self) -> Result<Result<StoredChallenge, CallbackPage>, StoreError> {
        let change = |versioned: Versioned<StoredChallenge>| {
            let Some(pending) = versioned.value.filter(|it| it.has_nonce(&self.nonce)) else {
                return Change::Leave(Err(CallbackPage::Expired));
            };
            if let Some(page) = pending.status.page() {
                return Change::Leave(Err(page));
            }
            let status = ChallengeStatus::Exchanging;
            let exchanging = StoredChallenge { status, ..pending };
            Change::Write(exchanging.clone(), Ok(exchanging))
        };
        let (records, keys) = (&self.broker.records, &self.keys);
        records
            .update(Start::Current, keys, &self.record_id, EXCHANGE_LIFE, change)
            .await
    }

    /// Records the status after the exchange. Without it, the challenge is reported as pending
    /// until it expires, and then as failed.
    async fn record_status(&self, status: ChallengeStatus) {
        let life = self.broker.settings.challenge_life;
        for _ in 0..3 {
            let change = |versioned: Versioned<StoredChallenge>| {
                let challenge = versioned.value.filter(|it| it.has_nonce(&self.nonce));
                match challenge {
                    Some(it) if it.status == ChallengeStatus::Exchanging => {
                        Change::Write(StoredChallenge { status, ..it }, true)
                    }
                    // Already written, by an earlier attempt whose response was lost.
                    it => Change::Leave(it.is_some_and(|it| it.status == status)),
                }
            };
            let records = &self.broker.records;
            match records
                .update(Start::Current, &self.keys, &self.record_id, life, change)
                .await
            {
                Ok(true) => return,
                Ok(false) => break,
                Err(error) => {
                    tracing::warn!(
                        %error,
                        "the status of a finished challenge could not be written"
                    );
                }
            }
            tokio::time::sleep(RETRY_DELAY).await;
        }
        tracing::error!("a finished challenge could not be recorded");
    }

    async fn redeem(
        &self,
        pending: &StoredChallenge,
        query: CallbackQuery,
    ) -> Result<(), (CallbackPage, String)> {
        let failed = |why: &str| (CallbackPage::Failed, why.to_owned());
        let unavailable = |error: StoreError| (CallbackPage::Unavailable, error.to_string());
        let provider_failed = |error: ProviderError| (CallbackPage::Failed, format!("{error:?}"));
        let urls = self.provider.urls().await.map_err(|error| match error {
            ProviderError::Unavailable(why) => (CallbackPage::Unavailable, why.to_owned()),
            other => provider_failed(other),
        })?;
        if !urls.is_from_issuer(query.issuer.as_deref()) {
            return Err(failed("the response comes from another issuer"));
        }
        if let Some(error) = query.error {
            // RFC 6749, 4.1.2.1.
            let page = if error == "access_denied" {
                CallbackPage::NotAllowed
            } else {
                CallbackPage::Failed
            };
            let loggable_codes = [
                "access_denied",
                "invalid_scope",
                "server_error",
                "temporarily_unavailable",
            ];
            let why = loggable_codes
                .into_iter()
                .find(|it| *it == error)
                .unwrap_or("another error code");
            return Err((page, why.to_owned()));
        }
        let code = query
            .code
            .ok_or_else(|| failed("the response has no code"))?;
        let secret = self
            .broker
            .client_secret(&self.provider)
            .await
            .map_err(unavailable)?;
        let (redirect, verifier) = (&self.redirect, self.verifier.clone());
        let exchanged = self
            .provider
            .exchange(&secret, redirect, code, verifier)
            .await;
        let tokens = exchanged.map_err(provider_failed)?;
        self.save_grant(pending, tokens).await
    }

    async fn save_grant(
        &self,
        pending: &StoredChallenge,
        tokens: ProviderTokens,
    ) -> Result<(), (CallbackPage, String)> {
        let grant = Grant::new(tokens, &pending.requested, self.broker.clock.now());
        if !grant.has_all(&pending.scopes) {
            return Err((
                CallbackPage::InsufficientScopes,
                "the user has not allowed all requested scopes".into(),
            ));
        }
        let record_id = grant_record_id(&pending.caller, &pending.user, &self.provider.id);
        let saved = self.broker.add_grant(&self.keys, &record_id, &grant);
        // The code has been used: after an error, the user must start again.
        saved
            .await
            .map_err(|error| (CallbackPage::Failed, error.to_string()))
    }
}
