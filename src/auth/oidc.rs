//! Access tokens of identity providers: JWTs that an issuer signs with a private key.
//!
//! The issuer's public keys are discovered from its URL. As in [`super::jwt`], `jsonwebtoken`
//! checks signatures; the claims are checked here, against the time of the call. References: RFC
//! 9068; RFC 8725; `OpenID` Connect Discovery 1.0; RFC 8414.

mod claims;
mod header;
mod key_cache;
mod key_set;

use std::{collections::BTreeSet, sync::Arc, time::SystemTime};

use super::{
    Auth, AuthError, CredentialRequest,
    attempt::CredentialCheck,
    jwt::{install_cryptography, validity::check_validity},
};
use crate::{AccessToken, Caller, clock::Clock};
pub use claims::ClaimRules;
#[cfg(feature = "sign-in")]
pub(in crate::auth) use claims::{groups_in, texts};
pub use header::UnverifiedToken;
pub(in crate::auth) use key_cache::KeyCache;
pub use key_set::KeySet;

/// Access tokens of an identity provider, which callers send as `Authorization: Bearer`: JWTs that
/// it issued for this server (RFC 9068). The user who signed in is the call's user: tools get it as
/// [`Context::user_id`](crate::Context::user_id), and a call that names another user is rejected.
///
/// The `aud` claim must name the server's own URL ([`Server::public_url`](crate::Server::public_url)),
/// that URL followed by `/mcp`, or one of the [audiences](Self::audience). The algorithm is RS256,
/// PS256, ES256, ES384 or `EdDSA`, whichever the issuer's key is for. ID tokens are rejected.
///
/// ```
/// use lambda_tools::{Auth, Oidc, Server, Toolkit};
///
/// let auth = Auth::from(Oidc::issuer("https://example.eu.auth0.com/")).scope("tools.call");
/// let server = Server::new(Toolkit::new([])?).auth(auth);
/// # Ok::<(), lambda_tools::BuildError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Oidc {
    url: Arc<str>,
    rules: ClaimRules,
    keys: Arc<KeyCache>,
}

impl Oidc {
    /// Accepts the tokens of the issuer at `url`, as in its metadata, which uses HTTPS unless its
    /// host is this machine.
    pub fn issuer(url: impl Into<String>) -> Self {
        install_cryptography();
        let url = Arc::<str>::from(url.into());
        Self {
            keys: Arc::new(KeyCache::new(Arc::clone(&url))),
            rules: ClaimRules::default(),
            url,
        }
    }

    /// Adds an audience that the `aud` claim may name.
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.rules.audiences.push(audience.into());
        self
    }

    /// Accepts tokens that have no `aud` claim if their `client_id` claim is this one, as with
    /// Cognito's tokens that are not bound to a resource.
    pub fn client_id(mut self, id: impl Into<String>) -> Self {
        self.rules.client_ids.push(id.into());
        self
    }

    /// Uses this claim as the user, in place of `sub`. Its value must be unique within the issuer
    /// and never pass to another person, as email addresses may.
    pub fn user_claim(mut self, name: impl Into<String>) -> Self {
        self.rules.user_claim = name.into();
        self
    }

    /// Uses this claim as the user's groups, in place of `groups` and `cognito:groups`.
    pub fn groups_claim(mut self, name: impl Into<String>) -> Self {
        self.rules.group_claims = vec![name.into()];
        self
    }

    /// Returns the configured URL.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the issuer's own spelling of its URL once its metadata has been fetched, else the
    /// configured one: clients compare them exactly (RFC 8414, 3.3).
    fn identifier(&self) -> Arc<str> {
        let known = self.keys.issuer();
        known.unwrap_or_else(|| Arc::clone(&self.url))
    }

    /// Returns true if the token names this issuer, which its signature still has to prove.
    fn is_named_by(&self, token: &UnverifiedToken<'_>) -> bool {
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
    async fn verify(
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
        let keys = keys.ok_or_else(|| self.keys.error(clock.instant()))?;
        let accepted = accepted(token, &keys, &self.rules, clock.now(), request.server_url);
        let token = accepted.map_err(AuthError::invalid)?;
        Ok(Caller::AccessToken(Arc::new(token)))
    }
}

impl Auth {
    /// Returns the issuers of access tokens, in their own spelling once it is known. `server` is this
    /// server's URL.
    pub(crate) fn issuers(&self, server: &str) -> Vec<Arc<str>> {
        let own = self.sign_in.as_ref().map(|_| Arc::from(server));
        let issuers = self.oidc.iter().map(Oidc::identifier).chain(own);
        issuers.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// Checks a token with the rules of the issuer that it names; one of several sets of rules for the
/// same issuer is enough. Returns `None` if the token names none of the issuers.
pub(super) async fn identify(
    all: &[Oidc],
    token: &[u8],
    request: &CredentialRequest<'_>,
    check: &mut CredentialCheck,
) -> Option<Result<Caller, AuthError>> {
    let token = match UnverifiedToken::parse(token) {
        Ok(token) => token,
        Err(reason) => {
            check.reason = Some(reason);
            return None;
        }
    };
    check.reason = Some("the token's issuer is not one of this server's");
    let mut result = None;
    for issuer in all.iter().filter(|it| it.is_named_by(&token)) {
        match issuer.verify(&token, request).await {
            Ok(caller) => return Some(Ok(caller)),
            // The rules that could not be applied may accept the token.
            Err(AuthError::Unauthenticated(_)) if result.is_some() => {}
            Err(error) => result = Some(Err(error)),
        }
    }
    result
}

/// Returns the facts in a token that one of the keys has signed and whose claims the rules accept.
pub fn accepted(
    token: &UnverifiedToken<'_>,
    keys: &KeySet,
    rules: &ClaimRules,
    now: SystemTime,
    server_url: Option<&str>,
) -> Result<AccessToken, &'static str> {
    let claims = keys.verify_from_issuer(token)?;
    rules.check(&claims, now, server_url)?;
    rules.token_of(Arc::clone(&keys.issuer), &claims)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::REAL;

    #[tokio::test]
    async fn an_issuer_that_does_not_answer_does_not_delay_the_others() {
        let bind = || tokio::net::TcpListener::bind("127.0.0.1:0");
        let (silent, other) = (bind().await.unwrap(), bind().await.unwrap());
        let issuer = |it: &tokio::net::TcpListener| {
            Oidc::issuer(format!("http://{}", it.local_addr().unwrap()))
        };
        let auth = Auth::from(issuer(&silent)).or(issuer(&other));
        let (clock, limit) = (REAL, Duration::from_secs(2));
        let asked = tokio::time::timeout(limit, other.accept());
        tokio::select! {
            () = auth.warm_up(&clock) => panic!("the silent issuer has answered"),
            asked = asked => assert!(asked.is_ok(), "the other issuer waits"),
        }
    }
}
