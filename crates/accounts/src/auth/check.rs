//! Authentication of a request's caller, and the scopes that a token must have for a call.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, header::AUTHORIZATION};

use super::{Auth, PermittedUsers, api_keys};
use crate::{
    Caller, Secret, Toolkit,
    clock::Clock,
    secrets::{ReadResult, SecretCache},
    text::matches,
    tool::{parts::ToolParts, toolkit::ToolEntry},
    wire,
};

const API_KEY: HeaderName = HeaderName::from_static(wire::oxp::API_KEY);

/// A request whose caller is to be authenticated.
pub struct CredentialRequest<'a> {
    /// The headers of the request.
    pub headers: &'a HeaderMap,
    /// The caller that the platform has verified, for [`Gateway`](super::Gateway).
    pub verified: Option<&'a Caller>,
    /// The clock that the times in tokens are compared with.
    pub clock: &'a Clock,
    /// The time that the request has left.
    pub left: Option<Duration>,
    /// The server's own URL, for which access tokens are issued.
    pub server_url: Option<&'a str>,
}

/// The reason why a request was not authenticated.
#[derive(Debug)]
pub enum AuthError {
    /// The credentials are missing or invalid.
    Unauthenticated(Unauthenticated),
    /// The credentials cannot be checked, because a secret or a public key cannot be read, and
    /// cannot be read again before this time has passed.
    Undecided(Duration),
    /// The token names a key that is not among its issuer's, which anyone can make up. The issuer may
    /// have added it, but cannot be asked before this time has passed.
    UnknownKey(Duration),
}

/// The reason why credentials were not accepted.
#[derive(Debug)]
pub struct Unauthenticated {
    /// For the log only.
    pub reason: &'static str,
    /// True if there are credentials, but they are not valid.
    pub is_invalid: bool,
}

impl AuthError {
    /// Returns the error of a request without credentials, with a reason for the log.
    pub fn missing(reason: &'static str) -> Self {
        let is_invalid = false;
        Self::Unauthenticated(Unauthenticated { reason, is_invalid })
    }

    pub(super) fn invalid(reason: &'static str) -> Self {
        let is_invalid = true;
        Self::Unauthenticated(Unauthenticated { reason, is_invalid })
    }
}

/// The check of a request's credentials, with the reason for a rejection.
#[derive(Default)]
pub(super) struct CredentialCheck {
    /// True if a secret that could have matched is temporarily unreadable.
    pub(super) is_undecided: bool,
    pub(super) reason: Option<&'static str>,
}

impl CredentialCheck {
    /// Returns the value of a secret with at least this number of bytes. If there is none, logs the
    /// reason.
    pub(super) fn secret(&mut self, id: &str, least: usize, read: ReadResult) -> Option<Secret> {
        let why = match read {
            Ok(Some(secret)) if secret.expose().trim().len() >= least => return Some(secret),
            Ok(Some(_)) => {
                format!("has fewer than {least} bytes: `openssl rand -hex 32` makes one")
            }
            Ok(None) => "is not in the store".to_owned(),
            Err(error) => {
                self.is_undecided |= error.is_temporary();
                format!("cannot be read: {error}")
            }
        };
        tracing::error!(secret = id, "a secret for authentication {why}");
        None
    }

    pub(super) fn into_error(self) -> AuthError {
        if self.is_undecided {
            return AuthError::Undecided(Duration::ZERO);
        }
        AuthError::invalid(self.reason.unwrap_or("the credentials are not valid"))
    }
}

/// The credentials in a request.
struct Credentials<'a> {
    value: &'a [u8],
    /// True for those in `Authorization`.
    is_bearer: bool,
}

impl Auth {
    /// Authenticates the caller.
    pub async fn check(
        &self,
        request: &CredentialRequest<'_>,
        secrets: &Arc<SecretCache>,
    ) -> Result<Caller, AuthError> {
        if self.is_open() {
            return Ok(Caller::Anyone);
        }
        if self.accepts_gateway
            && let Some(caller) = request.verified
        {
            return Ok(caller.clone());
        }
        let presented = self.credentials_in(request.headers);
        // An API key may be in either header.
        #[cfg_attr(not(feature = "jwt"), expect(unused_variables))]
        let Credentials { value, is_bearer } = presented.map_err(AuthError::missing)?;
        let mut check = CredentialCheck::default();
        #[cfg(feature = "sign-in")]
        if is_bearer
            && let Some(sign_in) = self.sign_in()
            && let Some(result) = sign_in.identify(value, request, secrets).await
        {
            return result;
        }
        #[cfg(feature = "oidc")]
        if is_bearer
            && self.has_issuers()
            && let Some(result) =
                super::oidc::identify(&self.oidc, value, request, &mut check).await
        {
            return result;
        }
        let ids: Vec<_> = self.secrets().collect();
        if ids.is_empty() {
            return Err(check.into_error());
        }
        // In the order of the ids: those of API keys, then those of signers.
        let mut reads = secrets.read(&ids, request.left).await.into_iter();
        if self.has_keys()
            && let Some(caller) = api_keys::identify(&self.keys, value, &mut reads, &mut check)
        {
            return Ok(caller);
        }
        #[cfg(feature = "jwt")]
        if is_bearer && self.has_jwt() {
            let now = request.clock.now();
            if let Some(caller) = super::jwt::identify(&self.jwt, value, reads, now, &mut check) {
                return Ok(caller);
            }
        }
        Err(check.into_error())
    }

