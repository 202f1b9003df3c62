//! JWTs (RFC 7519), signed with HS256.
//!
//! `jsonwebtoken` takes the token apart and checks its signature. The claims are checked here,
//! against the time of the call instead of the machine's, so that recorded events have one answer.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE_NO_PAD};
use jsonwebtoken::{
    Algorithm, DecodingKey, TokenData, Validation, crypto::aws_lc, errors::ErrorKind,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::rotation::SecretRotation;
use crate::Secret;

/// How far clocks may be apart, in seconds.
const LEEWAY: f64 = 60.0;

/// RFC 7518, 3.2: as long as the hash at least.
const SHORTEST_SECRET: usize = 32;

#[derive(Clone, Debug)]
pub(super) struct JwtVerifier {
    /// The ids of the secrets that sign, by signer.
    pub(super) secrets: Vec<SecretRotation>,
    pub(super) audiences: Vec<String>,
    pub(super) subject_is_user: bool,
}

/// A secret that signs.
pub(super) struct SigningKey<'a> {
    /// The signer's name.
    pub(super) name: &'a Arc<str>,
    pub(super) id: &'a Arc<str>,
    pub(super) value: Secret,
}

/// Why a token is not accepted.
pub(super) struct JwtError {
    pub(super) why: &'static str,
    /// Whether one of the secrets signed it all the same.
    pub(super) is_signed: bool,
}

#[derive(Deserialize)]
struct VerifiedClaims {
    exp: Option<f64>,
    nbf: Option<f64>,
    aud: Option<Audience>,
    sub: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

/// Whether the header has a `crit`, of any value (the parser takes `null` for an absent one), or
/// cannot be read, and so may have one.
fn has_crit(token: &[u8]) -> bool {
    let header = token.split(|byte| *byte == b'.').next().unwrap_or_default();
    let header = URL_SAFE_NO_PAD.decode(header).unwrap_or_default();
    serde_json::from_slice::<HashMap<String, &RawValue>>(&header)
        .ok()
        .is_none_or(|header| header.contains_key("crit"))
}

impl JwtVerifier {
    pub(super) fn new(secrets: Vec<SecretRotation>) -> Self {
        // A program that uses the crate with another provider as well would have to choose, and
        // panic if it does not. Where it has chosen, its choice stands.
        let _ = aws_lc::DEFAULT_PROVIDER.install_default();
        Self {
            secrets,
            audiences: Vec::new(),
            subject_is_user: false,
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.secrets.extend(other.secrets);
        self.audiences.extend(other.audiences);
        self.subject_is_user |= other.subject_is_user;
    }

    /// Who signed a token that is valid, and its subject; or why it is not valid.
    pub(super) fn signed_by<'a>(
        &self,
        token: &[u8],
        secrets: Vec<SigningKey<'a>>,
        now: SystemTime,
    ) -> Result<(&'a Arc<str>, Option<String>), JwtError> {
        let mut why = "no secret is there that signs JWTs";
        for SigningKey { name, id, value } in secrets {
            // What is pasted into a store often ends with a line feed.
            let secret = value.expose().trim_end_matches(['\r', '\n']);
            if secret.len() < SHORTEST_SECRET {
                tracing::error!(
                    secret = &**id,
                    "a secret that signs JWTs has less than 32 bytes"
                );
                continue;
            }
            match Self::claims_of(token, secret) {
                Ok(claims) => {
                    let is_signed = true;
                    let accepted = self.accepted(claims, now);
                    let accepted = accepted.map(|subject| (name, subject));
                    return accepted.map_err(|why| JwtError { why, is_signed });
                }
                Err(text) => why = text,
            }
        }
        let is_signed = false;
        Err(JwtError { why, is_signed })
    }

    fn claims_of(given: &[u8], secret: &str) -> Result<VerifiedClaims, &'static str> {
        let mut only_signature = Validation::new(Algorithm::HS256);
        only_signature.required_spec_claims.clear();
        only_signature.validate_exp = false;
        only_signature.validate_aud = false;
        let key = DecodingKey::from_secret(secret.as_bytes());
        let token: TokenData<VerifiedClaims> = jsonwebtoken::decode(given, &key, &only_signature)
            .map_err(|error| match error.kind() {
            ErrorKind::InvalidSignature => "the JWT's signature does not fit",
            ErrorKind::InvalidAlgorithm => "the JWT is not signed with HS256",
            _ => "the token is not a JWT with claims of the right types",
        })?;
        // RFC 7515, 4.1.11: extensions that must be understood, and are not.
        if has_crit(given) {
            return Err("the JWT has a crit header");
        }
        Ok(token.claims)
    }

    fn accepted(
        &self,
        claims: VerifiedClaims,
        now: SystemTime,
    ) -> Result<Option<String>, &'static str> {
        let now = now
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs_f64();
        match claims.exp {
            None => return Err("the JWT has no exp claim"),
            Some(exp) if now >= exp + LEEWAY => return Err("the JWT has expired"),
            Some(_) => {}
        }
        if claims.nbf.is_some_and(|nbf| now < nbf - LEEWAY) {
            return Err("the JWT is not valid yet");
        }
        match claims.aud {
            // RFC 8725, 3.9: a token that says for whom it is must not pass for another's.
            None if !self.audiences.is_empty() => {
                return Err("the JWT has no aud claim, and this server has audiences");
            }
            Some(audience) if !self.is_meant(&audience) => {
                return Err("the JWT's aud claim names none of the server's audiences");
            }
            _ => {}
        }
        Ok(claims.sub)
    }

    fn is_meant(&self, audience: &Audience) -> bool {
        match audience {
            Audience::One(one) => self.audiences.contains(one),
            Audience::Several(all) => all.iter().any(|one| self.audiences.contains(one)),
        }
    }
}
