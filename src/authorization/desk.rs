//! What calls ask of authorization: tokens, and challenges where there are none.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::de::DeserializeOwned;

use super::{
    Authorization, Provider,
    grant::{Grants, KEPT_FOR},
    keys::Keys,
    pending::{Pending, Status, halves_of, place_of},
    table::{Item, Stored},
};
use crate::{
    AuthorizationRequirement, Secret, StoreError, clock::Host, secrets::SecretCache,
    text::LONGEST_ID, tool::requirement::Challenge,
};

/// How close to its end a token is not worth handing out.
pub(super) const TOO_SHORT: Duration = Duration::from_mins(1);
/// A token that lives this long still serves a call that begins now.
const LAST_RESORT: Duration = Duration::from_secs(5);

/// Authorization with everything it needs.
pub(crate) struct Desk {
    pub(super) settings: Authorization,
    secrets: Arc<SecretCache>,
    pub(super) host: Host,
    /// What stands before its own paths, where the event alone says where the server is.
    base_path: String,
    /// What the tools need, provider by provider.
    pub(super) declared: Vec<(String, String)>,
}

/// What a call asks for.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'a> {
    /// The namespace of the caller: users of two callers are two people, whatever their ids. Empty
    /// for callers who are not told apart.
    pub(crate) caller: &'a str,
    pub(crate) user: &'a str,
    pub(crate) need: &'a AuthorizationRequirement,
    /// Where the server is, as the event says.
    pub(crate) base: Option<&'a str>,
    pub(crate) left: Duration,
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

/// What is kept in a place: nothing, something, or something that cannot be read any longer.
pub(super) struct Kept<T> {
    pub(super) value: Option<T>,
    pub(super) version: Option<u64>,
    /// How long it is still kept.
    pub(super) left: Duration,
    /// Whether it is encrypted with an old key.
    pub(super) is_to_renew: bool,
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
        Self {
            settings,
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
        let kept: Kept<Grants> = self.kept(&keys, &place).await?;
        let (scopes, now) = (&asking.need.oauth2.scopes, self.host.now());
        let Some(grants) = &kept.value else {
            return Ok(None);
        };
        let Some(grant) = grants.best(scopes, now).cloned() else {
            return Ok(None);
        };
        if kept.is_to_renew || kept.left < KEPT_FOR / 2 {
            // With the newest key, and for as long again. Who was faster has done the same.
            self.keep(&keys, &place, grants, KEPT_FOR, kept.version)
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
        for _ in 0..3 {
            let kept: Kept<Pending> = self.kept(&keys, &place).await?;
            let life = self.settings.challenge_life;
            let running = kept
                .value
                .filter(|it| matches!(it.status, Status::Pending | Status::Exchanging));
            if let Some(pending) = running {
                if pending.status == Status::Pending && kept.left < life / 2 {
                    // The same for longer: somebody may be on the way with it.
                    self.keep(&keys, &place, &pending, life, kept.version)
                        .await?;
                }
                return Ok(said(&base, &hash, &pending.nonce));
            }
            let pending = Pending {
                nonce: self.host.id().simple().to_string(),
                caller: caller.to_owned(),
                user: asking.user.to_owned(),
                provider: need.id.clone(),
                scopes: scopes.clone(),
                asked_for: Vec::new(),
                status: Status::Pending,
            };
            if self
                .keep(&keys, &place, &pending, life, kept.version)
                .await?
                .is_some()
            {
                return Ok(said(&base, &hash, &pending.nonce));
            }
            // Another call has made one at the same time.
        }
        Err(StoreError::throttled(
            "many calls ask for the same challenge",
        ))
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
        for _ in 0..3 {
            let kept: Kept<Grants> = self.kept(keys, place).await?;
            let mut grants = kept.value.unwrap_or_default();
            if !grants.remove(access) {
                return Ok(false);
            }
            if self
                .keep(keys, place, &grants, KEPT_FOR, kept.version)
                .await?
                .is_some()
            {
                return Ok(true);
            }
            // Another call has changed something else.
        }
        Err(StoreError::throttled("many calls change the same grants"))
    }

    /// `GET check_url`: how a challenge stands. What there is not has failed.
    pub(crate) async fn status(&self, id: &str) -> Result<&'static str, StoreError> {
        let Some((hash, nonce)) = halves_of(id) else {
            return Ok("failed");
        };
        let keys = self.keys(None).await?;
        let kept: Kept<Pending> = self.kept(&keys, &format!("challenge#{hash}")).await?;
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

    pub(super) async fn kept<T: DeserializeOwned>(
        &self,
        keys: &Keys,
        place: &str,
    ) -> Result<Kept<T>, StoreError> {
        let item = self.settings.table.read(place, self.host.now()).await?;
        let Some(item) = item else {
            return Ok(Kept {
                value: None,
                version: None,
                left: Duration::ZERO,
                is_to_renew: false,
            });
        };
        let opened = keys.open(place, &item.key_id, &item.sealed);
        let value = opened.and_then(|text| serde_json::from_slice(&text).ok());
        if value.is_none() {
            tracing::warn!(
                key = item.key_id,
                "a challenge or grant cannot be decrypted"
            );
        }
        Ok(Kept {
            value,
            version: Some(item.version),
            is_to_renew: !keys.is_newest(&item.key_id),
            left: item
                .expires_at
                .duration_since(self.host.now())
                .unwrap_or_default(),
        })
    }

    /// Writes what is kept in a place over the version that was read. Returns the new version, if
    /// nobody else was faster.
    pub(super) async fn keep<T: Stored>(
        &self,
        keys: &Keys,
        place: &str,
        value: &T,
        life: Duration,
        over: Option<u64>,
    ) -> Result<Option<u64>, StoreError> {
        let now = self.host.now();
        let text = serde_json::to_vec(value).expect("our own values have string keys only");
        let (key_id, sealed) = keys.seal(place, &text);
        let version = next_version(over, now);
        let item = Item {
            version,
            key_id,
            sealed,
            expires_at: now + life,
            owner: value.owner().map(Arc::from),
        };
        let is_written = self.settings.table.write(place, item, over, now).await?;
        Ok(is_written.then_some(version))
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

/// Never one that was there before, so that nobody takes a new item for the one they have read.
pub(super) fn next_version(over: Option<u64>, now: SystemTime) -> u64 {
    let now = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let now = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
    over.map_or(now, |over| now.max(over + 1))
}
