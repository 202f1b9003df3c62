//! Tools that act for a user: authorization over OAuth 2.0.
//!
//! A tool that [requires](crate::Tool::authorization) a user's token and gets none answers with a
//! challenge: the user follows its URL once, allows what the tool needs, and the same call succeeds
//! from then on, on every instance of the function. Reference: OXP 1.0, Authorization Challenges;
//! RFC 6749, RFC 7636, RFC 9700.
//!
//! Three things have to be there: a [`Provider`] with its client id, its client secret in the
//! server's [store](crate::secrets), and there as well a key of 32 bytes or more with which
//! everything that is stored is encrypted (AES-256-GCM). Whoever can read the table alone can
//! read no token.
//!
//! Following a challenge's URL starts nothing yet: a page says who asks for what, and its button
//! leads to the provider. A preview of the link, or a form of another site, presses no button.
//!
//! What is sent round through the browser is bound to it: `state` is signed, works once and for
//! minutes, and only together with a cookie that the challenge's page has set; the PKCE verifier is
//! made of the same cookie. So nobody can finish in one browser what was begun in another.
//!
//! A challenge's id, and with it `state`, holds a hash of the user's id: who guesses the id of a user
//! can confirm the guess, as everywhere that hashes names.
//!
//! A challenge is for whom the call names as its user, and for who calls: users of two callers are
//! two people, whatever their ids. Give its URL to that user only: whoever follows it and agrees
//! lends that user their account at the provider.

mod broker;
mod callback;
mod challenge;
mod exchange;
mod grant;
mod grant_request;
mod keys;
mod page;
mod provider;
mod records;
mod redemption;
mod refresh;
mod start;
mod state;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc, time::Duration};

pub(crate) use broker::Broker;
pub(crate) use grant_request::GrantRequest;
pub(crate) use page::{BrowserResponse, CallbackPage, CallbackQuery, ConsentPage};
pub use provider::Provider;
pub(crate) use provider::is_base;
use records::LIMITS;

#[cfg(feature = "dynamodb")]
use crate::store::DynamoDb;
use crate::store::{Store, memory::Memory};

/// The secret that encrypts, unless others are named.
const KEY: &str = "TOOLS_OAUTH_KEY";

/// Where users allow tools to act for them, and where that is kept.
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
    pub(crate) public_url: Option<String>,
    pub(crate) authenticate_checks: bool,
    pub(crate) challenge_life: Duration,
}

impl OAuth {
    /// With these providers, each id once, and everything kept in the memory of this process: for
    /// local use.
    pub fn with(providers: impl IntoIterator<Item = Provider>) -> Self {
        Self {
            providers: providers.into_iter().map(Arc::new).collect(),
            keys: vec![KEY.to_owned()],
            store: Arc::new(Memory::new(LIMITS)),
            is_in_memory: true,
            public_url: None,
            authenticate_checks: false,
            challenge_life: Duration::from_mins(10),
        }
    }

    /// Keeps challenges and grants in a store that all instances of a function share. It sees them
    /// encrypted only.
    pub fn in_store(mut self, store: impl Store + 'static) -> Self {
        self.store = Arc::new(store);
        self.is_in_memory = false;
        self
    }

    /// Keeps challenges and grants in a table of DynamoDB, shared by all instances of a function.
    ///
    /// The table has the partition key `id`, a string, and no sort key; `expires_at` holds seconds
    /// since 1970, for time to live. It may be the table of [calls](crate::idempotency::DynamoDb).
    /// The role needs `dynamodb:GetItem`, `dynamodb:PutItem` and `dynamodb:DeleteItem` on it.
    #[cfg(feature = "dynamodb")]
    pub fn in_dynamodb(self, table: impl Into<String>) -> Self {
        self.in_store(DynamoDb::new(table))
    }

    /// Sets the ids of the secrets that encrypt and sign, `TOOLS_OAUTH_KEY` otherwise. The
    /// first is used for what is new; all are understood, so that keys can be rotated.
    pub fn key_ids<I: Into<String>>(mut self, ids: impl IntoIterator<Item = I>) -> Self {
        self.keys = ids.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the URL under which the server is reached from outside, such as
    /// `https://tools.example/agents`: challenges and redirects begin with it. Otherwise the
    /// environment (`TOOLS_PUBLIC_URL`) or
    /// the domain in the event says it (not behind load balancers, whose events have none), and the
    /// address of a local server. A request's `Host` header never does.
    pub fn public_url(mut self, url: impl Into<String>) -> Self {
        self.public_url = Some(url.into());
        self
    }

    /// Asks for the callers' credentials where they ask how a challenge stands (`check_url`).
    /// Otherwise who knows a challenge's id may ask; it cannot be guessed.
    pub fn authenticate_checks(mut self) -> Self {
        self.authenticate_checks = true;
        self
    }

    /// Sets how long a challenge can be answered: 10 minutes unless this says otherwise.
    pub fn challenges_expire_after(mut self, time: Duration) -> Self {
        self.challenge_life = time.min(Duration::from_hours(24));
        self
    }

    /// The ids of all secrets that it reads.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        let of_providers = self.providers.iter().map(|it| it.secret.as_str());
        self.keys.iter().map(String::as_str).chain(of_providers)
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth")
            .field("providers", &self.providers)
            .field("keys", &self.keys)
            .field("public_url", &self.public_url)
            .finish_non_exhaustive()
    }
}
