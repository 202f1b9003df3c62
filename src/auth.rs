//! Authentication of callers.
//!
//! Callers are authenticated before anything else in a request is processed, even the body, so that
//! a stranger learns nothing about the tools. Reference: OXP 1.0, Server Authentication.

#[cfg(feature = "openapi")]
mod accepted;
mod attempt;
mod check;
#[cfg(all(fuzzing, feature = "oidc"))]
pub(crate) mod fuzzing;
#[cfg(feature = "jwt")]
mod jwt;
#[cfg(feature = "oidc")]
mod oidc;
mod rotation;
mod scopes;
mod summary;
#[cfg(feature = "jwt")]
mod validity;

#[cfg(feature = "oidc")]
use std::collections::BTreeSet;
#[cfg(feature = "jwt")]
use std::sync::Arc;

#[cfg(feature = "oidc")]
use crate::clock::Clock;
use crate::{Caller, text::separate_scopes};

#[cfg(feature = "openapi")]
pub(crate) use accepted::AcceptedCredentials;
pub(crate) use check::{AuthError, CredentialRequest, Unauthenticated};
#[cfg(feature = "jwt")]
use jwt::JwtSigner;
#[cfg(feature = "oidc")]
use oidc::Issuer;
use rotation::SecretRotation;

/// The credentials that callers must send. `/health` never requires any.
///
/// API keys are secrets, like those of tools: their ids are configured here; their values are in
/// the server's [store](crate::secrets).
///
/// ```
/// use lambda_tools::{Auth, Server, Toolkit};
///
/// let auth = Auth::api_key_ids(["PARTNER_KEY|PARTNER_KEY_NEXT", "OTHER_KEY"]);
/// let server = Server::new(Toolkit::new([])?).auth(auth);
/// # Ok::<(), lambda_tools::BuildError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Auth {
    /// The ids of the secrets that hold API keys, by caller. `None`: API keys are not accepted.
    keys: Option<Vec<SecretRotation>>,
    /// The signers of JWTs. `None`: JWTs are not accepted.
    #[cfg(feature = "jwt")]
    jwt: Option<Vec<JwtSigner>>,
    /// The identity providers whose access tokens are accepted.
    #[cfg(feature = "oidc")]
    issuers: Vec<Issuer>,
    /// True if the platform's authentication is accepted.
    accepts_gateway: bool,
    /// The scopes that a token must have for every call.
    scopes: Vec<String>,
}

impl Auth {
    /// Anyone may call; an `Authorization` header is ignored. Use this locally, or behind IAM or an
    /// API Gateway authorizer.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Callers must send an API key, as `OXP-API-Key` or, as the published clients do, as
    /// `Authorization: Bearer`. Pass the ids of the secrets whose values are the keys, never the
    /// keys themselves. Each id is a separate caller: callers share neither replays nor users'
    /// grants. `"A|A_NEXT"` names two keys of one caller, so that its key can be rotated; the
    /// caller's name is `A`, whichever key it sends. Without any id, every call is rejected.
    #[must_use]
    pub fn api_key_ids<I: AsRef<str>>(ids: impl IntoIterator<Item = I>) -> Self {
        let mut auth = Self::none();
        auth.keys = Some(rotations(ids));
        auth
    }

    /// Callers must send a JWT as `Authorization: Bearer`, signed with HS256. Pass the ids of the
    /// signing secrets, whose values must have at least 32 bytes (RFC 7518, 3.2). Each id is a
    /// separate signer, and the `sub` claim names a caller of that signer: the same `sub` from two
    /// signers means two callers, each with its own users and grants. `"A|A_NEXT"` names two
    /// secrets of one signer, for rotation.
    ///
    /// A token must have an `exp` claim and be used before it, and not before its `nbf`; clocks may
    /// differ by a minute. If the signer has [audiences](Self::audience), the `aud` claim must name
    /// one of them; otherwise there must be no `aud` claim (RFC 7519, 4.1.3; RFC 8725, 3.9).
    ///
    /// [`audience`](Self::audience) and [`subject_is_user`](Self::subject_is_user) apply to the
    /// signers and issuers that they are called on, so those with different rules can be combined:
    ///
    /// ```
    /// # use lambda_tools::Auth;
    /// // Tokens of A must have no audience, those of B must be for this server.
    /// let auth = Auth::jwt_secret_ids(["A"])
    ///     .or(Auth::jwt_secret_ids(["B"]).audience("https://tools.example"));
    /// ```
    #[cfg(feature = "jwt")]
    #[must_use]
    pub fn jwt_secret_ids<I: AsRef<str>>(ids: impl IntoIterator<Item = I>) -> Self {
        let mut auth = Self::none();
        auth.jwt = Some(rotations(ids).into_iter().map(JwtSigner::new).collect());
        auth
    }

