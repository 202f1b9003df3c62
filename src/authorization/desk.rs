//! What calls ask of authorization: tokens, and challenges where there are none.

use std::{sync::Arc, time::Duration};

use super::{
    Asking, Authorization, Provider,
    grant::{Grants, KEPT_FOR},
    keys::Keys,
    pending::{Pending, Status, halves_of, place_of},
    records::{Change, Kept, Records},
};
use crate::{
    Secret, StoreError, clock::Host, secrets::SecretCache, text::LONGEST_ID,
    tool::requirement::Challenge,
};

/// How close to its end a token is not worth handing out.
pub(super) const TOO_SHORT: Duration = Duration::from_mins(1);
/// A token that lives this long still serves a call that begins now.
const LAST_RESORT: Duration = Duration::from_secs(5);

/// Authorization with everything it needs.
pub(crate) struct Desk {
    pub(super) settings: Authorization,
    pub(super) records: Records,
    secrets: Arc<SecretCache>,
    pub(super) host: Host,
    /// What stands before its own paths, where the event alone says where the server is.
    base_path: String,
    /// What the tools need, provider by provider.
    pub(super) declared: Vec<(String, String)>,
}

impl Asking<'_> {
    fn checked(self) -> Result<Self, StoreError> {
        if self.user.len() > LONGEST_ID {
            let text = format!("the user's id is longer than {LONGEST_ID} bytes");
            return Err(StoreError::denied(text));
        }
        Ok(self)
    }
}

impl Desk {
    pub(crate) fn new(
        settings: Authorization,
        secrets: &Arc<SecretCache>,
        host: Host,
        base_path: Option<&str>,
        declared: Vec<(String, String)>,
    ) -> Self {
        let base_path = base_path.unwrap_or_default().trim_matches('/');
        let records = Records {
            store: Arc::clone(&settings.store),
            host: host.clone(),
        };
        Self {
            settings,
            records,
            secrets: Arc::clone(secrets),
            host,
            base_path: base_path.to_owned(),
            declared,
        }
    }

    /// Whether users can allow something at this provider.
    pub(crate) fn knows(&self, provider: &str) -> bool {
        self.provider(provider).is_some()
    }

    pub(crate) fn checks_ask_for_credentials(&self) -> bool {
        self.settings.checks_ask_for_credentials
    }

    pub(super) fn provider(&self, id: &str) -> Option<&Arc<Provider>> {
        self.settings.providers.iter().find(|it| it.id == id)
    }

    /// The user's token, if they have allowed all that is needed.
    pub(crate) async fn token(
        self: &Arc<Self>,
        asking: Asking<'_>,
    ) -> Result<Option<Secret>, StoreError> {
        let asking = asking.checked()?;
        let Some(provider) = self.provider(&asking.need.id) else {
            return Ok(None);
        };
        let place = grant_of(asking.caller, asking.user, &provider.id);
        let keys = self.keys(Some(asking.left)).await?;
        let kept: Kept<Grants> = self.records.load(&keys, &place).await?;
        let (scopes, now) = (&asking.need.oauth2.scopes, self.host.now());
        let Some(grants) = &kept.value else {
            return Ok(None);
        };
        let Some(grant) = grants.best(scopes, now).cloned() else {
            return Ok(None);
        };
        if kept.is_to_renew || kept.left < KEPT_FOR / 2 {
            // With the newest key, and for as long again. Who was faster has done the same.
            self.records
                .save(&keys, &place, grants, KEPT_FOR, kept.version)
                .await?;
        }
        if grant.left(now) > TOO_SHORT {
            return Ok(Some(Secret::from(grant.access)));
        }
        let refreshed = self.refreshed(Arc::clone(provider), place, scopes, asking.left);
        match refreshed.await {
            Err(error) if grant.left(self.host.now()) > LAST_RESORT => {
                tracing::warn!(%error, "a token is not refreshed; the old one is still good");
                Ok(Some(Secret::from(grant.access)))
            }
            refreshed => refreshed,
        }
    }

