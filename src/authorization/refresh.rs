//! New access tokens for old ones, one refresh at a time.
//!
//! Providers that give a new refresh token each time take the old one's second use for theft and
//! revoke everything: two instances must not refresh at once. Who may is whoever writes a lease.

use std::{sync::Arc, time::Duration};

use super::{
    Provider,
    desk::{Desk, Kept, TOO_SHORT, next_version},
    exchange::Refusal,
    grant::{Grant, KEPT_FOR},
    keys::Keys,
    table::Item,
};
use crate::{Secret, StoreError};

/// How long a refresh may take, with all around it.
const TIMEOUT: Duration = Duration::from_secs(12);
/// Longer than that: no two refresh at once.
const LEASE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(100);

impl Desk {
    /// The token of a grant that needs a new one; none where the grant is gone.
    pub(super) async fn refreshed(
        self: &Arc<Self>,
        provider: Arc<Provider>,
        place: String,
        left: Duration,
    ) -> Result<Option<Secret>, StoreError> {
        let lease = place.replacen("grant", "refresh", 1);
        let ends = tokio::time::Instant::now() + left / 2;
        loop {
            let now = self.host.now();
            let version = next_version(None, now);
            let item = Item {
                version,
                key_id: String::new(),
                // By which a repeated request finds out that the lease is its own.
                sealed: self.host.id().as_bytes().to_vec(),
                expires_at: now + LEASE,
            };
            if self.settings.table.write(&lease, item, None, now).await? {
                let desk = Arc::clone(self);
                // A task of its own: a refresh token may work once, and the caller may leave.
                let refreshing = tokio::spawn(async move {
                    let refresh = desk.refresh(&provider, &place);
                    let result = tokio::time::timeout(TIMEOUT, refresh).await;
                    let result = result.unwrap_or_else(|_| Err(StoreError::no_answer(TIMEOUT)));
                    if let Err(error) = desk.settings.table.remove(&lease, version).await {
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
            let kept: Kept<Grant> = self.kept(&keys, &place).await?;
            match kept.value {
                None => return Ok(None),
                Some(grant) if grant.left(self.host.now()) > TOO_SHORT => {
                    return Ok(Some(Secret::from(grant.access)));
                }
                Some(_) => {}
            }
        }
    }

    async fn refresh(
        &self,
        provider: &Provider,
        place: &str,
    ) -> Result<Option<Secret>, StoreError> {
        let keys = self.keys(None).await?;
        let kept: Kept<Grant> = self.kept(&keys, place).await?;
        let (Some(grant), Some(version)) = (kept.value, kept.version) else {
            return Ok(None);
        };
        let now = self.host.now();
        // Another call was faster.
        if grant.left(now) > TOO_SHORT {
            return Ok(Some(Secret::from(grant.access)));
        }
        let Some(token) = &grant.refresh else {
            return Ok((!grant.left(now).is_zero()).then(|| Secret::from(grant.access)));
        };
        let secret = self.client_secret(provider).await?;
        match provider.refresh(&secret, token).await {
            Ok(tokens) => {
                let grant = grant.refreshed(tokens, self.host.now());
                self.rewrite(&keys, place, &grant, version).await;
                Ok(Some(Secret::from(grant.access)))
            }
            Err(Refusal::InvalidGrant) => {
                let provider = &provider.id;
                tracing::info!(provider, "a grant is no longer valid, and forgotten");
                if self.settings.table.remove(place, version).await? {
                    return Ok(None);
                }
                // Somebody has written another one in the meantime.
                let kept: Kept<Grant> = self.kept(&keys, place).await?;
                Ok(kept.value.map(|grant| Secret::from(grant.access)))
            }
            Err(refusal) => Err(refusal.into_error(&provider.id)),
        }
    }

    /// The provider may have forgotten the old refresh token: what it gave must not be lost.
    async fn rewrite(&self, keys: &Keys, place: &str, grant: &Grant, version: u64) {
        for _ in 0..3 {
            match self.keep(keys, place, grant, KEPT_FOR, Some(version)).await {
                Ok(Some(_)) => return,
                Ok(None) => {
                    tracing::warn!("a grant was changed while it was refreshed");
                    return;
                }
                Err(error) => tracing::error!(%error, "a refreshed grant is not written"),
            }
            tokio::time::sleep(POLL).await;
        }
    }
}
