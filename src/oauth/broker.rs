//! What calls ask of authorization: tokens, and challenges where there are none.

use std::{sync::Arc, time::Duration};

use super::{
    GrantRequest, OAuth, Provider,
    challenge::{ChallengeStatus, StoredChallenge, parse_id, record_id_of},
    grant::{Grants, KEPT_FOR},
    keys::EncryptionKeys,
    records::{Change, EncryptedRecords, Versioned},
};
use crate::{
    Secret, StoreError, clock::Clock, secrets::SecretCache, text::LONGEST_ID,
    tool::requirement::Challenge,
};

/// How close to its end a token is not worth handing out.
pub(super) const TOO_SHORT: Duration = Duration::from_mins(1);
/// A token that lives this long still serves a call that begins now.
const LAST_RESORT: Duration = Duration::from_secs(5);

/// OAuth with everything it needs.
pub(crate) struct Broker {
    pub(super) settings: OAuth,
    pub(super) records: EncryptedRecords,
    secrets: Arc<SecretCache>,
    pub(super) clock: Clock,
    /// What stands before its own paths, where the event alone says where the server is.
    base_path: String,
    /// What the tools need, provider by provider.
    pub(super) declared: Vec<(String, String)>,
}

impl GrantRequest<'_> {
    fn checked(self) -> Result<Self, StoreError> {
        if self.user.len() > LONGEST_ID {
            let text = format!("the user's id is longer than {LONGEST_ID} bytes");
            return Err(StoreError::denied(text));
        }
        Ok(self)
    }
}

impl Broker {
    pub(crate) fn new(
        settings: OAuth,
        secrets: &Arc<SecretCache>,
        clock: Clock,
        base_path: Option<&str>,
        declared: Vec<(String, String)>,
    ) -> Self {
        let base_path = base_path.unwrap_or_default().trim_matches('/');
        let records = EncryptedRecords {
            store: Arc::clone(&settings.store),
            clock: clock.clone(),
        };
        Self {
            settings,
            records,
            secrets: Arc::clone(secrets),
            clock,
            base_path: base_path.to_owned(),
            declared,
        }
    }

    /// Whether users can allow something at this provider.
    pub(crate) fn knows(&self, provider: &str) -> bool {
        self.provider(provider).is_some()
    }

    pub(crate) fn authenticate_checks(&self) -> bool {
        self.settings.authenticate_checks
    }

    pub(super) fn provider(&self, id: &str) -> Option<&Arc<Provider>> {
        self.settings.providers.iter().find(|it| it.id == id)
    }

    /// The user's token, if they have allowed all that is needed.
    pub(crate) async fn token(
        self: &Arc<Self>,
        request: GrantRequest<'_>,
    ) -> Result<Option<Secret>, StoreError> {
        let request = request.checked()?;
        let Some(provider) = self.provider(&request.need.id) else {
            return Ok(None);
        };
        let record_id = grant_of(request.caller, request.user, &provider.id);
        let keys = self.keys(Some(request.left)).await?;
        let versioned: Versioned<Grants> = self.records.load(&keys, &record_id).await?;
        let (scopes, now) = (&request.need.oauth2.scopes, self.clock.now());
        let Some(grants) = &versioned.value else {
            return Ok(None);
        };
        let Some(grant) = grants.best(scopes, now).cloned() else {
            return Ok(None);
        };
        if versioned.is_to_renew || versioned.left < KEPT_FOR / 2 {
            // With the newest key, and for as long again. Who was faster has done the same.
            self.records
                .save(&keys, &record_id, grants, KEPT_FOR, versioned.version)
                .await?;
        }
        if grant.left(now) > TOO_SHORT {
            return Ok(Some(Secret::from(grant.access)));
        }
        let refreshed = self.refreshed(Arc::clone(provider), record_id, scopes, request.left);
        match refreshed.await {
            Err(error) if grant.left(self.clock.now()) > LAST_RESORT => {
                tracing::warn!(%error, "a token is not refreshed; the old one is still good");
                Ok(Some(Secret::from(grant.access)))
            }
            refreshed => refreshed,
        }
    }

