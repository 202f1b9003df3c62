//! Tools that act for a user: authorization with OAuth 2.0.
//!
//! A call to a tool that [requires](crate::Tool::authorization) a user's token returns a challenge
//! if the token is missing: the user follows its URL once and allows what the tool needs, and then
//! the same call succeeds on every instance of the function. References: OXP 1.0, Authorization
//! Challenges; RFC 6749, RFC 7636, RFC 9700. The page [`users`](crate::users) shows an example, and how
//! keys are rotated.
//!
//! Three things are required: a [`Provider`] with its client id, its client secret in the server's
//! [store](crate::secrets), and in the same store a key of at least 32 bytes, with which all
//! challenges and grants are encrypted (AES-256-GCM). Read access to their records alone reveals no
//! token.
//!
//! Following a challenge's URL does not start anything by itself: a page names the caller and the
//! requested scopes, and its button leads to the provider. Neither a link preview nor another
//! site's form can press it.
//!
//! Everything that passes through the browser is bound to it: `state` is signed, works only once,
//! expires after a few minutes, and is valid only with the cookie that the challenge's page has
//! set; the PKCE verifier is derived from the same cookie. A challenge started in one browser
//! cannot be finished in another.
//!
//! A challenge's id, and therefore `state`, contains a hash of the user's id: anyone who guesses a
//! user's id can confirm the guess, as with every hash of a name.
//!
//! A challenge belongs to the call's user and its caller: users of two callers are different users,
//! even if their ids are equal. Give its URL to that user only: anyone who follows it and agrees
//! lets tools use their account at the provider in that user's calls.

mod broker;
mod browser;
mod callback;
mod challenge;
mod exchange;
mod flow;
mod grant;
mod grant_request;
mod keys;
mod provider;
mod records;
mod refresh;
mod scope_descriptions;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc, time::Duration};

#[doc(hidden)]
pub use crate::http_client::TransportError;
pub(crate) use broker::Broker;
pub(crate) use browser::{
    Browser, BrowserResponse, ChallengeAsker, ChallengePage, ChallengeResponse, ConsentPage,
    Parameters, RequestedScope,
};
pub(crate) use grant_request::{Challenge, GrantRequest};
pub(crate) use keys::SHORTEST;
pub use provider::Provider;
use records::LIMITS;
#[cfg(feature = "sign-in")]
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
/// use lambda_tools::{OAuth, Server, Toolkit, oauth::Provider};
///
/// let google = Provider::google("1234.apps.googleusercontent.com", "GOOGLE_CLIENT_SECRET");
/// let server = Server::new(Toolkit::new([])?).oauth(OAuth::with([google]));
/// # Ok::<(), lambda_tools::BuildError>(())
/// ```
#[must_use]
pub struct OAuth {
    pub(crate) providers: Vec<Arc<Provider>>,
    pub(crate) keys: Vec<String>,
    store: Arc<dyn Store>,
    pub(crate) is_in_memory: bool,
    pub(crate) authenticate_checks: bool,
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
            authenticate_checks: false,
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
    /// [calls](crate::idempotency::DynamoDb). The role needs `dynamodb:GetItem`, `dynamodb:PutItem`
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

    /// Requires the caller's credentials to read a challenge's status (`check_url`). By default the
    /// challenge's id is enough; it cannot be guessed.
    pub fn authenticate_checks(mut self) -> Self {
        self.authenticate_checks = true;
        self
    }

    pub(crate) fn provider_ids(&self) -> impl Iterator<Item = &str> {
        self.providers.iter().map(|provider| provider.id())
    }

    /// Returns the ids of all secrets that OAuth reads.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        let client_secrets = self.providers.iter().map(|it| it.secret.as_str());
        self.keys.iter().map(String::as_str).chain(client_secrets)
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
