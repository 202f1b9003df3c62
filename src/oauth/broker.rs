//! Users' tokens for calls.

use std::{sync::Arc, time::Duration};

use super::{
    GrantRequest, OAuth, Provider,
    grant::grant_record_id,
    keys::EncryptionKeys,
    records::{Records, TIMEOUT},
    token_refresh::{REFRESH_MARGIN, TokenRefresh, WantedGrant},
};
use crate::{
    AuthorizationRequirement, Secret, StoreError, clock::Clock, hosts::PublicUrl,
    secrets::SecretCache, store::within, text::LONGEST_ID,
};

/// The minimum time until the expiry of a token that is still used after a failed refresh.
const FALLBACK_MARGIN: Duration = Duration::from_secs(5);

/// The OAuth settings, with everything that is needed to apply them.
pub(crate) struct Broker {
    pub(super) settings: OAuth,
    secrets: Arc<SecretCache>,
    pub(crate) clock: Clock,
    pub(super) public_url: PublicUrl,
    /// The providers and scopes that the tools require.
    pub(super) declared: Vec<(String, String)>,
}

impl GrantRequest<'_> {
    pub(super) fn checked(self) -> Result<Self, StoreError> {
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
        Arc::new(Self {
            settings,
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
            && let Err(error) = within(TIMEOUT, self.settings.store.warm_up())
                .await
                .flatten()
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
    pub(crate) async fn delete_rejected_grant(
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

    /// Returns the records, with the current keys.
    pub(crate) async fn records(&self, left: Option<Duration>) -> Result<Records, StoreError> {
        Ok(Records {
            store: Arc::clone(&self.settings.store),
            clock: self.clock.clone(),
            keys: EncryptionKeys::read(&self.secrets, &self.settings.keys, left).await?,
        })
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
