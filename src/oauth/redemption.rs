//! A code for a grant: the end of a challenge.

use std::{sync::Arc, time::Duration};

use super::{
    Provider,
    broker::{Broker, grant_of},
    challenge::{ChallengeStatus, StoredChallenge},
    exchange::{ProviderError, ProviderTokens},
    grant::{Grant, Grants, KEPT_FOR},
    keys::EncryptionKeys,
    page::{CallbackPage, CallbackQuery},
    records::{Change, Versioned},
};
use crate::StoreError;

/// How long an exchange may take. Whoever is stopped in it leaves a challenge that fails then.
const EXCHANGE: Duration = Duration::from_mins(1);
const AGAIN: Duration = Duration::from_millis(300);

/// A code that came back to where it belongs.
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
    pub(super) async fn run(self, back: CallbackQuery) -> Result<CallbackPage, StoreError> {
        let provider = &self.provider.id;
        let pending = match self.begin().await? {
            Ok(pending) => pending,
            Err(page) => {
                tracing::warn!(
                    provider,
                    "a redirect came back again, or after its challenge"
                );
                return Ok(page);
            }
        };
        let (page, why) = match self.granted(&pending, back).await {
            Ok(()) => (CallbackPage::Completed, String::new()),
            Err(end) => end,
        };
        let status = match page {
            CallbackPage::Completed => {
                tracing::info!(provider, "a user has allowed tools to act for them");
                ChallengeStatus::Completed
            }
            // The code is still good for nothing else, but the link is.
            CallbackPage::Unavailable => {
                tracing::error!(provider, why, "a challenge cannot be finished now");
                ChallengeStatus::Pending
            }
            _ => {
                tracing::warn!(provider, why, "a challenge has failed");
                ChallengeStatus::Failed
            }
        };
        self.end(status).await;
        Ok(page)
    }

    /// Whoever writes this goes on; nobody else who has the same code and state.
    async fn begin(&self) -> Result<Result<StoredChallenge, CallbackPage>, StoreError> {
        let change = |versioned: Versioned<StoredChallenge>| {
            let Some(pending) = versioned.value.filter(|it| it.is_named_by(&self.nonce)) else {
                return Change::Leave(Err(CallbackPage::Expired));
            };
            match pending.status {
                ChallengeStatus::Pending => {
                    let status = ChallengeStatus::Exchanging;
                    let begun = StoredChallenge { status, ..pending };
                    Change::Write(begun.clone(), Ok(begun))
                }
                ChallengeStatus::Exchanging => Change::Leave(Err(CallbackPage::InUse)),
                ChallengeStatus::Completed => Change::Leave(Err(CallbackPage::Completed)),
                ChallengeStatus::Failed => Change::Leave(Err(CallbackPage::Failed)),
            }
        };
        let (records, keys) = (&self.broker.records, &self.keys);
        records
            .update(keys, &self.record_id, EXCHANGE, change)
            .await
    }

    /// Says how it went. Until then the challenge is pending, and after a while failed.
    async fn end(&self, status: ChallengeStatus) {
        let life = self.broker.settings.challenge_life;
        for _ in 0..3 {
            let change = |versioned: Versioned<StoredChallenge>| {
                let begun = versioned.value.filter(|it| it.is_named_by(&self.nonce));
                match begun {
                    Some(it) if it.status == ChallengeStatus::Exchanging => {
                        Change::Write(StoredChallenge { status, ..it }, true)
                    }
                    // By a request whose answer was lost.
                    it => Change::Leave(it.is_some_and(|it| it.status == status)),
                }
            };
            let records = &self.broker.records;
            match records
                .update(&self.keys, &self.record_id, life, change)
                .await
            {
                Ok(true) => return,
                Ok(false) => break,
                Err(error) => tracing::warn!(%error, "the end of a challenge is not written"),
            }
            tokio::time::sleep(AGAIN).await;
        }
        tracing::error!("the end of a challenge is not known to who asks for it");
    }

    async fn granted(
        &self,
        pending: &StoredChallenge,
        back: CallbackQuery,
    ) -> Result<(), (CallbackPage, String)> {
        let failed = |why: &str| (CallbackPage::Failed, why.to_owned());
        let unavailable = |error: StoreError| (CallbackPage::Unavailable, error.to_string());
        let said = |refusal: ProviderError| (CallbackPage::Failed, format!("{refusal:?}"));
        let urls = self
            .provider
            .urls()
            .await
            .map_err(|refusal| match refusal {
                ProviderError::Unavailable(why) => (CallbackPage::Unavailable, why.to_owned()),
                other => said(other),
            })?;
        // RFC 9207: an answer of another provider, mixed up with this one's.
        let is_theirs = match (&urls.issuer, &back.issuer) {
            (Some(issuer), Some(given)) => issuer == given,
            (Some(_), None) => !urls.names_itself,
            (None, _) => true,
        };
        if !is_theirs {
            return Err(failed("the answer is another issuer's"));
        }
        if let Some(error) = back.error {
            // RFC 6749, 4.1.2.1.
            let page = if error == "access_denied" {
                CallbackPage::NotAllowed
            } else {
                CallbackPage::Failed
            };
            let known = [
                "access_denied",
                "invalid_scope",
                "server_error",
                "temporarily_unavailable",
            ];
            let why = known
                .into_iter()
                .find(|it| *it == error)
                .unwrap_or("an error of the provider's");
            return Err((page, why.to_owned()));
        }
        let code = back.code.ok_or_else(|| failed("there is no code"))?;
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
        let tokens = exchanged.map_err(said)?;
        self.store(pending, tokens).await
    }

    async fn store(
        &self,
        pending: &StoredChallenge,
        tokens: ProviderTokens,
    ) -> Result<(), (CallbackPage, String)> {
        let grant = Grant::of(tokens, &pending.asked_for, self.broker.clock.now());
        if !grant.has_all(&pending.scopes) {
            return Err((
                CallbackPage::TooLittle,
                "not everything that was asked for was allowed".into(),
            ));
        }
        let record_id = grant_of(&pending.caller, &pending.user, &self.provider.id);
        let change = |versioned: Versioned<Grants>| {
            let mut grants = versioned.value.unwrap_or_default();
            grants.add(grant.clone());
            Change::Write(grants, ())
        };
        let records = &self.broker.records;
        let stored = records.update(&self.keys, &record_id, KEPT_FOR, change);
        // The code is spent: whatever happens now, the user has to begin anew.
        stored
            .await
            .map_err(|error| (CallbackPage::Failed, error.to_string()))
    }
}
