//! A code for a grant: the end of a challenge.

use std::{sync::Arc, time::Duration};

use super::{
    Provider,
    desk::{Desk, Kept, grant_of},
    exchange::{Refusal, Tokens},
    grant::{Grant, Grants, KEPT_FOR},
    keys::Keys,
    pending::{Pending, Status},
    visit::{Back, Told},
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
    pub(super) pending: Pending,
}

impl Redemption {
    pub(super) async fn run(self, version: u64, back: Back) -> Result<Told, StoreError> {
        // Whoever writes this goes on; nobody else who has the same code and state.
        let Some(version) = self.begin(version).await? else {
            return Ok(Told::InUse);
        };
        let (told, why) = match self.granted(back).await {
            Ok(()) => (Told::Completed, String::new()),
            Err(end) => end,
        };
        let provider = &self.provider.id;
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
        self.end(status, version).await;
        Ok(told)
    }

    async fn begin(&self, mut version: u64) -> Result<Option<u64>, StoreError> {
        for _ in 0..3 {
            let begun = self.becomes(Status::Exchanging, version, EXCHANGE).await?;
            if begun.is_some() {
                return Ok(begun);
            }
            // Another tab may have set out, which changes nothing.
            let kept: Kept<Pending> = self.desk.kept(&self.keys, &self.place).await?;
            match (kept.value, kept.version) {
                (Some(it), Some(newer))
                    if it.status == Status::Pending && it.is_named_by(&self.pending.nonce) =>
                {
                    version = newer;
                }
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Says how it went. Until then the challenge is pending, and after a while failed.
    async fn end(&self, status: Status, version: u64) {
        for _ in 0..3 {
            let life = self.desk.settings.challenge_life;
            match self.becomes(status, version, life).await {
                Ok(Some(_)) => return,
                Ok(None) => break,
                Err(error) => tracing::warn!(%error, "the end of a challenge is not written"),
            }
            tokio::time::sleep(AGAIN).await;
        }
        tracing::error!("the end of a challenge is not known to who asks for it");
    }

    async fn becomes(
        &self,
        status: Status,
        version: u64,
        life: Duration,
    ) -> Result<Option<u64>, StoreError> {
        let pending = Pending {
            status,
            ..self.pending.clone()
        };
        let (keys, place) = (&self.keys, &self.place);
        let over = Some(version);
        self.desk.keep(keys, place, &pending, life, over).await
    }

    async fn granted(&self, back: Back) -> Result<(), (Told, String)> {
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
        self.store(tokens).await
    }

    async fn store(&self, tokens: Tokens) -> Result<(), (Told, String)> {
        let Pending {
            caller,
            user,
            scopes,
            asked_for,
            ..
        } = &self.pending;
        let grant = Grant::of(tokens, asked_for, self.desk.host.now());
        if !grant.has_all(scopes) {
            return Err((
                Told::TooLittle,
                "not everything that was asked for was allowed".into(),
            ));
        }
        let place = grant_of(caller, user, &self.provider.id);
        // The code is spent: whatever happens now, the user has to begin anew.
        let failed = |error: StoreError| (Told::Failed, error.to_string());
        for _ in 0..3 {
            let kept = self.desk.kept(&self.keys, &place).await;
            let kept: Kept<Grants> = kept.map_err(failed)?;
            let mut grants = kept.value.unwrap_or_default();
            grants.add(grant.clone());
            let desk = &self.desk;
            let written = desk.keep(&self.keys, &place, &grants, KEPT_FOR, kept.version);
            if written.await.map_err(failed)?.is_some() {
                return Ok(());
            }
        }
        Err((Told::Failed, "the grant cannot be written".into()))
    }
}
