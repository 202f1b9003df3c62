//! Users' tokens for calls, which are refreshed one at a time.
//!
//! Providers that rotate refresh tokens treat the reuse of an old one as theft and revoke the whole
//! grant, so two instances must not refresh at once. A lease in the store prevents that.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{
    GrantRequest, Provider,
    broker::Broker,
    exchange::ProviderError,
    grant::{GRANT_LIFE, Grant, Grants, grant_record_id},
    records::{Records, Versioned},
};
use crate::{Secret, StoreError, http_client, store::Change, text::LONGEST_ID};

/// A token that expires sooner than this is refreshed.
const REFRESH_MARGIN: Duration = Duration::from_mins(1);

/// The minimum time until the expiry of a token that is still used after a failed refresh.
const FALLBACK_MARGIN: Duration = Duration::from_secs(5);

const LEASE_LIFE: Duration = Duration::from_secs(20);
/// The time for which the holder of a lease may use it: shorter than the lease's life, because to
/// another instance, whose clock is up to two seconds ahead, the lease ends earlier.
const LEASE_USE: Duration = Duration::from_secs(18);
/// The time that the new tokens may take to be saved: enough for one write that times out, and for
/// one more attempt.
const SAVING: Duration = Duration::from_secs(6);
const POLL: Duration = Duration::from_millis(100);

/// A refresh of the token of a user's grant.
pub(crate) struct TokenRefresh {
    pub(crate) provider: Arc<Provider>,
    pub(crate) record_id: String,
    pub(crate) wanted: WantedGrant,
}

/// The grant whose token is refreshed.
pub(crate) enum WantedGrant {
    /// One with these scopes, if its token expires soon.
    WithScopes(Vec<String>),
    /// That of the account that the user has signed in with, even if its token is valid, so that the
    /// provider confirms the user; unless it is no longer this token.
    OfAccount { subject: String, access: String },
}

impl TokenRefresh {
    /// Returns the grant as it is in the store.
    async fn grant(&self, records: &Records, now: SystemTime) -> Result<Option<Grant>, StoreError> {
        let versioned: Versioned<Grants> = records.load(&self.record_id).await?;
        let grants = versioned.value.unwrap_or_default();
        Ok(self.wanted.find(&grants, now).cloned())
    }
}

impl WantedGrant {
    fn find<'a>(&self, grants: &'a Grants, now: SystemTime) -> Option<&'a Grant> {
        match self {
            Self::WithScopes(scopes) => grants.best(scopes, now),
            Self::OfAccount { subject, .. } => grants.of_account(subject),
        }
    }

    /// Returns true if the grant's token needs no refresh, perhaps because another call has done it.
    fn is_fresh(&self, grant: &Grant, now: SystemTime) -> bool {
        match self {
            Self::WithScopes(_) => grant.left(now) > REFRESH_MARGIN,
            Self::OfAccount { access, .. } => grant.access != *access,
        }
    }

    /// Returns true if a token without a refresh token may be returned.
    fn accepts_unrefreshed(&self, grant: &Grant, now: SystemTime) -> bool {
        matches!(self, Self::WithScopes(_)) && !grant.left(now).is_zero()
    }
}

/// A token, and the ID token that came with it.
pub(crate) struct RefreshedToken {
    pub(crate) access: Secret,
    pub(crate) id_token: Option<String>,
    /// True if another call has refreshed it.
    pub(crate) is_shared: bool,
}

impl RefreshedToken {
    fn of(access: &str) -> Self {
        Self {
            access: Secret::from(access),
            id_token: None,
            is_shared: true,
        }
    }
}

