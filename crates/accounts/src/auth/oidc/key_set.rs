//! The public keys of an issuer, fetched from the URL that its metadata names.

use std::{sync::Arc, time::Duration};

use jsonwebtoken::{
    Algorithm, DecodingKey,
    errors::ErrorKind,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse},
};
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use super::UnverifiedToken;
use crate::{
    auth::jwt::signed_claims,
    http_client::{discover, get, is_safe, max_age},
};

/// The maximum number of keys. Issuers publish a handful.
const MOST_KEYS: usize = 100;
/// The maximum number of keys that one token is checked with.
const MOST_TRIED: usize = 8;

/// The keys of an issuer.
#[derive(Debug)]
pub struct KeySet {
    /// The issuer's own spelling of its URL.
    pub(in crate::auth) issuer: Arc<str>,
    keys: Vec<IssuerKey>,
}

#[derive(Debug)]
struct IssuerKey {
    id: Option<String>,
    /// RFC 8725, 3.1: the algorithm belongs to the key; the token must use the same.
    algorithm: Algorithm,
    key: DecodingKey,
}

/// The part of an issuer's metadata that is needed: RFC 8414, section 2.
#[derive(Deserialize)]
struct IssuerMetadata {
    issuer: String,
    jwks_uri: String,
}

#[derive(Deserialize)]
struct KeyDocument<'a> {
    #[serde(borrow)]
    keys: Vec<&'a RawValue>,
}

impl KeySet {
    /// Fetches the keys, and the time for which they may be cached.
    pub(super) async fn fetch(url: &str) -> Result<(Self, Option<Duration>), String> {
        let metadata = discover(url, |it: &IssuerMetadata| &it.issuer).await;
        let IssuerMetadata { issuer, jwks_uri } = metadata.map_err(|it| it.to_string())?;
        if !is_as_safe(url, &jwks_uri) {
            return Err("the issuer's jwks_uri is not an https:// URL".to_owned());
        }
        let fetched = get(&jwks_uri).await.map_err(|it| it.to_string())?;
        let status = fetched.status();
        if !status.is_success() {
            return Err(format!("the jwks_uri returned the status {status}"));
        }
        let set = Self::parse(issuer.into(), fetched.body())?;
        Ok((set, max_age(fetched.headers())))
    }

    /// Reads the keys in a JSON Web Key Set: RFC 7517, section 5.
    pub fn parse(issuer: Arc<str>, body: &[u8]) -> Result<Self, String> {
        let document: KeyDocument<'_> = serde_json::from_slice(body)
            .map_err(|_| "the response of the jwks_uri is not a JSON Web Key Set".to_owned())?;
        let keys = document.keys.into_iter();
        let keys: Vec<_> = keys.filter_map(IssuerKey::parse).take(MOST_KEYS).collect();
        if keys.is_empty() {
            return Err("the issuer has no key of a supported algorithm".to_owned());
        }
        Ok(Self { issuer, keys })
    }

    pub(super) fn has_key(&self, id: &str) -> bool {
        self.keys.iter().any(|key| key.id.as_deref() == Some(id))
    }

    /// Returns the claims of a token of this issuer that one of the keys has signed.
    pub(in crate::auth) fn verify_from_issuer(
        &self,
        token: &UnverifiedToken<'_>,
    ) -> Result<Map<String, Value>, &'static str> {
        let id = token.key_id.as_deref();
        let keys = self.keys.iter();
        let candidates = keys.filter(|key| id.is_none() || key.id.as_deref() == id);
        let mut reason = "the JWT is signed with a key that its issuer does not have";
        for key in candidates.take(MOST_TRIED) {
            match key.verify(token) {
                Ok(claims) if token.issuer == *self.issuer => return Ok(claims),
                Ok(_) => return Err("the token's issuer is spelled differently"),
                Err(why) => reason = why,
            }
        }
        Err(reason)
    }
}

impl IssuerKey {
    /// Parses a key. `None` if it is not for signatures, or of an algorithm that is not supported.
    fn parse(json: &RawValue) -> Option<Self> {
        let jwk: Jwk = serde_json::from_str(json.get()).ok()?;
        let common = &jwk.common;
        let is_for_signatures =
            matches!(common.public_key_use, None | Some(PublicKeyUse::Signature));
        let operations = common.key_operations.as_deref();
        let may_verify = operations.is_none_or(|all| all.contains(&KeyOperations::Verify));
        if !is_for_signatures || !may_verify {
            return None;
        }
        Some(Self {
            algorithm: algorithm_of(&jwk)?,
            key: DecodingKey::from_jwk(&jwk).ok()?,
            id: jwk.common.key_id,
        })
    }

    fn verify(&self, token: &UnverifiedToken<'_>) -> Result<Map<String, Value>, &'static str> {
        signed_claims(token.text, &self.key, self.algorithm).map_err(|error| match error {
            ErrorKind::InvalidSignature => "the JWT's signature is not valid",
            ErrorKind::InvalidAlgorithm => "the JWT is not signed with the algorithm of its key",
            _ => "the token is not a JWT",
        })
    }
}

/// Returns the only algorithm that a key is used with. An RSA key without `alg` is for RS256, the
/// default of `OpenID` Connect.
fn algorithm_of(jwk: &Jwk) -> Option<Algorithm> {
    let named = jwk.common.key_algorithm.map(|it| it.to_string());
    let accepted: &[(&str, Algorithm)] = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => &[("RS256", Algorithm::RS256), ("PS256", Algorithm::PS256)],
        AlgorithmParameters::EllipticCurve(it) => match it.curve {
            EllipticCurve::P256 => &[("ES256", Algorithm::ES256)],
            EllipticCurve::P384 => &[("ES384", Algorithm::ES384)],
            _ => &[],
        },
        AlgorithmParameters::OctetKeyPair(it) if it.curve == EllipticCurve::Ed25519 => {
            &[("EdDSA", Algorithm::EdDSA)]
        }
        _ => &[],
    };
    let is_named = |(name, _): &&(&str, Algorithm)| named.as_deref().is_none_or(|it| it == *name);
    accepted.iter().find(is_named).map(|(_, it)| *it)
}

/// Returns true if both URLs are safe, and the second one is not less protected than the first.
fn is_as_safe(first: &str, second: &str) -> bool {
    let is_plain = |url: &str| Url::parse(url).is_ok_and(|url| url.scheme() == "http");
    is_safe(first) && is_safe(second) && (is_plain(first) || !is_plain(second))
}

#[cfg(test)]
mod tests {
    use super::is_as_safe;

    #[test]
    fn keys_come_from_a_url_that_is_as_safe_as_the_issuer() {
        let (tls, local) = ("https://idp.example", "http://127.0.0.1:9000");
        assert!(is_as_safe(tls, "https://keys.example/keys"));
        assert!(is_as_safe(local, "http://localhost/keys"));
        for (issuer, keys) in [
            (tls, local),
            (tls, "HTTP://127.0.0.1:9000/keys"),
            (tls, " http://127.0.0.1:9000/keys"),
            (tls, "http:127.0.0.1:9000/keys"),
            (local, "http://keys.example/keys"),
            ("http://idp.example", "https://keys.example/keys"),
        ] {
            assert!(!is_as_safe(issuer, keys), "{issuer} {keys}");
        }
    }
}