    /// What the user has to follow: the same as long as it is pending.
    pub(crate) async fn challenge(
        &self,
        request: GrantRequest<'_>,
    ) -> Result<Challenge, StoreError> {
        let request = request.checked()?;
        let need = request.need;
        let base = self.base(request.base).ok_or_else(|| {
            StoreError::denied(
                "set TOOLS_PUBLIC_URL: nothing says under which URL users reach this server",
            )
        })?;
        let (caller, scopes) = (request.caller, &need.oauth2.scopes);
        let hash = record_id_of("challenge", caller, request.user, &need.id, scopes);
        let record_id = format!("challenge#{hash}");
        let keys = self.keys(Some(request.left)).await?;
        let life = self.settings.challenge_life;
        let nonce = self.records.update(
            &keys,
            &record_id,
            life,
            |versioned: Versioned<StoredChallenge>| {
                let running = versioned.value.filter(|it| {
                    matches!(
                        it.status,
                        ChallengeStatus::Pending | ChallengeStatus::Exchanging
                    )
                });
                let Some(pending) = running else {
                    let nonce = self.clock.id().simple().to_string();
                    let pending = StoredChallenge {
                        nonce: nonce.clone(),
                        caller: caller.to_owned(),
                        user: request.user.to_owned(),
                        provider: need.id.clone(),
                        scopes: scopes.clone(),
                        asked_for: Vec::new(),
                        status: ChallengeStatus::Pending,
                    };
                    return Change::Write(pending, nonce);
                };
                let nonce = pending.nonce.clone();
                if pending.status == ChallengeStatus::Pending && versioned.left < life / 2 {
                    // The same for longer: somebody may be on the way with it.
                    Change::Write(pending, nonce)
                } else {
                    Change::Leave(nonce)
                }
            },
        );
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
        let record_id = grant_of(caller, user, provider);
        let forgotten = self.forget(&keys, &record_id, token.expose()).await?;
        if forgotten {
            tracing::info!(provider, "a token was refused; its grant is forgotten");
        }
        Ok(forgotten)
    }

    /// Removes the grant with this token. Returns whether it was there.
    pub(super) async fn forget(
        &self,
        keys: &EncryptionKeys,
        record_id: &str,
        access: &str,
    ) -> Result<bool, StoreError> {
        let change = |versioned: Versioned<Grants>| {
            let mut grants = versioned.value.unwrap_or_default();
            if grants.remove(access) {
                Change::Write(grants, true)
            } else {
                Change::Leave(false)
            }
        };
        self.records.update(keys, record_id, KEPT_FOR, change).await
    }

    /// `GET check_url`: how a challenge stands. What there is not has failed.
    pub(crate) async fn status(&self, id: &str) -> Result<&'static str, StoreError> {
        let Some((hash, nonce)) = parse_id(id) else {
            return Ok("failed");
        };
        let keys = self.keys(None).await?;
        let record_id = format!("challenge#{hash}");
        let versioned: Versioned<StoredChallenge> = self.records.load(&keys, &record_id).await?;
        let challenge = versioned.value.filter(|it| it.is_named_by(nonce));
        Ok(match challenge.map(|it| it.status) {
            Some(ChallengeStatus::Pending | ChallengeStatus::Exchanging) => "pending",
            Some(ChallengeStatus::Completed) => "completed",
            Some(ChallengeStatus::Failed) | None => "failed",
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

    pub(super) async fn keys(&self, left: Option<Duration>) -> Result<EncryptionKeys, StoreError> {
        EncryptionKeys::read(&self.secrets, &self.settings.keys, left).await
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
    format!(
        "grant#{}",
        record_id_of("grant", caller, user, provider, &[])
    )
}
