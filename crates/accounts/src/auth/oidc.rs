//! Access tokens of identity providers: JWTs that an issuer signs with a private key.
//!
//! The issuer's public keys are discovered from its URL. As for other JWTs, `jsonwebtoken`
//! checks signatures; the claims are checked here, against the time of the call. References: RFC
//! 9068; RFC 8725; `OpenID` Connect Discovery 1.0; RFC 8414.

mod claims;
mod key_cache;
mod key_set;

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::SystemTime,
};

use serde::Deserialize;
use serde_json::Value;

use super::{
    Auth, AuthError, CredentialCheck, CredentialRequest,
    jwt::{decoded, install_cryptography, is_expired},
};
use crate::{AccessToken, Caller, clock::Clock};
pub use claims::ClaimRules;
#[cfg(feature = "sign-in")]
pub(in crate::auth) use claims::{MCP, groups_in, is_server};
pub(in crate::auth) use key_cache::KeyCache;
pub use key_set::KeySet;

/// The maximum length of a token, in bytes. Lambda's event sources limit all headers together to
/// less.
const LONGEST_TOKEN: usize = 16 * 1024;

/// Access tokens of an identity provider, which callers send as `Authorization: Bearer`: JWTs that
/// it issued for this server (RFC 9068). The user who signed in is the call's user: tools get it as
/// [`Context::user_id`](lambda_tools_core::Context::user_id), and a call that names another user is rejected.
///
/// The `aud` claim must name the server's own URL (`Server::public_url`),
/// that URL followed by `/mcp`, or one of the [audiences](Self::audience). The algorithm is RS256,
/// PS256, ES256, ES384 or `EdDSA`, whichever the issuer's key is for. ID tokens are rejected.
///
/// ```
/// # use lambda_tools_accounts as lambda_tools;
/// use lambda_tools::{Auth, Oidc};
///
/// // For `Server::auth`.
/// let auth = Auth::from(Oidc::issuer("https://example.eu.auth0.com/")).scope("tools.call");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Oidc {
    rules: ClaimRules,
    keys: Arc<KeyCache>,
}

impl Oidc {
    /// Accepts the tokens of the issuer at `url`, as in its metadata, which uses HTTPS unless its
    /// host is this machine.
    pub fn issuer(url: impl Into<String>) -> Self {
        install_cryptography();
        Self {
            keys: Arc::new(KeyCache::new(url.into())),
            rules: ClaimRules::default(),
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
        &self.keys.url
    }

    /// Returns true if the token names this issuer, which its signature still has to prove.
    fn is_named_by(&self, token: &UnverifiedToken<'_>) -> bool {
        token.issuer.trim_end_matches('/') == self.url().trim_end_matches('/')
    }

    /// Fetches the keys before the first call. An error is only logged.
    pub(super) async fn warm_up(&self, clock: &Clock) {
        let _ = self.keys.get(None, clock, None).await;
    }

    /// Checks the token's signature and its claims.
    async fn verify(
        &self,
        token: &UnverifiedToken<'_>,
        request: &CredentialRequest<'_>,
    ) -> Result<Caller, AuthError> {
        let CredentialRequest { clock, left, .. } = *request;
        // Not only once there is a key: clients sign in again after a 401, but not after a 503.
        if token
            .expires_at
            .is_some_and(|it| is_expired(it, clock.now()))
        {
            return Err(AuthError::invalid("the JWT has expired"));
        }
        let keys = self.keys.get(token.key_id.as_deref(), clock, left).await;
        let keys = keys.ok_or_else(|| self.keys.error(clock.instant()))?;
        let accepted = accepted(token, &keys, &self.rules, clock.now(), request.server_url);
        let token = accepted.map_err(AuthError::invalid)?;
        Ok(Caller::AccessToken(Arc::new(token)))
    }
}

impl Auth {
    /// Returns the issuers of access tokens, in their own spelling once it is known. `server` is this
    /// server's URL.
    pub fn issuers(&self, server: &str) -> Vec<Arc<str>> {
        let own = self.sign_in.as_ref().map(|_| Arc::from(server));
        let issuers = self.oidc.iter().map(|it| it.keys.issuer()).chain(own);
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
    let parsed = UnverifiedToken::parse(token);
    let mistake = parsed.as_ref().err().copied();
    check.reason = mistake.or(Some("the token's issuer is not one of this server's"));
    let token = parsed.ok()?;
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

/// A token whose signature has not been checked: its issuer only selects the keys to check it with,
/// and its expiry can only lead to its rejection.
pub struct UnverifiedToken<'a> {
    pub(super) text: &'a [u8],
    /// The id of the key that it names.
    pub(in crate::auth) key_id: Option<String>,
    pub(in crate::auth) issuer: String,
    /// Its `exp` claim, if that is a number.
    pub(super) expires_at: Option<f64>,
}

/// The JOSE header: RFC 7515, 4.1. A field that occurs twice is an error.
#[derive(Deserialize)]
struct Header {
    kid: Option<String>,
    typ: Option<String>,
    /// The others, whatever their values are: `null` is not the same as no value.
    #[serde(flatten)]
    others: HashMap<String, Value>,
}

#[derive(Deserialize)]
struct UnverifiedClaims {
    iss: String,
    exp: Option<Value>,
}

impl<'a> UnverifiedToken<'a> {
    /// Parses a token. The error is the reason why the text is not a JWT of any issuer.
    pub fn parse(text: &'a [u8]) -> Result<Self, &'static str> {
        if text.len() > LONGEST_TOKEN {
            return Err("the token is longer than 16 KiB");
        }
        let parts: Vec<_> = text.split(|byte| *byte == b'.').collect();
        let [header, claims, _] = parts[..] else {
            return Err("the token is not a JWT");
        };
        let header: Header = decoded(header).ok_or("the token's header is not valid")?;
        header.check()?;
        let claims: UnverifiedClaims = decoded(claims).ok_or("the token names no issuer")?;
        Ok(Self {
            text,
            key_id: header.kid,
            issuer: claims.iss,
            expires_at: claims.exp.and_then(|exp| exp.as_f64()),
        })
    }
}

impl Header {
    fn check(&self) -> Result<(), &'static str> {
        if self.others.contains_key("crit") {
            // RFC 7515, 4.1.11: these extensions must be understood; none is supported.
            return Err("the JWT has a crit header");
        }
        let mut keys = ["jwk", "jku", "x5c", "x5u"].into_iter();
        if keys.any(|key| self.others.contains_key(key)) {
            // RFC 8725, 3.10: a key that the token itself brings proves nothing.
            return Err("the JWT's header brings its own key");
        }
        // RFC 9068, 2.1, and RFC 8725, 3.11. Many issuers still write `JWT`, or nothing.
        let accepted = ["jwt", "at+jwt", "application/at+jwt"];
        let is_accepted = |typ: &String| accepted.iter().any(|it| typ.eq_ignore_ascii_case(it));
        let is_token = self.typ.as_ref().is_none_or(is_accepted);
        let error = "the JWT's typ is not that of an access token";
        is_token.then_some(()).ok_or(error)
    }
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
