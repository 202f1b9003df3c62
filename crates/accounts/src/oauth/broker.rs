//! The OAuth settings, with everything that is needed to apply them.

use std::{sync::Arc, time::Duration};

use super::{
    OAuth, Provider,
    keys::EncryptionKeys,
    records::{Records, TIMEOUT},
};
use crate::{
    AuthorizationRequirement, PublicUrl, Secret, StoreError, clock::Clock, secrets::SecretCache,
    store::within,
};

/// The OAuth settings of a server, and what they need.
pub struct Broker {
    /// The settings.
    pub settings: OAuth,
    /// The secrets, which include the keys.
    pub secrets: Arc<SecretCache>,
    /// The clock by which tokens and challenges expire.
    pub clock: Clock,
    /// The URL that challenges lead to.
    pub public_url: PublicUrl,
    /// The providers and scopes that the tools require.
    pub declared: Vec<(String, String)>,
}

/// A request for the token of one provider.
#[derive(Clone, Copy)]
pub struct GrantRequest<'a> {
    /// The caller's namespace: users of two callers are different users, even if their ids are
    /// equal. Empty for anonymous callers.
    pub caller: &'a str,
    /// The user's id.
    pub user: &'a str,
    /// The provider and the scopes.
    pub need: &'a AuthorizationRequirement,
    /// The server's base URL, from the event.
    pub base: Option<&'a str>,
    /// The time that the call has left.
    pub left: Duration,
}

impl Broker {
    /// Warms up the store if a tool needs a grant, so that the first call does not wait for it. An
    /// error is only logged.
    pub async fn warm_up(&self) {
        if !self.declared.is_empty()
            && let Err(error) = within(TIMEOUT, self.settings.store.warm_up()).await
        {
            tracing::warn!(%error, "the store of grants could not be warmed up");
        }
    }

    /// Returns true if the required provider is configured. A tool that is made from a document has the
    /// document's word for the provider's name, so that the URL of its tokens counts, too.
    pub async fn provides(&self, need: &AuthorizationRequirement) -> Result<bool, StoreError> {
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

    pub(super) fn provider(&self, id: &str) -> Option<&Arc<Provider>> {
        self.settings.providers.iter().find(|it| it.id == id)
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
