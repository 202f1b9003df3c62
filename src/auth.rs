//! Authentication of callers.
//!
//! Callers are authenticated before anything else in a request is processed, even the body, so that
//! a stranger learns nothing about the tools. Reference: OXP 1.0, Server Authentication.

mod attempt;
#[cfg(feature = "jwt")]
mod jwt;
mod rotation;
mod summary;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::{Caller, secrets::SecretCache};
use http::{HeaderMap, HeaderName, header::AUTHORIZATION};

use attempt::CredentialCheck;
#[cfg(feature = "jwt")]
use jwt::JwtVerifier;
use rotation::SecretRotation;

const API_KEY: HeaderName = HeaderName::from_static("oxp-api-key");

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
    #[cfg(feature = "jwt")]
    jwt: Option<JwtVerifier>,
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
    /// differ by a minute. If the server has [audiences](Self::audience), the `aud` claim must name
    /// one of them; otherwise there must be no `aud` claim (RFC 7519, 4.1.3; RFC 8725, 3.9).
    #[cfg(feature = "jwt")]
    #[must_use]
    pub fn jwt_secret_ids<I: AsRef<str>>(ids: impl IntoIterator<Item = I>) -> Self {
        let mut auth = Self::none();
        auth.jwt = Some(JwtVerifier::new(rotations(ids)));
        auth
    }

    /// Adds an audience that the `aud` claim of a JWT may name.
    #[cfg(feature = "jwt")]
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        if let Some(jwt) = &mut self.jwt {
            jwt.audiences.push(audience.into());
        }
        self
    }

    /// Uses the `sub` claim of a JWT as the call's user: tools get it as
    /// [`Context::user_id`](crate::Context::user_id). A call that names another user is rejected,
    /// and so is a call that names any user if its token has no `sub`. Callers with API keys may
    /// name any user.
    #[cfg(feature = "jwt")]
    #[must_use]
    pub fn subject_is_user(mut self) -> Self {
        if let Some(jwt) = &mut self.jwt {
            jwt.subject_is_user = true;
        }
        self
    }

    /// Also accepts the credentials that `other` accepts. [`Auth::none`] accepts none, and adds
    /// nothing.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        if let Some(keys) = other.keys {
            self.keys.get_or_insert_default().extend(keys);
        }
        #[cfg(feature = "jwt")]
        if let Some(other) = other.jwt {
            match &mut self.jwt {
                Some(jwt) => jwt.merge(other),
                jwt @ None => *jwt = Some(other),
            }
        }
        self
    }

    /// Returns true if anyone may call.
    pub(crate) fn is_open(&self) -> bool {
        self.keys.is_none() && !self.has_jwt()
    }

    /// The users on whose behalf the caller may call.
    #[cfg(feature = "jwt")]
    pub(crate) fn users_of<'a>(&self, caller: &'a Caller) -> PermittedUsers<'a> {
        let is_bound = self.jwt.as_ref().is_some_and(|jwt| jwt.subject_is_user);
        match caller {
            Caller::Jwt { subject, .. } if is_bound => {
                let subject = subject.as_deref().filter(|subject| !subject.is_empty());
                subject.map_or(PermittedUsers::None, PermittedUsers::Only)
            }
            _ => PermittedUsers::Any,
        }
    }

    #[cfg(not(feature = "jwt"))]
    #[expect(clippy::unused_self, reason = "the same with and without the feature")]
    pub(crate) fn users_of<'a>(&self, _: &'a Caller) -> PermittedUsers<'a> {
        PermittedUsers::Any
    }

    /// The id of a secret that is listed twice. Two callers who share a secret cannot be
    /// distinguished.
    pub(crate) fn duplicate_secret_id(&self) -> Option<&str> {
        let id = self.keys.as_deref().and_then(rotation::duplicate_id);
        #[cfg(feature = "jwt")]
        let id = id.or_else(|| rotation::duplicate_id(&self.jwt.as_ref()?.secrets));
        id
    }

    /// The ids of all secrets that authentication reads.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        let rotations = self.keys.iter().flatten();
        #[cfg(feature = "jwt")]
        let rotations = rotations.chain(self.jwt.iter().flat_map(|jwt| &jwt.secrets));
        rotations.flat_map(SecretRotation::ids).map(|id| &**id)
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

    /// Authenticates the caller.
    pub(crate) async fn check(
        &self,
        headers: &HeaderMap,
        secrets: &Arc<SecretCache>,
        now: SystemTime,
        left: Option<Duration>,
    ) -> Result<Caller, AuthError> {
        if self.is_open() {
            return Ok(Caller::Anyone);
        }
        let credentials = self
            .credentials_in(headers)
            .map_err(AuthError::Unauthenticated)?;
        let ids: Vec<_> = self.secrets().collect();
        let mut reads = secrets.read(&ids, left).await;
        let key_count = self
            .keys
            .iter()
            .flatten()
            .flat_map(SecretRotation::ids)
            .count();
        let jwt_reads = reads.split_off(key_count);
        let mut check = CredentialCheck::default();
        if let Some(keys) = &self.keys
            && let Some(id) = check.api_key(credentials.value, keys, reads)
        {
            return Ok(Caller::ApiKey { id });
        }
        #[cfg(feature = "jwt")]
        if let (Some(jwt), true) = (&self.jwt, credentials.is_bearer)
            && let Some(caller) = check.token(credentials.value, jwt, jwt_reads, now)
        {
            return Ok(caller);
        }
        #[cfg(not(feature = "jwt"))]
        let _ = (now, jwt_reads, credentials.is_bearer);
        Err(check.into_error())
    }

    /// If API keys are accepted, `OXP-API-Key` takes precedence over `Authorization`.
    fn credentials_in<'a>(
        &self,
        headers: &'a HeaderMap,
    ) -> Result<PresentedCredential<'a>, &'static str> {
        if self.keys.is_some()
            && let Some(value) = single_value(headers, &API_KEY)?
        {
            let is_bearer = false;
            return Ok(PresentedCredential { value, is_bearer });
        }
        let header =
            single_value(headers, &AUTHORIZATION)?.ok_or("the request has no credentials")?;
        // RFC 9110, 11.1: the scheme is case-insensitive.
        match header.split_at_checked(7) {
            Some((scheme, value)) if scheme.eq_ignore_ascii_case(b"bearer ") => {
                Ok(PresentedCredential {
                    value: value.trim_ascii(),
                    is_bearer: true,
                })
            }
            _ => Err("the Authorization header has no bearer token"),
        }
    }
}

/// The users on whose behalf a caller may call.
#[derive(Clone, Copy)]
pub(crate) enum PermittedUsers<'a> {
    Any,
    #[cfg_attr(
        not(feature = "jwt"),
        expect(dead_code, reason = "only JWTs name users")
    )]
    Only(&'a str),
    #[cfg_attr(
        not(feature = "jwt"),
        expect(dead_code, reason = "only JWTs name users")
    )]
    None,
}

/// The reason why a request was not authenticated.
#[derive(Debug)]
pub(crate) enum AuthError {
    /// The credentials are missing or invalid. The text is for the log only.
    Unauthenticated(&'static str),
    /// The credentials cannot be checked, because a secret cannot be read.
    Undecided,
}

struct PresentedCredential<'a> {
    value: &'a [u8],
    is_bearer: bool,
}

fn rotations<I: AsRef<str>>(ids: impl IntoIterator<Item = I>) -> Vec<SecretRotation> {
    let ids = ids.into_iter();
    ids.filter_map(|ids| SecretRotation::parse(ids.as_ref()))
        .collect()
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