    /// Callers must send an access token of this identity provider as `Authorization: Bearer`: a
    /// JWT that it issued for this server (RFC 9068). `url` is the issuer's, as in its metadata, and
    /// uses HTTPS unless its host is this machine. The user who signed in is the call's user: tools
    /// get it as [`Context::user_id`](crate::Context::user_id), and a call that names another user
    /// is rejected.
    ///
    /// The `aud` claim must name the server's own URL ([`Server::public_url`](crate::Server::public_url)),
    /// that URL followed by `/mcp`, or one of the [audiences](Self::audience). The algorithm is
    /// RS256, PS256, ES256, ES384 or `EdDSA`, whichever the issuer's key is for. ID tokens are
    /// rejected.
    ///
    /// ```
    /// use lambda_tools::{Auth, Server, Toolkit};
    ///
    /// let auth = Auth::issuer("https://example.eu.auth0.com/").scope("tools.call");
    /// let server = Server::new(Toolkit::new([])?).auth(auth);
    /// # Ok::<(), lambda_tools::BuildError>(())
    /// ```
    #[cfg(feature = "oidc")]
    #[must_use]
    pub fn issuer(url: impl Into<String>) -> Self {
        let mut auth = Self::none();
        auth.issuers.push(Issuer::new(url.into()));
        auth
    }

    /// Callers must have been authenticated by API Gateway (with a JWT, Cognito or Lambda
    /// authorizer) or by IAM. The identity is read from the event's request context, never from
    /// headers. An event without one is rejected.
    ///
    /// The user of a JWT that API Gateway has verified is the call's user, as with an
    /// [issuer](Self::issuer).
    #[must_use]
    pub fn gateway() -> Self {
        let mut auth = Self::none();
        auth.accepts_gateway = true;
        auth
    }

