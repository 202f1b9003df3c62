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

/// The OAuth settings, and what they need.
pub struct Broker {
    pub(crate) settings: OAuth,
    secrets: Arc<SecretCache>,
    pub(crate) clock: Clock,
    pub(super) public_url: PublicUrl,
    /// The providers and scopes that the tools require.
    pub(super) declared: Vec<(String, String)>,
}

impl Broker {
    /// Creates the broker of a server. `declared` are the providers and scopes that its tools require.
    pub fn new(
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
