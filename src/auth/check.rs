//! Authentication of a request's caller.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, header::AUTHORIZATION};

use super::{Auth, api_keys, attempt::CredentialCheck, jwt, oidc};
use crate::{Caller, arrival::Invocation, clock::Clock, secrets::SecretCache, wire};

const API_KEY: HeaderName = HeaderName::from_static(wire::oxp::API_KEY);

/// A request whose caller is to be authenticated.
pub(crate) struct CredentialRequest<'a> {
    pub(crate) headers: &'a HeaderMap,
    pub(crate) invocation: &'a Invocation,
    pub(crate) clock: &'a Clock,
    /// The time that the request has left.
    pub(crate) left: Option<Duration>,
    /// The server's own URL, for which access tokens are issued.
    pub(crate) server_url: Option<&'a str>,
}

/// The reason why a request was not authenticated.
#[derive(Debug)]
pub(crate) enum AuthError {
    /// The credentials are missing or invalid.
    Unauthenticated(Unauthenticated),
    /// The credentials cannot be checked, because a secret or a public key cannot be read, and
    /// cannot be read again before this time has passed.
    Undecided(Duration),
    /// The token names a key that is not among its issuer's, which anyone can make up. The issuer may
    /// have added it, but cannot be asked before this time has passed.
    #[cfg_attr(
        not(feature = "oidc"),
        expect(dead_code, reason = "only access tokens name keys")
    )]
    UnknownKey(Duration),
}

/// The reason why credentials were not accepted.
#[derive(Debug)]
pub(crate) struct Unauthenticated {
    /// For the log only.
    pub(crate) reason: &'static str,
    /// True if there are credentials, but they are not valid.
    pub(crate) is_invalid: bool,
}

impl AuthError {
    pub(crate) fn missing(reason: &'static str) -> Self {
        let is_invalid = false;
        Self::Unauthenticated(Unauthenticated { reason, is_invalid })
    }

    pub(super) fn invalid(reason: &'static str) -> Self {
        let is_invalid = true;
        Self::Unauthenticated(Unauthenticated { reason, is_invalid })
    }
}

impl Auth {
    /// Authenticates the caller.
    pub(crate) async fn check(
        &self,
        request: &CredentialRequest<'_>,
        secrets: &Arc<SecretCache>,
    ) -> Result<Caller, AuthError> {
        if self.is_open() {
            return Ok(Caller::Anyone);
        }
        if self.accepts_gateway
            && let Some(caller) = &request.invocation.verified
        {
            return Ok(caller.clone());
        }
        let presented = self.credentials_in(request.headers);
        let (value, is_bearer) = presented.map_err(AuthError::missing)?;
        let mut check = CredentialCheck::default();
        if is_bearer
            && let Some(sign_in) = self.sign_in()
            && let Some(result) = sign_in.identify(value, request, secrets).await
        {
            return result;
        }
        if is_bearer
            && self.has_issuers()
            && let Some(result) = oidc::identify(&self.oidc, value, request, &mut check).await
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
        if is_bearer && self.has_jwt() {
            let now = request.clock.now();
            if let Some(caller) = jwt::identify(&self.jwt, value, reads, now, &mut check) {
                return Ok(caller);
            }
        }
        Err(check.into_error())
    }

    /// Returns the credentials, and true if they are a bearer token. If API keys are accepted,
    /// `OXP-API-Key` takes precedence over `Authorization`.
    fn credentials_in<'a>(&self, headers: &'a HeaderMap) -> Result<(&'a [u8], bool), &'static str> {
        if self.has_keys()
            && let Some(value) = single_value(headers, &API_KEY)?
        {
            return Ok((value, false));
        }
        let header =
            single_value(headers, &AUTHORIZATION)?.ok_or("the request has no credentials")?;
        // RFC 9110, 11.1: the scheme is case-insensitive.
        match header.split_at_checked(7) {
            Some((scheme, value)) if scheme.eq_ignore_ascii_case(b"bearer ") => {
                Ok((value.trim_ascii(), true))
            }
            _ => Err("the Authorization header has no bearer token"),
        }
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
