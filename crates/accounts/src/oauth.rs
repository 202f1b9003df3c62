//! Users' grants at OAuth 2.0 providers, and the challenges that ask for them.
//!
//! A [`Broker`] returns the token of a user's grant, or a [`Challenge`](crate::Challenge) whose URL
//! leads the user to the provider. References: OXP 1.0, Authorization Challenges; RFC 6749, RFC 7636, RFC 9700.

#![cfg_attr(
    not(feature = "sign-in"),
    allow(dead_code, unused_imports, reason = "sign-in uses more of it")
)]

mod broker;
mod browser;
mod callback;
mod challenge;
mod exchange;
mod flow;
mod grant;
mod keys;
mod provider;
mod records;
mod refresh;
mod scope_descriptions;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc, time::Duration};

pub use crate::http_client::TransportError;
pub use broker::{Broker, GrantRequest};
pub use browser::{
    Browser, BrowserResponse, ChallengeAsker, ChallengePage, ChallengeResponse, ConsentPage,
    Parameters, RequestedScope,
};
pub use keys::SHORTEST;
pub use provider::{Provider, with_transport};
use records::LIMITS;
pub(crate) use {
    flow::{Flow, FlowError, ReturnedFlow, split_state},
    grant::{Grant, grant_record_id},
    keys::{EncryptionKeys, derived_key, fingerprint, is_long_enough},
    records::{Records, Versioned},
    refresh::{RefreshedToken, TokenRefresh, WantedGrant},
};

use crate::store::{Store, memory::Memory};

/// How long a challenge is valid.
const CHALLENGE_LIFE: Duration = Duration::from_mins(10);
/// The default id of the secret that holds the encryption key.
const KEY: &str = "TOOLS_OAUTH_KEY";

/// The settings for users' grants at OAuth 2.0 providers: the providers, and the store.
///
/// ```
/// # use lambda_tools_accounts as lambda_tools;
/// use lambda_tools::{OAuth, oauth::Provider};
///
/// // For `Server::oauth`.
/// let google = Provider::google("1234.apps.googleusercontent.com", "GOOGLE_CLIENT_SECRET");
/// let oauth = OAuth::with([google]);
/// ```
#[must_use]
pub struct OAuth {
    pub(crate) providers: Vec<Arc<Provider>>,
    pub(crate) keys: Vec<String>,
    store: Arc<dyn Store>,
    is_in_memory: bool,
}

impl OAuth {
    /// Creates settings with these providers, whose ids must be unique. Challenges and grants are
    /// kept in the memory of this process, for local use.
    pub fn with(providers: impl IntoIterator<Item = Provider>) -> Self {
        Self {
            providers: providers.into_iter().map(Arc::new).collect(),
            keys: vec![KEY.to_owned()],
            store: Arc::new(Memory::new(LIMITS)),
            is_in_memory: true,
        }
    }

    /// Keeps challenges and grants in a store that all instances of a function share. The store
    /// receives them encrypted.
    pub fn in_store(mut self, store: impl Store + 'static) -> Self {
        self.store = Arc::new(store);
        self.is_in_memory = false;
        self
    }

    /// Keeps challenges and grants in a DynamoDB table that all instances of a function share.
    ///
    /// The table has the partition key `id`, a string, and no sort key; `expires_at` holds seconds
    /// since 1970, for DynamoDB's time to live. It may be the table of
    /// [calls](lambda_tools_records::store::DynamoDb). The role needs `dynamodb:GetItem`, `dynamodb:PutItem`
    /// and `dynamodb:DeleteItem` on it.
    #[cfg(feature = "dynamodb")]
    pub fn in_dynamodb(self, table: impl Into<String>) -> Self {
        self.in_store(crate::store::DynamoDb::new(table))
    }

    /// Sets the ids of the secrets that are used as keys, `TOOLS_OAUTH_KEY` by default. The first
    /// encrypts and signs; all can decrypt and verify, so that keys can be rotated.
    pub fn key_ids<I: Into<String>>(mut self, ids: impl IntoIterator<Item = I>) -> Self {
        self.keys = ids.into_iter().map(Into::into).collect();
        self
    }

    /// Returns true if challenges and grants are lost with this process.
    pub fn is_in_memory(&self) -> bool {
        self.is_in_memory
    }

    /// Returns the ids of the secrets that are used as keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(String::as_str)
    }

    /// Returns the mistake in the settings, if any.
    pub fn config_error(&self) -> Option<String> {
        if self.keys.is_empty() {
            let text = "no secret is configured to encrypt users' tokens (TOOLS_OAUTH_KEY_IDS)";
            return Some(text.to_owned());
        }
        let mut mistakes = self.providers.iter().filter_map(|it| it.config_error());
        mistakes.next().or_else(|| {
            let ids: Vec<_> = self.providers.iter().map(|it| it.id()).collect();
            let mut all = ids.iter().enumerate();
            let (_, id) = all.find(|(at, id)| ids[..*at].contains(id))?;
            Some(format!(
                "there are two providers with the id '{id}'; one that users sign in at is also one \
                 for tools"
            ))
        })
    }

    /// Returns the ids of all secrets that OAuth reads.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let client_secrets = self.providers.iter().map(|it| it.secret.as_str());
        self.keys().chain(client_secrets)
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth")
            .field("providers", &self.providers)
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}
