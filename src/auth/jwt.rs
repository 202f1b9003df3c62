//! JWTs (RFC 7519), signed with HS256.
//!
//! `jsonwebtoken` parses the token and checks its signature. The claims are checked here, against
//! the time of the call instead of the machine's clock, so that recorded events are reproducible.

use std::{collections::HashMap, sync::Arc, time::SystemTime};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE_NO_PAD};
use jsonwebtoken::{
    Algorithm, DecodingKey, TokenData, Validation, crypto::aws_lc, errors::ErrorKind,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::{rotation::SecretRotation, validity::check_validity};
use crate::{Caller, Secret};

/// The minimum length of a secret in bytes: that of the hash (RFC 7518, 3.2).
const SHORTEST_SECRET: usize = 32;

/// A signer of JWTs, and the rules for its tokens.
#[derive(Clone, Debug)]
pub(super) struct JwtSigner {
    /// The ids of its secrets.
    pub(super) secrets: SecretRotation,
    pub(super) audiences: Vec<String>,
    pub(super) subject_is_user: bool,
}

/// A signing secret.
pub(super) struct SigningKey<'a> {
    pub(super) signer: &'a JwtSigner,
    pub(super) id: &'a Arc<str>,
    pub(super) value: Secret,
}

/// The rejection of a token.
pub(super) struct JwtError {
    pub(super) reason: &'static str,
    /// True if one of the secrets signed the token, but its claims were not accepted.
    pub(super) has_valid_signature: bool,
}

#[derive(Deserialize)]
struct VerifiedClaims {
    exp: Option<f64>,
    nbf: Option<f64>,
    aud: Option<Texts>,
    sub: Option<String>,
    scope: Option<Texts>,
    scp: Option<Texts>,
}

/// A text, or a list of texts.
#[derive(Deserialize)]
#[serde(untagged)]
enum Texts {
    One(String),
    Several(Vec<String>),
}

impl Texts {
    fn all(&self) -> &[String] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Several(all) => all,
        }
    }
}

/// Returns true if the header has a `crit` with any value (`jsonwebtoken` treats `null` as absent),
/// or if it cannot be parsed and may therefore have one.
fn may_have_crit(token: &[u8]) -> bool {
    let header = token.split(|byte| *byte == b'.').next().unwrap_or_default();
    let header = URL_SAFE_NO_PAD.decode(header).unwrap_or_default();
    serde_json::from_slice::<HashMap<String, &RawValue>>(&header)
        .ok()
        .is_none_or(|header| header.contains_key("crit"))
}

/// In a program that also enables another crypto provider, `jsonwebtoken` panics unless one is
/// installed. A provider that the program has already installed is kept.
pub(super) fn install_cryptography() {
    let _ = aws_lc::DEFAULT_PROVIDER.install_default();
}

/// Checks a token with the secret that signed it, and with the rules of the signers that have this
/// secret: those of one signer are enough.
pub(super) fn verify(
    token: &[u8],
    keys: Vec<SigningKey<'_>>,
    now: SystemTime,
) -> Result<Caller, JwtError> {
    let mut error = JwtError {
        reason: "the server has no JWT signing secret",
        has_valid_signature: false,
    };
    for SigningKey { signer, id, value } in keys {
        // Secrets pasted into a store often end with a line feed.
        let secret = value.expose().trim_end_matches(['\r', '\n']);
        if secret.len() < SHORTEST_SECRET {
            tracing::error!(
                secret = &**id,
                "a JWT signing secret has fewer than 32 bytes"
            );
            continue;
        }
        match claims_of(token, secret) {
            Ok(claims) => match signer.check(&claims, now) {
                Ok(()) => {
                    return Ok(Caller::Jwt {
                        id: Arc::clone(signer.secrets.name()),
                        scopes: claims.scopes(),
                        subject: claims.sub,
                    });
                }
                // Another signer may have a secret of the same value.
                Err(reason) => {
                    error = JwtError {
                        reason,
                        has_valid_signature: true,
                    }
                }
            },
            Err(reason) if !error.has_valid_signature => error.reason = reason,
            Err(_) => {}
        }
    }
    Err(error)
}

/// The claims of a token, if it was signed with this secret.
fn claims_of(token: &[u8], secret: &str) -> Result<VerifiedClaims, &'static str> {
    let key = DecodingKey::from_secret(secret.as_bytes());
    let claims = signed_claims(token, &key, Algorithm::HS256);
    let claims = claims.map_err(|error| match error {
        ErrorKind::InvalidSignature => "the JWT's signature is not valid",
        ErrorKind::InvalidAlgorithm => "the JWT is not signed with HS256",
        _ => "the token is not a JWT with claims of the right types",
    })?;
    // RFC 7515, 4.1.11: `crit` lists extensions that must be understood; none is supported.
    if may_have_crit(token) {
        return Err("the JWT has a crit header");
    }
    Ok(claims)
}

/// The claims of a token that this key has signed. Nothing else about them is checked.
pub(super) fn signed_claims<T: DeserializeOwned>(
    token: &[u8],
    key: &DecodingKey,
    algorithm: Algorithm,
) -> Result<T, ErrorKind> {
    let mut only_signature = Validation::new(algorithm);
    only_signature.required_spec_claims.clear();
    only_signature.validate_exp = false;
    only_signature.validate_aud = false;
    let data: TokenData<T> = jsonwebtoken::decode(token, key, &only_signature)
        .map_err(jsonwebtoken::errors::Error::into_kind)?;
    Ok(data.claims)
}

impl JwtSigner {
    pub(super) fn new(secrets: SecretRotation) -> Self {
        install_cryptography();
        Self {
            secrets,
            audiences: Vec::new(),
            subject_is_user: false,
        }
    }

    fn check(&self, claims: &VerifiedClaims, now: SystemTime) -> Result<(), &'static str> {
        check_validity(claims.exp, claims.nbf, now)?;
        match &claims.aud {
            // RFC 8725, 3.9: a token for another audience must not be accepted.
            None if !self.audiences.is_empty() => {
                Err("the JWT has no aud claim, but this server requires one of its audiences")
            }
            Some(named) if !named.all().iter().any(|one| self.audiences.contains(one)) => {
                Err("the JWT's aud claim names none of the server's audiences")
            }
            _ => Ok(()),
        }
    }
}

impl VerifiedClaims {
    fn scopes(&self) -> Vec<String> {
        let texts = [&self.scope, &self.scp].into_iter().flatten();
        let texts = texts.flat_map(Texts::all);
        let scopes = texts.flat_map(|text| text.split(' '));
        let scopes = scopes.filter(|scope| !scope.is_empty());
        scopes.map(str::to_owned).collect()
    }
}
