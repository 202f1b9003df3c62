//! Who may call this server.
//!
//! Asked before anything else of a request is looked at, its body included, so that a stranger
//! learns nothing about the tools. Reference: OXP 1.0, Server Authentication.

use http::{HeaderMap, HeaderName, header::AUTHORIZATION};
use subtle::ConstantTimeEq;

use crate::{Secret, rejection::Rejection};

const API_KEY: HeaderName = HeaderName::from_static("oxp-api-key");

/// Who may call. `/health` is open whatever is chosen.
///
/// ```
/// use lambda_tools::{Auth, Server, Toolkit};
///
/// let keys = Auth::api_keys(["the key of today", "the key of tomorrow"]);
/// let server = Server::new(Toolkit::new([])?).auth(keys);
/// # Ok::<(), lambda_tools::BuildError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Auth {
    /// `None`: everybody may call.
    keys: Option<Vec<Secret>>,
}

impl Auth {
    /// Everybody may call; an `Authorization` header is ignored. For local use, and behind IAM or
    /// an authorizer of API Gateway.
    #[must_use]
    pub fn none() -> Self {
        Self { keys: None }
    }

    /// Callers must send one of these keys, as `OXP-API-Key` or, as the published clients do, as
    /// `Authorization: Bearer`. Several keys are valid at once, so that they can be rotated.
    /// Without any key nobody may call.
    #[must_use]
    pub fn api_keys<K: Into<Secret>>(keys: impl IntoIterator<Item = K>) -> Self {
        Self {
            // An empty key is a variable that was not set, and no key.
            keys: Some(
                keys.into_iter()
                    .map(Into::into)
                    .filter(|key: &Secret| !key.expose().is_empty())
                    .collect(),
            ),
        }
    }

    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), Rejection> {
        let Some(keys) = &self.keys else {
            return Ok(());
        };
        let given = key_in(headers).map_err(Rejection::Unauthenticated)?;
        // All keys are compared, whichever fits, and each in a time that does not depend on how
        // much of it fits.
        let fits = |key: &Secret| key.expose().as_bytes().ct_eq(given);
        let any = |found, key| found | fits(key);
        if keys.iter().fold(subtle::Choice::from(0), any).into() {
            Ok(())
        } else {
            Err(Rejection::Unauthenticated("the API key is not valid"))
        }
    }
}

fn key_in(headers: &HeaderMap) -> Result<&[u8], &'static str> {
    if let Some(key) = only(headers, &API_KEY)? {
        return Ok(key);
    }
    let credentials = only(headers, &AUTHORIZATION)?.ok_or("there are no credentials")?;
    // RFC 9110, 11.1: the scheme is case-insensitive.
    match credentials.split_at_checked(7) {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case(b"bearer ") => Ok(key.trim_ascii()),
        _ => Err("the Authorization header is no bearer token"),
    }
}

fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a [u8]>, &'static str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (_, Some(_)) => Err("the credentials are there twice"),
        (first, None) => Ok(first.map(http::HeaderValue::as_bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(auth: &Auth, headers: &[(&'static str, &'static str)]) -> bool {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), value.parse().unwrap())
        };
        let mut map = HeaderMap::new();
        map.extend(headers.iter().map(pair));
        auth.check(&map).is_ok()
    }

    #[test]
    fn a_key_is_taken_in_either_header_and_any_of_several_fits() {
        let auth = Auth::api_keys([Secret::from("one"), Secret::from("two")]);
        for headers in [
            [("oxp-api-key", "one")],
            [("oxp-api-key", "two")],
            [("authorization", "Bearer one")],
            [("authorization", "bearer  two ")],
        ] {
            assert!(allows(&auth, &headers), "{headers:?}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let auth = Auth::api_keys([Secret::from("one")]);
        for headers in [
            &[][..],
            &[("oxp-api-key", "")],
            &[("oxp-api-key", "on")],
            &[("oxp-api-key", "One")],
            &[("authorization", "one")],
            &[("authorization", "Bearer")],
            &[("authorization", "Bearer ")],
            &[("authorization", "Basic one")],
            &[("authorization", "é")],
            &[("oxp-api-key", "one"), ("oxp-api-key", "one")],
            &[("oxp-api-key", "wrong"), ("authorization", "Bearer one")],
        ] {
            assert!(!allows(&auth, headers), "{headers:?}");
        }
        for keys in [vec![], vec![""]] {
            assert!(!allows(&Auth::api_keys(keys), &[("oxp-api-key", "")]));
        }
    }

    #[test]
    fn without_authentication_no_header_matters() {
        for headers in [&[][..], &[("authorization", "x")], &[("oxp-api-key", "x")]] {
            assert!(allows(&Auth::none(), headers));
        }
    }
}