impl Broker {
    /// Returns the user's token, if the user has granted all required scopes.
    pub async fn token(
        self: &Arc<Self>,
        request: GrantRequest<'_>,
    ) -> Result<Option<Secret>, StoreError> {
        if request.user.len() > LONGEST_ID {
            let text = format!("the user's id is longer than {LONGEST_ID} bytes");
            return Err(StoreError::denied(text));
        }
        let Some(provider) = self.provider(&request.need.id) else {
            return Ok(None);
        };
        let record_id = grant_record_id(request.caller, request.user, &provider.id);
        let records = self.records(Some(request.left)).await?;
        let (scopes, now) = (&request.need.oauth2.scopes, self.clock.now());
        let grant = records.current_grant(&record_id, |grants| grants.best(scopes, now));
        let Some(grant) = grant.await? else {
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

    /// Deletes a grant whose token the provider's API has rejected. Returns true if there was one.
    pub async fn delete_rejected_grant(
        &self,
        request: GrantRequest<'_>,
        token: &Secret,
    ) -> Result<bool, StoreError> {
        let provider = &*request.need.id;
        let record_id = grant_record_id(request.caller, request.user, provider);
        let records = self.records(None).await?;
        let was_present = records.remove_grant(&record_id, token.expose()).await?;
        if was_present {
            tracing::info!(provider, "a token was rejected; its grant has been deleted");
        }
        Ok(was_present)
    }

    /// Returns the token of a grant that must be refreshed. `None` if the grant has ended.
    pub(crate) async fn refreshed_token(
        self: &Arc<Self>,
        need: TokenRefresh,
        left: Duration,
    ) -> Result<Option<RefreshedToken>, StoreError> {
        let lease_id = need.record_id.replacen("grant", "refresh", 1);
        let (need, records) = (Arc::new(need), Arc::new(self.records(None).await?));
        let deadline = tokio::time::Instant::now() + left / 2;
        loop {
            let (now, end) = (self.clock.now(), tokio::time::Instant::now() + LEASE_USE);
            if let Some(version) = records.lease(&lease_id, LEASE_LIFE).await? {
                let (broker, need) = (Arc::clone(self), Arc::clone(&need));
                let records = Arc::clone(&records);
                // In a task, because the caller may disconnect and a refresh token may work only
                // once.
                let task = tokio::spawn(async move {
                    let refresh = broker.refresh(&records, &need, now);
                    let result = tokio::time::timeout_at(end, refresh).await;
                    let result = result.unwrap_or_else(|_| Err(StoreError::timed_out(LEASE_USE)));
                    if let Err(error) = records.end_lease(&lease_id, version).await {
                        tracing::warn!(%error, "a lease could not be released; it will expire");
                    }
                    result
                });
                return match tokio::time::timeout_at(deadline, task).await {
                    Ok(result) => result
                        .unwrap_or_else(|_| Err(StoreError::unavailable("the refresh stopped"))),
                    Err(_) => Err(StoreError::unavailable(
                        "the provider did not refresh the token in time",
                    )),
                };
            }
            if tokio::time::Instant::now() + POLL >= deadline {
                let text = "another call is refreshing the token";
                return Err(StoreError::unavailable(text));
            }
            tokio::time::sleep(POLL).await;
            let now = self.clock.now();
            match need.grant(&records, now).await? {
                None => return Ok(None),
                Some(grant) if need.wanted.is_fresh(&grant, now) => {
                    return Ok(Some(RefreshedToken::of(&grant.access)));
                }
                Some(_) => {}
            }
        }
    }

    async fn refresh(
        &self,
        records: &Records,
        need: &TokenRefresh,
        leased_at: SystemTime,
    ) -> Result<Option<RefreshedToken>, StoreError> {
        let (provider, record_id, wanted) = (&need.provider, &*need.record_id, &need.wanted);
        let now = self.clock.now();
        let Some(grant) = need.grant(records, now).await? else {
            return Ok(None);
        };
        // Another call has already refreshed the grant.
        if wanted.is_fresh(&grant, now) {
            return Ok(Some(RefreshedToken::of(&grant.access)));
        }
        let Some(token) = &grant.refresh else {
            let is_accepted = wanted.accepts_unrefreshed(&grant, now);
            return Ok(is_accepted.then(|| RefreshedToken::of(&grant.access)));
        };
        let secret = self.client_secret(provider).await?;
        let urls = provider.urls().await;
        urls.map_err(|error| error.into_store_error(&provider.id))?;
        // The new tokens must be saved while the lease can be used, or another instance would use
        // the old refresh token again. If the process was frozen in the meantime, the lease has
        // expired.
        let elapsed = self
            .clock
            .now()
            .duration_since(leased_at)
            .unwrap_or_default();
        if elapsed + http_client::TIMEOUT + SAVING > LEASE_USE {
            return Err(StoreError::unavailable("the refresh took too long"));
        }
        match provider.refresh(&secret, token).await {
            Ok(mut tokens) => {
                let id_token = tokens.id_token.take();
                let new = grant.refreshed(tokens, self.clock.now());
                records.save_refreshed(record_id, &grant.access, &new).await;
                let access = Secret::from(new.access);
                Ok(Some(RefreshedToken {
                    access,
                    id_token,
                    is_shared: false,
                }))
            }
            Err(ProviderError::InvalidGrant) => {
                let provider = &provider.id;
                if records.remove_grant(record_id, &grant.access).await? {
                    tracing::info!(provider, "a grant is no longer valid and has been deleted");
                    return Ok(None);
                }
                // Another request has written a new grant in the meantime.
                let newer = need.grant(records, self.clock.now()).await?;
                Ok(newer.map(|grant| RefreshedToken::of(&grant.access)))
            }
            Err(error) => Err(error.into_store_error(&provider.id)),
        }
    }
}

impl Records {
    /// Replaces the grant with an old token. Retries, because the old refresh token may no longer work,
    /// and the new one must not be lost.
    async fn save_refreshed(&self, record_id: &str, old: &str, new: &Grant) {
        for _ in 0..4 {
            let change = |versioned: Versioned<Grants>| {
                let mut grants = versioned.value.unwrap_or_default();
                if grants.0.iter().any(|grant| grant.access == new.access) {
                    // Already written, by an earlier attempt whose response was lost.
                    return Change::Leave(());
                }
                grants.remove(old);
                grants.0.push(new.clone());
                Change::Write(grants, ())
            };
            match self.update(record_id, GRANT_LIFE, change).await {
                Ok(()) => return,
                Err(error) => tracing::error!(%error, "a refreshed grant could not be written"),
            }
            tokio::time::sleep(POLL).await;
        }
        tracing::error!("a refreshed grant was lost");
    }
}