    /// Adds an audience that the `aud` claim of a JWT may name.
    #[cfg(feature = "jwt")]
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        let audience = audience.into();
        #[cfg(feature = "oidc")]
        for issuer in &mut self.issuers {
            issuer.rules.audiences.push(audience.clone());
        }
        for signer in self.jwt.iter_mut().flatten() {
            signer.audiences.push(audience.clone());
        }
        self
    }

    /// Accepts access tokens that have no `aud` claim if their `client_id` claim is this one, as
    /// with Cognito's tokens that are not bound to a resource.
    #[cfg(feature = "oidc")]
    #[must_use]
    pub fn client_id(mut self, id: impl Into<String>) -> Self {
        let id = id.into();
        for issuer in &mut self.issuers {
            issuer.rules.client_ids.push(id.clone());
        }
        self
    }

    /// Uses this claim of an access token as the user, in place of `sub`. Its value must be unique
    /// within the issuer and never pass to another person, as email addresses may.
    #[cfg(feature = "oidc")]
    #[must_use]
    pub fn user_claim(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        for issuer in &mut self.issuers {
            issuer.rules.user_claim.clone_from(&name);
        }
        self
    }

    /// Uses this claim of an access token as the user's groups, in place of `groups` and
    /// `cognito:groups`.
    #[cfg(feature = "oidc")]
    #[must_use]
    pub fn groups_claim(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        for issuer in &mut self.issuers {
            issuer.rules.group_claims = vec![name.clone()];
        }
        self
    }

    /// Adds a scope that the token must have for every call, in addition to the scopes of the
    /// [tool](crate::Tool::scope). It applies to JWTs of all kinds, on both sides of
    /// [`or`](Self::or), because clients are told one list of scopes; callers without a token, such
    /// as those with API keys, have no scopes and are not restricted. A text with spaces names
    /// several scopes.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scopes.extend(separate_scopes(&scope.into()));
        self
    }

    /// Uses the `sub` claim of a JWT as the call's user: tools get it as
    /// [`Context::user_id`](crate::Context::user_id). A call that names another user is rejected,
    /// and so is a call that names any user if its token has no `sub`. Callers with API keys may
    /// name any user.
    #[cfg(feature = "jwt")]
    #[must_use]
    pub fn subject_is_user(mut self) -> Self {
        for signer in self.jwt.iter_mut().flatten() {
            signer.subject_is_user = true;
        }
        self
    }

    /// Also accepts the credentials that `other` accepts. Each issuer and each signer of JWTs keeps
    /// its rules; only [scopes](Self::scope) apply to all. [`Auth::none`] accepts none, and adds
    /// nothing.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        if let Some(keys) = other.keys {
            self.keys.get_or_insert_default().extend(keys);
        }
        #[cfg(feature = "jwt")]
        if let Some(signers) = other.jwt {
            self.jwt.get_or_insert_default().extend(signers);
        }
        #[cfg(feature = "oidc")]
        self.issuers.extend(other.issuers);
        self.accepts_gateway |= other.accepts_gateway;
        self.scopes.extend(other.scopes);
        self
    }

    /// Returns true if anyone may call.
    pub(crate) fn is_open(&self) -> bool {
        self.keys.is_none() && !self.has_jwt() && !self.has_issuers() && !self.accepts_gateway
    }

    /// The users on whose behalf the caller may call.
    #[cfg_attr(
        not(feature = "jwt"),
        expect(clippy::unused_self, reason = "the same with and without the feature")
    )]
    pub(crate) fn users_of<'a>(&self, caller: &'a Caller) -> PermittedUsers<'a> {
        let user = match caller {
            Caller::AccessToken(token) => &token.user,
            #[cfg(feature = "jwt")]
            Caller::Jwt { id, subject, .. } if self.subject_of_signer_is_user(id) => subject,
            _ => return PermittedUsers::Any,
        };
        let user = user.as_deref().filter(|user| !user.is_empty());
        user.map_or(PermittedUsers::None, PermittedUsers::Only)
    }

    #[cfg(feature = "jwt")]
    fn subject_of_signer_is_user(&self, signer: &Arc<str>) -> bool {
        let mut signers = self.jwt.iter().flatten();
        signers.any(|it| it.subject_is_user && it.secrets.name() == signer)
    }

    /// The id of a secret that is listed twice. Two callers who share a secret cannot be
    /// distinguished.
    pub(crate) fn duplicate_secret_id(&self) -> Option<&str> {
        let id = rotation::duplicate_id(self.keys.iter().flatten());
        #[cfg(feature = "jwt")]
        let id = id.or_else(|| rotation::duplicate_id(self.jwt_secrets()));
        id
    }

    /// The ids of all secrets that authentication reads.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        let rotations = self.keys.iter().flatten();
        #[cfg(feature = "jwt")]
        let rotations = rotations.chain(self.jwt_secrets());
        rotations.flat_map(SecretRotation::ids).map(|id| &**id)
    }

    #[cfg(feature = "jwt")]
    fn jwt_secrets(&self) -> impl Iterator<Item = &SecretRotation> {
        self.jwt.iter().flatten().map(|signer| &signer.secrets)
    }

    #[cfg(feature = "jwt")]
    fn has_jwt(&self) -> bool {
        self.jwt.is_some()
    }

    #[cfg(not(feature = "jwt"))]
    #[expect(clippy::unused_self, reason = "the same with and without the feature")]
    fn has_jwt(&self) -> bool {
        false
    }

    #[cfg(feature = "oidc")]
    pub(crate) fn has_issuers(&self) -> bool {
        !self.issuers.is_empty()
    }

    #[cfg(not(feature = "oidc"))]
    #[expect(clippy::unused_self, reason = "the same with and without the feature")]
    pub(crate) fn has_issuers(&self) -> bool {
        false
    }

    /// The issuers of access tokens, in their own spelling once it is known.
    #[cfg(feature = "oidc")]
    pub(crate) fn issuers(&self) -> Vec<Arc<str>> {
        let issuers = self.issuers.iter().map(Issuer::identifier);
        issuers.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The configured URLs of the issuers.
    #[cfg(feature = "oidc")]
    pub(crate) fn issuer_urls(&self) -> impl Iterator<Item = &str> {
        self.issuers.iter().map(Issuer::url)
    }

    /// Fetches the issuers' keys before the first call.
    #[cfg(feature = "oidc")]
    pub(crate) async fn warm_up(&self, clock: &Clock) {
        let fetches = self.issuers.iter().map(|issuer| issuer.warm_up(clock));
        // Started together: one issuer that does not answer must not use up the time of the others.
        let fetches: Vec<_> = fetches.map(tokio::spawn).collect();
        for fetch in fetches {
            let _ = fetch.await;
        }
    }
}

/// The users on whose behalf a caller may call.
#[derive(Clone, Copy)]
pub(crate) enum PermittedUsers<'a> {
    Any,
    Only(&'a str),
    None,
}

fn rotations<I: AsRef<str>>(ids: impl IntoIterator<Item = I>) -> Vec<SecretRotation> {
    let ids = ids.into_iter();
    ids.filter_map(|ids| SecretRotation::parse(ids.as_ref()))
        .collect()
}

#[cfg(all(test, feature = "oidc"))]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::REAL;

    #[tokio::test]
    async fn an_issuer_that_does_not_answer_does_not_delay_the_others() {
        let bind = || tokio::net::TcpListener::bind("127.0.0.1:0");
        let (silent, other) = (bind().await.unwrap(), bind().await.unwrap());
        let issuer = |it: &tokio::net::TcpListener| {
            Auth::issuer(format!("http://{}", it.local_addr().unwrap()))
        };
        let auth = issuer(&silent).or(issuer(&other));
        let (clock, limit) = (REAL, Duration::from_secs(2));
        let asked = tokio::time::timeout(limit, other.accept());
        tokio::select! {
            () = auth.warm_up(&clock) => panic!("the silent issuer has answered"),
            asked = asked => assert!(asked.is_ok(), "the other issuer waits"),
        }
    }
}
