//! Users' tokens for calls, and challenges for tokens that are missing.

use std::{sync::Arc, time::Duration};

use super::{
    GrantRequest, OAuth, Provider,
    challenge::{ChallengeStatus, StoredChallenge, parse_id, record_hash},
    grant::{GRANT_LIFE, Grant, Grants},
    keys::EncryptionKeys,
    records::{EncryptedRecords, Versioned},
    token_refresh::{REFRESH_MARGIN, TokenRefresh, WantedGrant},
};
use crate::{
    AuthorizationRequirement, Secret, StoreError,
    challenge::Challenge,
    clock::Clock,
    public_url::PublicUrl,
    secrets::SecretCache,
    store::{Change, Start},
    text::LONGEST_ID,
};

/// The minimum time until the expiry of a token that is still used after a failed refresh.
const FALLBACK_MARGIN: Duration = Duration::from_secs(5);

/// The OAuth settings, with everything that is needed to apply them.
pub(crate) struct Broker {
    pub(super) settings: OAuth,
    pub(crate) records: EncryptedRecords,
    secrets: Arc<SecretCache>,
    pub(crate) clock: Clock,
    public_url: PublicUrl,
    /// The providers and scopes that the tools require.
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
        public_url: PublicUrl,
        declared: Vec<(String, String)>,
    ) -> Arc<Self> {
        let records = EncryptedRecords {
            store: Arc::clone(&settings.store),
            clock: clock.clone(),
        };
        Arc::new(Self {
            settings,
            records,
            secrets: Arc::clone(secrets),
            clock,
            public_url,
            declared,
        })
    }

    /// Warms up the store if a tool needs a grant, so that the first call does not wait for it. An
    /// error is only logged.
    pub(crate) async fn warm_up(&self) {
        if !self.declared.is_empty()
            && let Err(error) = self.records.warm_up().await
        {
            tracing::warn!(%error, "the store of grants could not be warmed up");
        }
    }

    /// Returns true if the required provider is configured. A tool that is made from a document has the
    /// document's word for the provider's name, so that the URL of its tokens counts, too.
    pub(crate) async fn provides(
        &self,
        need: &AuthorizationRequirement,
    ) -> Result<bool, StoreError> {
        let (Some(provider), Some(url)) = (self.provider(&need.id), &need.token_url) else {
            return Ok(self.provider(&need.id).is_some());
        };
        let urls = provider.urls().await;
        let is_same = urls.map_err(|it| it.into_store_error(&need.id))?.token == *url;
        if !is_same {
            tracing::warn!(provider = need.id, "its token URL is not that of a tool");
        }
        Ok(is_same)
    }

    pub(crate) fn authenticate_checks(&self) -> bool {
        self.settings.authenticate_checks
    }

    pub(super) fn provider(&self, id: &str) -> Option<&Arc<Provider>> {
        self.settings.providers.iter().find(|it| it.id == id)
    }

    /// Returns the user's token, if the user has granted all required scopes.
    pub(crate) async fn token(
        self: &Arc<Self>,
        request: GrantRequest<'_>,
    ) -> Result<Option<Secret>, StoreError> {
        let request = request.checked()?;
        let Some(provider) = self.provider(&request.need.id) else {
            return Ok(None);
        };
        let record_id = grant_record_id(request.caller, request.user, &provider.id);
        let keys = self.keys(Some(request.left)).await?;
        let (scopes, now) = (&request.need.oauth2.scopes, self.clock.now());
        let grant = |grants: &Grants| grants.best(scopes, now).cloned();
        let Some(grant) = self.current_grant(&keys, &record_id, grant).await? else {
            return Ok(None);
        };
        if grant.left(now) > REFRESH_MARGIN {
            return Ok(Some(Secret::from(grant.access)));
        }
        let refresh = TokenRefresh {
            provider: Arc::clone(provider),
            record_id,
            wanted: WantedGrant::WithScopes(scopes.clone()),
        };
        let refreshed = self.refreshed_token(refresh, request.left).await;
        match refreshed.map(|token| token.map(|it| it.access)) {
            Err(error) if grant.left(self.clock.now()) > FALLBACK_MARGIN => {
                tracing::warn!(
                    %error,
                    "a token could not be refreshed; the old one is still valid"
                );
                Ok(Some(Secret::from(grant.access)))
            }
            result => result,
        }
    }

    /// Returns the grant that `find` finds in a record, which lasts longer from then on.
    pub(crate) async fn current_grant(
        &self,
        keys: &EncryptionKeys,
        record_id: &str,
        find: impl FnOnce(&Grants) -> Option<Grant>,
    ) -> Result<Option<Grant>, StoreError> {
        let versioned: Versioned<Grants> = self.records.load(keys, record_id).await?;
        let Some(grants) = &versioned.value else {
            return Ok(None);
        };
        let Some(grant) = find(grants) else {
            return Ok(None);
        };
        if versioned.has_old_key || versioned.left < GRANT_LIFE / 2 {
            // Encrypts the grants with the newest key and extends their life. If another instance
            // was first, it wrote the same.
            self.records
                .save(keys, record_id, grants, GRANT_LIFE, versioned.over)
                .await?;
        }
        Ok(Some(grant))
    }

    /// Adds a grant to those in a record, which is probably absent.
    pub(crate) async fn add_grant(
        &self,
        keys: &EncryptionKeys,
        record_id: &str,
        grant: &Grant,
    ) -> Result<(), StoreError> {
        let change = |versioned: Versioned<Grants>| {
            let mut grants = versioned.value.unwrap_or_default();
            grants.add(grant.clone());
            Change::Write(grants, ())
        };
        self.records
            .update(Start::Absent, keys, record_id, GRANT_LIFE, change)
            .await
    }

    /// Returns the challenge for the user: the pending one, or else a new one.
    pub(crate) async fn challenge(
        &self,
        request: GrantRequest<'_>,
    ) -> Result<Challenge, StoreError> {
        let request = request.checked()?;
        let need = request.need;
        let base = self.base_url(request.base).ok_or_else(|| {
            StoreError::denied(
                "set TOOLS_PUBLIC_URL: the URL at which users reach this server is unknown",
            )
        })?;
        let (caller, scopes) = (request.caller, &need.oauth2.scopes);
        let hash = record_hash("challenge", caller, request.user, &need.id, scopes);
        let record_id = format!("challenge#{hash}");
        let keys = self.keys(Some(request.left)).await?;
        let life = self.settings.challenge_life;
        let nonce = self.records.update(
            Start::Absent,
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
                        requested: Vec::new(),
                        status: ChallengeStatus::Pending,
                    };
                    return Change::Write(pending, nonce);
                };
                let nonce = pending.nonce.clone();
                if pending.status == ChallengeStatus::Pending && versioned.left < life / 2 {
                    // Extends the challenge: the user may be following its URL.
                    Change::Write(pending, nonce)
                } else {
                    Change::Leave(nonce)
                }
            },
        );
        Ok(challenge_at(&base, &hash, &nonce.await?, &need.id))
    }

    /// Deletes a grant whose token the provider's API has rejected. Returns true if there was one.
    pub(crate) async fn delete_rejected_grant(
        &self,
        request: GrantRequest<'_>,
        token: &Secret,
    ) -> Result<bool, StoreError> {
        let keys = self.keys(None).await?;
        let provider = &*request.need.id;
        let record_id = grant_record_id(request.caller, request.user, provider);
        let was_present = self.forget(&keys, &record_id, token.expose()).await?;
        if was_present {
            tracing::info!(provider, "a token was rejected; its grant has been deleted");
        }
        Ok(was_present)
    }

    /// Deletes the grant with this access token. Returns true if there was one.
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
        self.records
            .update(Start::Current, keys, record_id, GRANT_LIFE, change)
            .await
    }

    /// Returns the status of a challenge, for `GET check_url`. A missing challenge is reported as
    /// failed.
    pub(crate) async fn status(&self, id: &str) -> Result<&'static str, StoreError> {
        let Some((hash, nonce)) = parse_id(id) else {
            return Ok("failed");
        };
        let keys = self.keys(None).await?;
        let record_id = format!("challenge#{hash}");
        let versioned: Versioned<StoredChallenge> = self.records.load(&keys, &record_id).await?;
        let challenge = versioned.value.filter(|it| it.has_nonce(nonce));
        Ok(match challenge.map(|it| it.status) {
            Some(ChallengeStatus::Pending | ChallengeStatus::Exchanging) => "pending",
            Some(ChallengeStatus::Completed) => "completed",
            Some(ChallengeStatus::Failed) | None => "failed",
        })
    }

    /// Returns the URL that the URLs of challenges and redirects begin with.
    pub(super) fn base_url(&self, event_base: Option<&str>) -> Option<String> {
        self.public_url.resolve(event_base)
    }

    pub(crate) async fn keys(&self, left: Option<Duration>) -> Result<EncryptionKeys, StoreError> {
        EncryptionKeys::read(&self.secrets, &self.settings.keys, left).await
    }

    pub(crate) async fn client_secret(&self, provider: &Provider) -> Result<Secret, StoreError> {
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

fn challenge_at(base: &str, hash: &str, nonce: &str, provider: &str) -> Challenge {
    let id = format!("{hash}{nonce}");
    let check_url = format!("{base}/authorization/challenges/{id}");
    Challenge {
        url: format!("{check_url}/start"),
        check_url,
        id,
        provider: provider.to_owned(),
    }
}

pub(crate) fn grant_record_id(caller: &str, user: &str, provider: &str) -> String {
    let hash = record_hash("grant", caller, user, provider, &[]);
    format!("grant#{hash}")
}
