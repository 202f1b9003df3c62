//! Refreshes access tokens, one refresh at a time.
//!
//! Providers that rotate refresh tokens treat the reuse of an old one as theft and revoke the whole
//! grant, so two instances must not refresh at once. A lease in the store prevents that.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{
    broker::Broker,
    exchange::ProviderError,
    grant::{GRANT_LIFE, Grant, Grants},
    records::{Records, Versioned},
    token_refresh::{RefreshedToken, TokenRefresh},
};
use crate::{
    Secret, StoreError, http_client,
    store::{Change, Over, Start},
};

const LEASE_LIFE: Duration = Duration::from_secs(20);
/// The time for which the holder of a lease may use it: shorter than the lease's life, because to
/// another instance, whose clock is up to two seconds ahead, the lease ends earlier.
const LEASE_USE: Duration = Duration::from_secs(18);
/// The time that the new tokens may take to be saved: enough for one write that times out, and for
/// one more attempt.
const SAVING: Duration = Duration::from_secs(6);
const POLL: Duration = Duration::from_millis(100);

impl Broker {
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
            let versioned: Versioned<Grants> = records.load(&need.record_id).await?;
            let (grants, now) = (versioned.value.unwrap_or_default(), self.clock.now());
            match need.wanted.find(&grants, now) {
                None => return Ok(None),
                Some(grant) if need.wanted.is_fresh(grant, now) => {
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
        let versioned: Versioned<Grants> = records.load(record_id).await?;
        let (grants, now) = (versioned.value.unwrap_or_default(), self.clock.now());
        let Some(grant) = wanted.find(&grants, now) else {
            return Ok(None);
        };
        let loaded = (&grants, versioned.over);
        // Another call has already refreshed the grant.
        if wanted.is_fresh(grant, now) {
            return Ok(Some(RefreshedToken::of(&grant.access)));
        }
        let Some(token) = &grant.refresh else {
            let is_accepted = wanted.accepts_unrefreshed(grant, now);
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
                records
                    .save_refreshed(record_id, loaded, (grant, &new))
                    .await;
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
                let versioned: Versioned<Grants> = records.load(record_id).await?;
                let grants = versioned.value.unwrap_or_default();
                let best = wanted.find(&grants, self.clock.now());
                Ok(best.map(|grant| RefreshedToken::of(&grant.access)))
            }
            Err(error) => Err(error.into_store_error(&provider.id)),
        }
    }
}

impl Records {
    /// Replaces a grant in the grants as they were loaded, or, if these have changed, in the current
    /// ones. Retries, because the old refresh token may no longer work, and the new one must not be
    /// lost.
    async fn save_refreshed(
        &self,
        record_id: &str,
        (grants, over): (&Grants, Over),
        (old, new): (&Grant, &Grant),
    ) {
        let mut grants = grants.clone();
        grants.replace(&old.access, new);
        let saved = self.save(record_id, &grants, GRANT_LIFE, over);
        if saved.await == Ok(true) {
            return;
        }
        for _ in 0..3 {
            match self.replace_grant(record_id, &old.access, new).await {
                Ok(()) => return,
                Err(error) => tracing::error!(%error, "a refreshed grant could not be written"),
            }
            tokio::time::sleep(POLL).await;
        }
        tracing::error!("a refreshed grant was lost");
    }

    async fn replace_grant(
        &self,
        record_id: &str,
        old: &str,
        new: &Grant,
    ) -> Result<(), StoreError> {
        let change = |versioned: Versioned<Grants>| {
            let mut grants = versioned.value.unwrap_or_default();
            if grants.0.iter().any(|grant| grant.access == new.access) {
                // Already written, by an earlier attempt whose response was lost.
                return Change::Leave(());
            }
            grants.replace(old, new);
            Change::Write(grants, ())
        };
        self.update(Start::Current, record_id, GRANT_LIFE, change)
            .await
    }
}
