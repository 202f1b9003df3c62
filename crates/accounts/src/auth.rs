//! Authentication of callers.
//!
//! Callers are authenticated before anything else in a request is processed, even the body, so that
//! a stranger learns nothing about the tools. Reference: OXP 1.0, Server Authentication.

mod api_keys;
mod check;
#[cfg_attr(not(feature = "jwt"), path = "auth/jwt/off.rs")]
mod jwt;
#[cfg_attr(not(feature = "oidc"), path = "auth/oidc/off.rs")]
pub mod oidc;
#[cfg_attr(not(feature = "sign-in"), path = "auth/sign_in/off.rs")]
pub mod sign_in;

use std::sync::Arc;

use futures_util::future::join_all;

#[cfg(feature = "sign-in")]
use crate::OAuth;
use crate::{
    Caller,
    clock::Clock,
    secrets::SecretCache,
    text::{alternatives, separate_scopes},
    tool::caller::CallerRule,
};

pub use api_keys::ApiKeys;
use api_keys::SecretRotation;
use check::CredentialCheck;
pub use check::{AuthError, CredentialRequest, Unauthenticated};
#[cfg(feature = "jwt")]
pub use jwt::Jwt;
#[cfg(not(feature = "jwt"))]
use jwt::Jwt;
use oidc::Oidc;
use sign_in::SignIn;

/// The credentials that callers must send. `/health` never requires any.
///
/// Each kind has a type: [`ApiKeys`], [`Jwt`], [`Oidc`],
/// [`SignIn`] and [`Gateway`].
/// `Server::auth` takes one of them, or several that [`or`](Self::or)
/// combines:
///
/// ```
/// # use lambda_tools_accounts as lambda_tools;
/// use lambda_tools::{ApiKeys, Auth, Gateway};
///
/// let auth = Auth::from(ApiKeys::with_ids(["PARTNER_KEY"])).or(Gateway);
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Auth {
    keys: Vec<ApiKeys>,
    jwt: Vec<Jwt>,
    oidc: Vec<Oidc>,
    sign_in: Option<SignIn>,
    /// True if the platform's authentication is accepted.
    accepts_gateway: bool,
    /// The scopes that a token must have for every call.
    scopes: Vec<String>,
    restrictions: Vec<Restriction>,
}

/// The rules for some of the tools, of which one must apply to a caller.
#[derive(Clone, Debug)]
pub struct Restriction {
    /// The names of the tools, without versions, in which `*` is any text.
    pub pattern: String,
    /// The rules.
    pub rules: Vec<CallerRule>,
}

impl Auth {
    /// Lets anyone call, and ignores an `Authorization` header. Use this locally, or behind IAM or
    /// an API Gateway authorizer.
    pub fn none() -> Self {
        Self::default()
    }

    fn with(accept: impl FnOnce(&mut Self)) -> Self {
        let mut auth = Self::none();
        accept(&mut auth);
        auth
    }

    /// Accepts these credentials, too. Each kind keeps its rules; only [scopes](Self::scope) apply
    /// to all. [`Auth::none`] accepts no credentials, and adds nothing. Of several
    /// [`SignIn`]s, the last one counts.
    pub fn or(mut self, other: impl Into<Self>) -> Self {
        let other = other.into();
        self.keys.extend(other.keys);
        self.jwt.extend(other.jwt);
        self.oidc.extend(other.oidc);
        self.sign_in = other.sign_in.or(self.sign_in);
        self.accepts_gateway |= other.accepts_gateway;
        self.scopes.extend(other.scopes);
        self.restrictions.extend(other.restrictions);
        self
    }

