//! Access tokens of identity providers: JWTs that an issuer signs with a private key.
//!
//! The issuer's public keys are discovered from its URL. As in [`super::jwt`], `jsonwebtoken`
//! checks signatures; the claims are checked here, against the time of the call. References: RFC
//! 9068; RFC 8725; `OpenID` Connect Discovery 1.0; RFC 8414.

mod claims;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod header;
mod key_cache;
mod key_set;

use std::{sync::Arc, time::SystemTime};

use serde_json::{Map, Value};

use super::{AuthError, CredentialRequest, jwt::install_cryptography, validity::check_validity};
use crate::{AccessToken, Caller, clock::Clock};
use claims::ClaimRules;
pub(super) use header::UnverifiedToken;
use key_cache::KeyCache;
use key_set::KeySet;

/// An identity provider whose access tokens are accepted.
#[derive(Clone, Debug)]
pub(super) struct Issuer {
    url: Arc<str>,
    pub(super) rules: ClaimRules,
    keys: Arc<KeyCache>,
}

impl Issuer {
    pub(super) fn new(url: impl Into<Arc<str>>) -> Self {
        install_cryptography();
        let url = url.into();
        Self {
            keys: Arc::new(KeyCache::new(Arc::clone(&url))),
            rules: ClaimRules::default(),
            url,
        }
    }

    /// The configured URL.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The issuer's own spelling of its URL once its metadata has been fetched, else the configured
    /// one: clients compare them exactly (RFC 8414, 3.3).
    pub(super) fn identifier(&self) -> Arc<str> {
        let known = self.keys.issuer();
        known.unwrap_or_else(|| Arc::clone(&self.url))
    }

    /// True if the token names this issuer, which its signature still has to prove.
    pub(super) fn is_named_by(&self, token: &UnverifiedToken<'_>) -> bool {
        token.issuer.trim_end_matches('/') == self.url.trim_end_matches('/')
    }

    /// Fetches the keys before the first call. An error is only logged.
    pub(super) fn warm_up(&self, clock: &Clock) -> impl Future<Output = ()> + use<> {
        let (keys, clock) = (Arc::clone(&self.keys), clock.clone());
        async move {
            let _ = keys.get(None, &clock, None).await;
        }
    }

    /// Checks the token's signature and its claims.
    pub(super) async fn verify(
        &self,
        token: &UnverifiedToken<'_>,
        request: &CredentialRequest<'_>,
    ) -> Result<Caller, AuthError> {
        let CredentialRequest { clock, left, .. } = *request;
        // Not only once there is a key: clients sign in again after a 401, but not after a 503.
        if token.expires_at.is_some() {
            let validity = check_validity(token.expires_at, None, clock.now());
            validity.map_err(AuthError::invalid)?;
        }
        let kid = token.header.kid.as_deref();
        let keys = self.keys.get(kid, clock, left).await;
        let pause = || AuthError::Undecided(self.keys.pause(clock.instant()));
        let keys = keys.ok_or_else(pause)?;
        let accepted = accepted(token, &keys, &self.rules, clock.now(), request.server_url);
        let token = accepted.map_err(AuthError::invalid)?;
        Ok(Caller::AccessToken(Arc::new(token)))
    }
}

/// The facts in a token that one of the keys has signed and whose claims the rules accept.
fn accepted(
    token: &UnverifiedToken<'_>,
    keys: &KeySet,
    rules: &ClaimRules,
    now: SystemTime,
    server_url: Option<&str>,
) -> Result<AccessToken, &'static str> {
    let claims: Map<String, Value> = keys.verify(token)?;
    if token.issuer != *keys.issuer {
        return Err("the token's issuer is spelled differently");
    }
    rules.check(&claims, now, server_url)?;
    rules.token_of(Arc::clone(&keys.issuer), &claims)
}
