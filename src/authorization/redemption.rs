//! A code for a grant: the end of a challenge.

use std::{sync::Arc, time::Duration};

use super::{
    Provider,
    desk::{Desk, grant_of},
    exchange::{Refusal, Tokens},
    grant::{Grant, Grants, KEPT_FOR},
    keys::Keys,
    page::{Back, Told},
    pending::{Pending, Status},
    records::{Change, Kept},
};
use crate::StoreError;

/// How long an exchange may take. Whoever is stopped in it leaves a challenge that fails then.
const EXCHANGE: Duration = Duration::from_mins(1);
const AGAIN: Duration = Duration::from_millis(300);

/// A code that came back to where it belongs.
pub(super) struct Redemption {
    pub(super) desk: Arc<Desk>,
    pub(super) keys: Keys,
    pub(super) provider: Arc<Provider>,
    pub(super) redirect: String,
    pub(super) verifier: String,
    pub(super) place: String,
    pub(super) nonce: String,
}

impl Redemption {
    pub(super) async fn run(self, back: Back) -> Result<Told, StoreError> {
        let provider = &self.provider.id;
        let pending = match self.begin().await? {
            Ok(pending) => pending,
            Err(told) => {
                tracing::warn!(
                    provider,
                    "a redirect came back again, or after its challenge"
                );
                return Ok(told);
            }
        };
        let (told, why) = match self.granted(&pending, back).await {
            Ok(()) => (Told::Completed, String::new()),
            Err(end) => end,
        };
        let status = match told {
            Told::Completed => {
                tracing::info!(provider, "a user has allowed tools to act for them");
                Status::Completed
            }
            // The code is still good for nothing else, but the link is.
            Told::Unavailable => {
                tracing::error!(provider, why, "a challenge cannot be finished now");
                Status::Pending
            }
            _ => {
                tracing::warn!(provider, why, "a challenge has failed");
                Status::Failed
            }
        };
        self.end(status).await;
        Ok(told)
    }

    /// Whoever writes this goes on; nobody else who has the same code and state.
    async fn begin(&self) -> Result<Result<Pending, Told>, StoreError> {
        let change = |kept: Kept<Pending>| {
            let Some(pending) = kept.value.filter(|it| it.is_named_by(&self.nonce)) else {
                return Change::Leave(Err(Told::Expired));
            };
            match pending.status {
                Status::Pending => {
                    let status = Status::Exchanging;
                    let begun = Pending { status, ..pending };
                    Change::Write(begun.clone(), Ok(begun))
                }
                Status::Exchanging => Change::Leave(Err(Told::InUse)),
                Status::Completed => Change::Leave(Err(Told::Completed)),
                Status::Failed => Change::Leave(Err(Told::Failed)),
            }
        };
        let (records, keys) = (&self.desk.records, &self.keys);
        records.update(keys, &self.place, EXCHANGE, change).await
    }

    /// Says how it went. Until then the challenge is pending, and after a while failed.
    async fn end(&self, status: Status) {
        let life = self.desk.settings.challenge_life;
        for _ in 0..3 {
            let change = |kept: Kept<Pending>| {
                let begun = kept.value.filter(|it| it.is_named_by(&self.nonce));
                match begun {
                    Some(it) if it.status == Status::Exchanging => {
                        Change::Write(Pending { status, ..it }, true)
                    }
                    // By a request whose answer was lost.
                    it => Change::Leave(it.is_some_and(|it| it.status == status)),
                }
            };
            let records = &self.desk.records;
            match records.update(&self.keys, &self.place, life, change).await {
                Ok(true) => return,
                Ok(false) => break,
                Err(error) => tracing::warn!(%error, "the end of a challenge is not written"),
            }
            tokio::time::sleep(AGAIN).await;
        }
        tracing::error!("the end of a challenge is not known to who asks for it");
    }

    async fn granted(&self, pending: &Pending, back: Back) -> Result<(), (Told, String)> {
        let failed = |why: &str| (Told::Failed, why.to_owned());
        let unavailable = |error: StoreError| (Told::Unavailable, error.to_string());
        let said = |refusal: Refusal| (Told::Failed, format!("{refusal:?}"));
        let urls = self
            .provider
            .urls()
            .await
            .map_err(|refusal| match refusal {
                Refusal::Unavailable(why) => (Told::Unavailable, why.to_owned()),
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
            let told = if error == "access_denied" {
                Told::NotAllowed
            } else {
                Told::Failed
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
            return Err((told, why.to_owned()));
        }
        let code = back.code.ok_or_else(|| failed("there is no code"))?;
        let secret = self
            .desk
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

    async fn store(&self, pending: &Pending, tokens: Tokens) -> Result<(), (Told, String)> {
        let grant = Grant::of(tokens, &pending.asked_for, self.desk.host.now());
        if !grant.has_all(&pending.scopes) {
            return Err((
                Told::TooLittle,
                "not everything that was asked for was allowed".into(),
            ));
        }
        let place = grant_of(&pending.caller, &pending.user, &self.provider.id);
        let change = |kept: Kept<Grants>| {
            let mut grants = kept.value.unwrap_or_default();
            grants.add(grant.clone());
            Change::Write(grants, ())
        };
        let records = &self.desk.records;
        let stored = records.update(&self.keys, &place, KEPT_FOR, change);
        // The code is spent: whatever happens now, the user has to begin anew.
        stored
            .await
            .map_err(|error| (Told::Failed, error.to_string()))
    }
}
