//! Who may call this server.
//!
//! Asked before anything else of a request is looked at, its body included, so that a stranger
//! learns nothing about the tools. Reference: OXP 1.0, Server Authentication.

mod attempt;
#[cfg(feature = "jwt")]
mod jwt;
mod rotation;

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

/// Who may call. `/health` is open whatever is chosen.
///
/// Keys are secrets like those of tools: here are their ids, the values are in the server's
/// [store](crate::secrets).
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
    /// The ids of the secrets that hold keys, by caller. `None`: there are no keys.
    keys: Option<Vec<SecretRotation>>,
    #[cfg(feature = "jwt")]
    jwt: Option<JwtVerifier>,
}

impl Auth {
    /// Everybody may call; an `Authorization` header is ignored. For local use, and behind IAM or
    /// an authorizer of API Gateway.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Callers must send an API key, as `OXP-API-Key` or, as the published clients do, as
    /// `Authorization: Bearer`. These are the ids of the secrets whose values are the keys, never
    /// the keys themselves. Each is a caller of its own: calls that are repeated, and what users
    /// have allowed, are kept apart. `"A|A_NEXT"` names two keys of one caller, who is known as
    /// `A` whichever it sends, so that a key can be rotated. Without any nobody may call.
    #[must_use]
    pub fn api_key_ids<I: AsRef<str>>(ids: impl IntoIterator<Item = I>) -> Self {
        let mut auth = Self::none();
        auth.keys = Some(rotations(ids));
        auth
    }

    /// Callers must send a JWT as `Authorization: Bearer`, signed with HS256. These are the ids
    /// of the secrets whose values sign. RFC 7518, 3.2: they have at least 32 bytes. Each is a
    /// signer of its own, and the `sub` claim names a caller among those of its signer: the same
    /// `sub` of two signers is two callers, with users and grants of their own. `"A|A_NEXT"` names
    /// two secrets of one signer, for rotation.
    ///
    /// A token must have an `exp` claim and be used before it, and not before its `nbf`; clocks
    /// may differ by a minute. Where the server has [audiences](Self::audience), the `aud` claim
    /// must name one of them; where it has none, there must be no `aud` claim (RFC 7519, 4.1.3;
    /// RFC 8725, 3.9).
    #[cfg(feature = "jwt")]
    #[must_use]
    pub fn jwt_secret_ids<I: AsRef<str>>(ids: impl IntoIterator<Item = I>) -> Self {
        let mut auth = Self::none();
        auth.jwt = Some(JwtVerifier::new(rotations(ids)));
        auth
    }

    /// Names an audience that JWTs may be meant for. Several calls name several.
    #[cfg(feature = "jwt")]
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        if let Some(jwt) = &mut self.jwt {
            jwt.audiences.push(audience.into());
        }
        self
    }

    /// Takes the `sub` claim of a JWT for the user on whose behalf it calls: tools get it as
    /// [`Context::user_id`](crate::Context::user_id). A call that names another user is refused, and
    /// one with a token without `sub` that names any. Callers with API keys may name any.
    #[cfg(feature = "jwt")]
    #[must_use]
    pub fn subject_is_user(mut self) -> Self {
        if let Some(jwt) = &mut self.jwt {
            jwt.subject_is_user = true;
        }
        self
    }

    /// Accepts the credentials that the other asks for as well. [`Auth::none`] asks for none, and
    /// adds nothing.
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

    /// Whether everybody may call.
    pub(crate) fn is_open(&self) -> bool {
        self.keys.is_none() && !self.has_jwt()
    }

    /// For whom the caller may call.
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

    /// A secret that is named twice: two callers would share it, and be one.
    pub(crate) fn shared_secret(&self) -> Option<&str> {
        let keys = self.keys.as_deref().and_then(rotation::named_twice);
        #[cfg(feature = "jwt")]
        let keys = keys.or_else(|| rotation::named_twice(&self.jwt.as_ref()?.secrets));
        keys
    }

    /// The ids of all secrets that it reads.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        let keys = self.keys.iter().flatten();
        #[cfg(feature = "jwt")]
        let keys = keys.chain(self.jwt.iter().flat_map(|jwt| &jwt.secrets));
        keys.flat_map(SecretRotation::ids).map(|id| &**id)
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

    /// Tells who calls.
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
        let of_keys = self
            .keys
            .iter()
            .flatten()
            .flat_map(SecretRotation::ids)
            .count();
        let of_jwt = reads.split_off(of_keys);
        let mut attempt = CredentialCheck::default();
        if let Some(keys) = &self.keys
            && let Some(id) = attempt.key(credentials.value, keys, reads)
        {
            return Ok(Caller::ApiKey { id });
        }
        #[cfg(feature = "jwt")]
        if let (Some(jwt), true) = (&self.jwt, credentials.is_bearer)
            && let Some(caller) = attempt.token(credentials.value, jwt, of_jwt, now)
        {
            return Ok(caller);
        }
        #[cfg(not(feature = "jwt"))]
        let _ = (now, of_jwt, credentials.is_bearer);
        Err(attempt.refused())
    }

    /// Where keys are taken, `OXP-API-Key` decides if it is there.
    fn credentials_in<'a>(
        &self,
        headers: &'a HeaderMap,
    ) -> Result<PresentedCredential<'a>, &'static str> {
        if self.keys.is_some()
            && let Some(value) = only(headers, &API_KEY)?
        {
            let is_bearer = false;
            return Ok(PresentedCredential { value, is_bearer });
        }
        let header = only(headers, &AUTHORIZATION)?.ok_or("there are no credentials")?;
        // RFC 9110, 11.1: the scheme is case-insensitive.
        match header.split_at_checked(7) {
            Some((scheme, value)) if scheme.eq_ignore_ascii_case(b"bearer ") => {
                Ok(PresentedCredential {
                    value: value.trim_ascii(),
                    is_bearer: true,
                })
            }
            _ => Err("the Authorization header is no bearer token"),
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

/// Why nobody is let in.
#[derive(Debug)]
pub(crate) enum AuthError {
    /// The caller is nobody who may call; why is for the log only.
    Unauthenticated(&'static str),
    /// Whether the caller may call cannot be told: what it takes to tell cannot be read.
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

fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a [u8]>, &'static str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (_, Some(_)) => Err("the credentials are there twice"),
        (first, None) => Ok(first.map(http::HeaderValue::as_bytes)),
    }
}