    /// What the user has to follow: the same as long as it is pending.
    pub(crate) async fn challenge(&self, asking: Asking<'_>) -> Result<Challenge, StoreError> {
        let asking = asking.checked()?;
        let need = asking.need;
        let base = self.base(asking.base).ok_or_else(|| {
            StoreError::denied(
                "set TOOLS_PUBLIC_URL: nothing says under which URL users reach this server",
            )
        })?;
        let (caller, scopes) = (asking.caller, &need.oauth2.scopes);
        let hash = place_of("challenge", caller, asking.user, &need.id, scopes);
        let place = format!("challenge#{hash}");
        let keys = self.keys(Some(asking.left)).await?;
        let life = self.settings.challenge_life;
        let nonce = self
            .records
            .update(&keys, &place, life, |kept: Kept<Pending>| {
                let running = kept
                    .value
                    .filter(|it| matches!(it.status, Status::Pending | Status::Exchanging));
                let Some(pending) = running else {
                    let nonce = self.host.id().simple().to_string();
                    let pending = Pending {
                        nonce: nonce.clone(),
                        caller: caller.to_owned(),
                        user: asking.user.to_owned(),
                        provider: need.id.clone(),
                        scopes: scopes.clone(),
                        asked_for: Vec::new(),
                        status: Status::Pending,
                    };
                    return Change::Write(pending, nonce);
                };
                let nonce = pending.nonce.clone();
                if pending.status == Status::Pending && kept.left < life / 2 {
                    // The same for longer: somebody may be on the way with it.
                    Change::Write(pending, nonce)
                } else {
                    Change::Leave(nonce)
                }
            });
        Ok(said(&base, &hash, &nonce.await?))
    }

    /// Forgets a grant whose token was refused where it belongs. Returns whether it was there.
    pub(crate) async fn refused(
        &self,
        caller: &str,
        user: &str,
        provider: &str,
        token: &Secret,
    ) -> Result<bool, StoreError> {
        let keys = self.keys(None).await?;
        let place = grant_of(caller, user, provider);
        let forgotten = self.forget(&keys, &place, token.expose()).await?;
        if forgotten {
            tracing::info!(provider, "a token was refused; its grant is forgotten");
        }
        Ok(forgotten)
    }

    /// Removes the grant with this token. Returns whether it was there.
    pub(super) async fn forget(
        &self,
        keys: &Keys,
        place: &str,
        access: &str,
    ) -> Result<bool, StoreError> {
        let change = |kept: Kept<Grants>| {
            let mut grants = kept.value.unwrap_or_default();
            if grants.remove(access) {
                Change::Write(grants, true)
            } else {
                Change::Leave(false)
            }
        };
        self.records.update(keys, place, KEPT_FOR, change).await
    }

    /// `GET check_url`: how a challenge stands. What there is not has failed.
    pub(crate) async fn status(&self, id: &str) -> Result<&'static str, StoreError> {
        let Some((hash, nonce)) = halves_of(id) else {
            return Ok("failed");
        };
        let keys = self.keys(None).await?;
        let place = format!("challenge#{hash}");
        let kept: Kept<Pending> = self.records.load(&keys, &place).await?;
        let challenge = kept.value.filter(|it| it.is_named_by(nonce));
        Ok(match challenge.map(|it| it.status) {
            Some(Status::Pending | Status::Exchanging) => "pending",
            Some(Status::Completed) => "completed",
            Some(Status::Failed) | None => "failed",
        })
    }

    pub(super) fn base(&self, said: Option<&str>) -> Option<String> {
        if let Some(url) = &self.settings.public_url {
            return Some(url.trim_end_matches('/').to_owned());
        }
        let said = said?.trim_end_matches('/');
        Some(match self.base_path.as_str() {
            "" => said.to_owned(),
            path => format!("{said}/{path}"),
        })
    }

    pub(super) async fn keys(&self, left: Option<Duration>) -> Result<Keys, StoreError> {
        Keys::read(&self.secrets, &self.settings.keys, left).await
    }

    pub(super) async fn client_secret(&self, provider: &Provider) -> Result<Secret, StoreError> {
        let id = provider.secret.as_str();
        let read = self.secrets.read(&[id], None).await.pop();
        read.unwrap_or(Ok(None))?.ok_or_else(|| {
            StoreError::denied(format!(
                "there is no secret '{id}', the client secret of '{}'",
                provider.id
            ))
        })
    }
}

fn said(base: &str, hash: &str, nonce: &str) -> Challenge {
    let id = format!("{hash}{nonce}");
    let check_url = format!("{base}/authorization/challenges/{id}");
    Challenge {
        url: format!("{check_url}/start"),
        check_url,
        id,
    }
}

pub(super) fn grant_of(caller: &str, user: &str, provider: &str) -> String {
    format!("grant#{}", place_of("grant", caller, user, provider, &[]))
}