    /// Adds a scope that the token must have for every call, in addition to the scopes of the
    /// [tool](lambda_tools_core::Tool::scope). It applies to JWTs of all kinds, on both sides of
    /// [`or`](Self::or), because clients are told one list of scopes; callers without a token, such
    /// as those with API keys, have no scopes and are not restricted. A text with spaces names
    /// several scopes.
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scopes.extend(separate_scopes(&scope.into()));
        self
    }

    /// Lets only some callers call the tools whose names, without versions, match a pattern: `*` in it
    /// is any text. The rules are those of [`Tool::allow`](lambda_tools_core::Tool::allow), of which
    /// one must apply to the caller. It only keeps callers out: whoever calls a tool needs a rule of
    /// the tool, if it has any, and one of each pattern that matches.
    pub fn restrict<S: AsRef<str>>(
        mut self,
        pattern: impl Into<String>,
        rules: impl IntoIterator<Item = S>,
    ) -> Self {
        let rules = rules.into_iter().map(|it| CallerRule::parse(it.as_ref()));
        self.restrictions.push(Restriction {
            pattern: pattern.into(),
            rules: rules.collect(),
        });
        self
    }

    /// Returns true if anyone may call.
    pub fn is_open(&self) -> bool {
        !(self.reads_headers() || self.accepts_gateway)
    }

    /// Returns true if callers may send credentials themselves.
    pub fn reads_headers(&self) -> bool {
        self.has_keys() || self.has_jwt() || self.has_issuers()
    }

    /// Returns the users on whose behalf the caller may call.
    pub fn users_of<'a>(&self, caller: &'a Caller) -> PermittedUsers<'a> {
        let user = match caller {
            Caller::AccessToken(token) => &token.user,
            Caller::Jwt { id, subject, .. } if self.jwt.iter().any(|it| it.names_users(id)) => {
                subject
            }
            _ => return PermittedUsers::Any,
        };
        let user = user.as_deref().filter(|user| !user.is_empty());
        user.map_or(PermittedUsers::None, PermittedUsers::Only)
    }

    /// Returns the limits on who may call some tools.
    pub fn restrictions(&self) -> &[Restriction] {
        &self.restrictions
    }

    /// Returns true if credentials that are accepted can tell that a rule applies.
    pub fn can_apply(&self, rule: &CallerRule) -> bool {
        let has_tokens = self.has_issuers() || self.accepts_gateway;
        let names_users = |id| self.jwt.iter().any(|it| it.names_users(id));
        let mut signers = self.jwt_secrets().map(SecretRotation::name);
        match rule {
            CallerRule::Group(_) => has_tokens,
            CallerRule::User(_) => has_tokens || signers.any(names_users),
            CallerRule::Caller(id) => {
                let mut keys = self.key_secrets().map(SecretRotation::name);
                keys.any(|it| **it == **id) || signers.any(|it| **it == **id)
            }
            CallerRule::Unknown(_) => false,
        }
    }

    /// Returns the id of a secret that is listed twice. Two callers who share a secret cannot be
    /// distinguished.
    pub fn duplicate_secret_id(&self) -> Option<&str> {
        let id = api_keys::duplicate_id(self.key_secrets());
        id.or_else(|| api_keys::duplicate_id(self.jwt_secrets()))
    }

    /// Returns the ids of all secrets that authentication reads.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.secret_lengths().map(|(id, _)| id)
    }

    /// Returns the same ids, each with the minimum length of its value in bytes.
    pub fn secret_lengths(&self) -> impl Iterator<Item = (&str, usize)> {
        let keys = self.key_secrets().map(|it| (it, api_keys::SHORTEST));
        let jwt = self.jwt_secrets().map(|it| (it, jwt::SHORTEST_SECRET));
        let all = keys.chain(jwt);
        all.flat_map(|(it, least)| it.ids().iter().map(move |id| (&**id, least)))
    }

    /// Returns the id of an API key, if it may be the name of a variable.
    pub fn key_variable(&self) -> Option<&str> {
        let id: &str = self.key_secrets().next()?.name();
        let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
        (id.chars().all(is_name) && !id.starts_with(|it: char| it.is_ascii_digit())).then_some(id)
    }

    fn key_secrets(&self) -> impl Iterator<Item = &SecretRotation> {
        self.keys.iter().flat_map(|keys| &keys.0)
    }

    fn jwt_secrets(&self) -> impl Iterator<Item = &SecretRotation> {
        self.jwt.iter().flat_map(Jwt::signers)
    }

    /// Returns true if the platform's authentication is accepted.
    pub fn accepts_gateway(&self) -> bool {
        self.accepts_gateway
    }

    /// Returns true if API keys are accepted.
    pub fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Returns true if JWTs that are signed with a secret are accepted.
    pub fn has_jwt(&self) -> bool {
        !self.jwt.is_empty()
    }

    /// Returns true if access tokens are accepted, of identity providers or of this server itself.
    pub fn has_issuers(&self) -> bool {
        !self.oidc.is_empty() || self.sign_in.is_some()
    }

    /// Returns the settings of sign-in.
    pub fn sign_in(&self) -> Option<&SignIn> {
        self.sign_in.as_ref()
    }

    /// Adds the provider that users sign in at to those of tools, and lets sign-in use their store and
    /// keys. Does nothing the second time.
    #[cfg(feature = "sign-in")]
    pub fn join_sign_in(&mut self, oauth: &mut Option<OAuth>) {
        let Some(sign_in) = &mut self.sign_in else {
            return;
        };
        let oauth = oauth.get_or_insert_with(|| OAuth::with([]));
        let provider = &sign_in.provider;
        if !oauth.providers.iter().any(|it| Arc::ptr_eq(it, provider)) {
            oauth.providers.push(Arc::clone(provider));
        }
        sign_in.key_ids.clone_from(&oauth.keys);
    }

    /// Returns the configured URLs of the issuers.
    pub fn issuer_urls(&self) -> impl Iterator<Item = &str> {
        self.oidc.iter().map(Oidc::url)
    }

    /// Returns a warning that every call will be rejected, because the store has none of the
    /// secrets that callers are checked with. `None` if a secret exists, or may exist but cannot be
    /// read.
    pub async fn warning_without_secrets(&self, secrets: &Arc<SecretCache>) -> Option<String> {
        // Callers that need no secret may still be accepted.
        if self.is_open() || self.has_issuers() || self.accepts_gateway {
            return None;
        }
        let keys = self.has_keys().then_some("API key");
        let secrets_of_jwt = self.has_jwt().then_some("JWT secret");
        let kinds: Vec<_> = keys.into_iter().chain(secrets_of_jwt).collect();
        let kinds = alternatives(&kinds);
        let ids: Vec<_> = self.secrets().collect();
        let Some(first) = ids.first() else {
            return Some(format!(
                "no {kinds} is configured: every call is rejected (TOOLS_API_KEY_IDS, \
                 TOOLS_JWT_SECRET_IDS)"
            ));
        };
        let results = secrets.read(&ids, None).await;
        if results.iter().any(|result| !matches!(result, Ok(None))) {
            return None;
        }
        let (ids, advice) = (alternatives(&ids), secrets.advice(first));
        Some(format!(
            "no {kinds} is stored: every call is rejected until the secret {ids} exists; {advice}"
        ))
    }

    /// Fetches the issuers' keys before the first call.
    pub async fn warm_up(&self, clock: &Clock) {
        let fetches = self.oidc.iter().map(|issuer| issuer.warm_up(clock));
        // Started together: one issuer that does not answer must not use up the time of the others.
        join_all(fetches).await;
    }
}

