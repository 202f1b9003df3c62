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
    table::Item,
};
use crate::{Secret, StoreError};

/// Longer than a request to a provider takes, with all around it.
const LEASE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(100);
/// A token that lives this long still serves a call that begins now.
const LAST_RESORT: Duration = Duration::from_secs(5);

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
                sealed: Vec::new(),
                expires_at: now + LEASE,
            };
            if self.settings.table.write(&lease, item, None, now).await? {
                let desk = Arc::clone(self);
                // A task of its own: a refresh token may work once, and the caller may leave.
                let refreshing = tokio::spawn(async move {
                    let result = desk.refresh(&provider, &place).await;
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
                let over = Some(version);
                let kept = self.keep(&keys, place, &grant, KEPT_FOR, over).await?;
                if kept.is_none() {
                    tracing::warn!("a grant was changed while it was refreshed");
                }
                Ok(Some(Secret::from(grant.access)))
            }
            Err(Refusal::InvalidGrant) => {
                let provider = &provider.id;
                tracing::info!(provider, "a grant is no longer valid, and forgotten");
                self.settings.table.remove(place, version).await?;
                Ok(None)
            }
            Err(_) if grant.left(self.host.now()) > LAST_RESORT => {
                Ok(Some(Secret::from(grant.access)))
            }
            Err(refusal) => Err(refusal.into_error(&provider.id)),
        }
    }
}
