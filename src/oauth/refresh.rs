//! New access tokens for old ones, one refresh at a time.
//!
//! Providers that give a new refresh token each time take the old one's second use for theft and
//! revoke everything: two instances must not refresh at once. Who may is whoever writes a lease.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{
    Provider,
    broker::{Broker, TOO_SHORT},
    exchange::ProviderError,
    grant::{Grant, Grants, KEPT_FOR},
    keys::EncryptionKeys,
    records::{Change, Versioned},
};
use crate::{Secret, StoreError};

/// How long a refresh may take, with all around it.
const TIMEOUT: Duration = Duration::from_secs(12);
/// Longer than that: no two refresh at once.
const LEASE: Duration = Duration::from_secs(20);
/// How long the provider may take of it.
const REQUEST: Duration = Duration::from_secs(9);
const POLL: Duration = Duration::from_millis(100);

impl Broker {
    /// The token of a grant that needs a new one; none where the grant is gone.
    pub(super) async fn refreshed(
        self: &Arc<Self>,
        provider: Arc<Provider>,
        record_id: String,
        scopes: &[String],
        left: Duration,
    ) -> Result<Option<Secret>, StoreError> {
        let lease = record_id.replacen("grant", "refresh", 1);
        let ends = tokio::time::Instant::now() + left / 2;
        loop {
            let now = self.clock.now();
            if let Some(version) = self.records.lease(&lease, LEASE).await? {
                let (broker, scopes) = (Arc::clone(self), scopes.to_vec());
                // A task of its own: a refresh token may work once, and the caller may leave.
                let refreshing = tokio::spawn(async move {
                    let refresh = broker.refresh(&provider, &record_id, &scopes, now);
                    let result = tokio::time::timeout(TIMEOUT, refresh).await;
                    let result = result.unwrap_or_else(|_| Err(StoreError::no_answer(TIMEOUT)));
                    if let Err(error) = broker.records.end_lease(&lease, version).await {
                        tracing::warn!(%error, "a lease is not given back; it ends by itself");
                    }
                    result
                });
                let done = tokio::time::timeout_at(ends, refreshing).await;
                return match done {
                    Ok(done) => {
                        done.unwrap_or_else(|_| Err(StoreError::unavailable("the refresh stopped")))
                    }
                    Err(_) => Err(StoreError::unavailable(
                        "the provider has not refreshed the token in time",
                    )),
                };
            }
            if tokio::time::Instant::now() + POLL >= ends {
                let text = "another call is refreshing the token";
                return Err(StoreError::unavailable(text));
            }
            tokio::time::sleep(POLL).await;
            let keys = self.keys(None).await?;
            let versioned: Versioned<Grants> = self.records.load(&keys, &record_id).await?;
            let (grants, now) = (versioned.value.unwrap_or_default(), self.clock.now());
            match grants.best(scopes, now) {
                None => return Ok(None),
                Some(grant) if grant.left(now) > TOO_SHORT => {
                    return Ok(Some(Secret::from(grant.access.clone())));
                }
                Some(_) => {}
            }
        }
    }

    async fn refresh(
        &self,
        provider: &Provider,
        record_id: &str,
        scopes: &[String],
        leased_at: SystemTime,
    ) -> Result<Option<Secret>, StoreError> {
        let keys = self.keys(None).await?;
        let versioned: Versioned<Grants> = self.records.load(&keys, record_id).await?;
        let (grants, now) = (versioned.value.unwrap_or_default(), self.clock.now());
        let Some(grant) = grants.best(scopes, now) else {
            return Ok(None);
        };
        // Another call was faster.
        if grant.left(now) > TOO_SHORT {
            return Ok(Some(Secret::from(grant.access.clone())));
        }
        let Some(token) = &grant.refresh else {
            let is_good = !grant.left(now).is_zero();
            return Ok(is_good.then(|| Secret::from(grant.access.clone())));
        };
        let secret = self.client_secret(provider).await?;
        // A process that was frozen in between has lost its lease.
        let held = self
            .clock
            .now()
            .duration_since(leased_at)
            .unwrap_or_default();
        if held + REQUEST > LEASE {
            return Err(StoreError::unavailable("the refresh took too long"));
        }
        match provider.refresh(&secret, token).await {
            Ok(tokens) => {
                let new = grant.refreshed(tokens, self.clock.now());
                self.replace(&keys, record_id, &grant.access, &new).await;
                Ok(Some(Secret::from(new.access)))
            }
            Err(ProviderError::InvalidGrant) => {
                let provider = &provider.id;
                if self.forget(&keys, record_id, &grant.access).await? {
                    tracing::info!(provider, "a grant is no longer valid, and forgotten");
                    return Ok(None);
                }
                // Somebody has written another one in the meantime.
                let versioned: Versioned<Grants> = self.records.load(&keys, record_id).await?;
                let grants = versioned.value.unwrap_or_default();
                let best = grants.best(scopes, self.clock.now());
                Ok(best.map(|grant| Secret::from(grant.access.clone())))
            }
            Err(refusal) => Err(refusal.into_error(&provider.id)),
        }
    }

    /// The provider may have forgotten the old refresh token: what it gave must not be lost.
    async fn replace(&self, keys: &EncryptionKeys, record_id: &str, old: &str, new: &Grant) {
        for _ in 0..3 {
            match self.replaced(keys, record_id, old, new).await {
                Ok(()) => return,
                Err(error) => tracing::error!(%error, "a refreshed grant is not written"),
            }
            tokio::time::sleep(POLL).await;
        }
        tracing::error!("a refreshed grant is lost");
    }

    async fn replaced(
        &self,
        keys: &EncryptionKeys,
        record_id: &str,
        old: &str,
        new: &Grant,
    ) -> Result<(), StoreError> {
        let change = |versioned: Versioned<Grants>| {
            let mut grants = versioned.value.unwrap_or_default();
            if grants.0.iter().any(|grant| grant.access == new.access) {
                // By a request whose answer was lost.
                return Change::Leave(());
            }
            grants.remove(old);
            grants.0.push(new.clone());
            Change::Write(grants, ())
        };
        self.records.update(keys, record_id, KEPT_FOR, change).await
    }
}