    /// Returns the credentials. If API keys are accepted, `OXP-API-Key` takes precedence over
    /// `Authorization`.
    fn credentials_in<'a>(&self, headers: &'a HeaderMap) -> Result<Credentials<'a>, &'static str> {
        if self.has_keys()
            && let Some(value) = single_value(headers, &API_KEY)?
        {
            let is_bearer = false;
            return Ok(Credentials { value, is_bearer });
        }
        let header =
            single_value(headers, &AUTHORIZATION)?.ok_or("the request has no credentials")?;
        // RFC 9110, 11.1: the scheme is case-insensitive.
        match header.split_at_checked(7) {
            Some((scheme, value)) if scheme.eq_ignore_ascii_case(b"bearer ") => {
                let (value, is_bearer) = (value.trim_ascii(), true);
                Ok(Credentials { value, is_bearer })
            }
            _ => Err("the Authorization header has no bearer token"),
        }
    }

    /// Returns the scopes that every call requires.
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Returns the scopes to ask the user for: those that the call requires, and those that the
    /// token already has and that other tools require, so that a new token does not lose them.
    /// `None` if the caller has all that are required, or is not restricted by scopes.
    pub fn missing_scopes(
        &self,
        caller: &Caller,
        tool: &ToolParts,
        toolkit: &Toolkit,
    ) -> Option<Vec<String>> {
        let granted = caller.scopes()?;
        if self.has_scopes(caller, tool) {
            return None;
        }
        let required = self.scopes.iter().chain(&tool.scopes).map(String::as_str);
        let known = self.known_scopes(toolkit);
        let kept = known.filter(|scope| is_granted(scope, granted));
        let wanted: BTreeSet<_> = required.chain(kept).collect();
        Some(wanted.into_iter().map(str::to_owned).collect())
    }

    /// Returns true if the caller's token has the scopes of a tool, and those of every call.
    fn has_scopes(&self, caller: &Caller, tool: &ToolParts) -> bool {
        let Some(granted) = caller.scopes() else {
            return true;
        };
        let mut required = self.scopes.iter().chain(&tool.scopes);
        required.all(|scope| is_granted(scope, granted))
    }

    /// Returns true if the caller has the scopes of a tool, and is not kept out by rules.
    pub fn may_call(&self, caller: &Caller, entry: &ToolEntry) -> bool {
        self.has_scopes(caller, &entry.tool) && self.allows(caller, entry)
    }

    /// Returns true if no rule keeps the caller out, whatever its scopes.
    pub fn allows(&self, caller: &Caller, entry: &ToolEntry) -> bool {
        let own = entry.tool.allowed.as_deref();
        if own.is_none() && self.restrictions().is_empty() {
            return true;
        }
        let user = match self.users_of(caller) {
            PermittedUsers::Only(user) => Some(user),
            PermittedUsers::Any | PermittedUsers::None => None,
        };
        let name = entry.id.qualified();
        let others = self.restrictions().iter();
        let others = others.filter(|it| matches(&it.pattern, name));
        let mut all = own.into_iter().chain(others.map(|it| &*it.rules));
        all.all(|rules| rules.iter().any(|it| it.applies_to(caller, user)))
    }

    /// Returns the scopes that any call requires, some more than once.
    pub fn known_scopes<'a>(&'a self, toolkit: &'a Toolkit) -> impl Iterator<Item = &'a str> {
        let of_tools = toolkit.all().flat_map(|entry| &entry.tool.scopes);
        self.scopes.iter().chain(of_tools).map(String::as_str)
    }
}

fn single_value<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a [u8]>, &'static str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (_, Some(_)) => Err("a credential header has several values"),
        (first, None) => Ok(first.map(http::HeaderValue::as_bytes)),
    }
}

/// Returns true if a scope is granted. Azure's clients ask for
/// `https://tools.example/mcp/mail.read`, and get a token for that resource with the scope
/// `mail.read`. Its audience has been checked, so no other resource's scope of that name can be
/// meant.
fn is_granted(required: &str, granted: &[String]) -> bool {
    let path = required.split_once("://").map(|(_, path)| path);
    let short = path.and_then(|path| path.rsplit('/').next());
    let is_it = |scope: &String| scope == required || Some(&**scope) == short;
    granted.iter().any(is_it)
}