impl From<ApiKeys> for Auth {
    fn from(keys: ApiKeys) -> Self {
        Self::with(|it| it.keys.push(keys))
    }
}

impl From<Jwt> for Auth {
    fn from(jwt: Jwt) -> Self {
        Self::with(|it| it.jwt.push(jwt))
    }
}

impl From<Oidc> for Auth {
    fn from(oidc: Oidc) -> Self {
        Self::with(|it| it.oidc.push(oidc))
    }
}

impl From<SignIn> for Auth {
    fn from(sign_in: SignIn) -> Self {
        Self::with(|it| it.sign_in = Some(sign_in))
    }
}

impl From<Gateway> for Auth {
    fn from(_: Gateway) -> Self {
        Self::with(|it| it.accepts_gateway = true)
    }
}

/// The authentication of API Gateway (with a JWT, Cognito or Lambda authorizer) or of IAM, which
/// callers must have passed. The identity is read from the event's request context, never from
/// headers. An event without one is rejected.
///
/// The user of a JWT that API Gateway has verified is the call's user, as with
/// [`Oidc`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Gateway;

/// The users on whose behalf a caller may call.
#[derive(Clone, Copy)]
pub enum PermittedUsers<'a> {
    /// Anyone: the caller is trusted to name them.
    Any,
    /// This one, whom the credentials name.
    Only(&'a str),
    /// Nobody: the credentials should name a user, and do not.
    None,
}
