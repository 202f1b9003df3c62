//! JWTs (RFC 7519), signed with HS256.
//!
//! `jsonwebtoken` parses the token and checks its signature. The claims are checked here, against
//! the time of the call instead of the machine's clock, so that recorded events are reproducible.

pub(super) mod claims;
pub(super) mod validity;

use std::{collections::HashMap, sync::Arc, time::SystemTime};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE_NO_PAD};
use jsonwebtoken::{
    Algorithm, DecodingKey, TokenData, Validation, crypto::aws_lc, errors::ErrorKind,
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{attempt::CredentialCheck, rotation::SecretRotation};
use crate::{Caller, secrets::ReadResult};
use claims::{Claims, name_in, number, scopes_in, texts};
use validity::check_validity;

/// The minimum length of a secret in bytes: that of the hash (RFC 7518, 3.2).
pub(super) const SHORTEST_SECRET: usize = 32;

/// JWTs, signed with HS256, which callers send as `Authorization: Bearer`.
///
/// A token must have an `exp` claim and be used before it, and not before its `nbf`; clocks may
/// differ by a minute. If there are [audiences](Self::audience), the `aud` claim must name one of
/// them; otherwise there must be no `aud` claim (RFC 7519, 4.1.3; RFC 8725, 3.9).
///
/// Signers with different rules can be combined:
///
/// ```
/// # use lambda_tools::{Auth, Jwt};
/// // Tokens of A must have no audience, those of B must be for this server.
/// let bound = Jwt::with_secret_ids(["B"]).audience("https://tools.example");
/// let auth = Auth::from(Jwt::with_secret_ids(["A"])).or(bound);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Jwt {
    /// The ids of each signer's secrets.
    signers: Vec<SecretRotation>,
    audiences: Vec<String>,
    subject_is_user: bool,
}

impl Jwt {
    /// Accepts tokens that these secrets have signed, whose values must have at least 32 bytes (RFC
    /// 7518, 3.2). Each id is a separate signer, and the `sub` claim names a caller of that signer:
    /// the same `sub` from two signers means two callers, each with its own users and grants.
    /// `"A|A_NEXT"` names two secrets of one signer, for rotation.
    pub fn with_secret_ids<I: AsRef<str>>(ids: impl IntoIterator<Item = I>) -> Self {
        install_cryptography();
        Self {
            signers: SecretRotation::parse_all(ids),
            audiences: Vec::new(),
            subject_is_user: false,
        }
    }

    /// Adds an audience that the `aud` claim may name.
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// Uses the `sub` claim as the call's user: tools get it as
    /// [`Context::user_id`](crate::Context::user_id). A call that names another user is rejected,
    /// and so is a call that names any user if its token has no `sub`. Callers with API keys may
    /// name any user.
    pub fn subject_is_user(mut self) -> Self {
        self.subject_is_user = true;
        self
    }

    pub(super) fn signers(&self) -> &[SecretRotation] {
        &self.signers
    }

    /// Returns true if the subjects of this signer are users.
    pub(super) fn names_users(&self, signer: &Arc<str>) -> bool {
        self.subject_is_user && self.signers.iter().any(|it| it.name() == signer)
    }

    /// Returns the caller to whom a signer gave the token with these claims.
    fn caller(
        &self,
        signer: &Arc<str>,
        claims: &Claims,
        now: SystemTime,
    ) -> Result<Caller, &'static str> {
        check_validity(number(claims, "exp")?, number(claims, "nbf")?, now)?;
        let named = claims.get("aud").filter(|it| !it.is_null());
        let named = named.map(|it| texts(it).unwrap_or_default());
        match named {
            // RFC 8725, 3.9: a token for another audience must not be accepted.
            None if !self.audiences.is_empty() => {
                Err("the JWT has no aud claim, but this server requires one of its audiences")
            }
            Some(named) if !self.audiences.iter().any(|it| named.contains(&&**it)) => {
                Err("the JWT's aud claim names none of the server's audiences")
            }
            _ => Ok(Caller::Jwt {
                id: Arc::clone(signer),
                scopes: scopes_in(claims),
                subject: name_in(claims, "sub")?,
            }),
        }
    }
}

/// Returns the caller to whom a signer gave the token: it is checked with the secret that signed it,
/// and with the rules of the signers that have this secret, of which those of one are enough. `reads`
/// has the secrets in the order of their ids.
pub(super) fn identify(
    all: &[Jwt],
    token: &[u8],
    reads: impl Iterator<Item = ReadResult>,
    now: SystemTime,
    check: &mut CredentialCheck,
) -> Option<Caller> {
    let ids = all.iter().flat_map(|rules| {
        let ids = rules.signers.iter().flat_map(SecretRotation::named_ids);
        ids.map(move |(signer, id)| (rules, signer, id))
    });
    check.reason = Some("the server has no JWT signing secret");
    let mut has_valid_signature = false;
    for ((rules, signer, id), read) in ids.zip(reads) {
        let Some(secret) = check.secret(id, SHORTEST_SECRET, read) else {
            continue;
        };
        // Secrets pasted into a store often end with a line feed.
        let secret = secret.expose().trim_end_matches(['\r', '\n']);
        let caller = match claims_of(token, secret) {
            Ok(claims) => {
                has_valid_signature = true;
                rules.caller(signer, &claims, now)
            }
            // Another signer may have a secret of the same value, and other rules.
            Err(_) if has_valid_signature => continue,
            Err(reason) => Err(reason),
        };
        match caller {
            Ok(caller) => return Some(caller),
            Err(reason) => check.reason = Some(reason),
        }
    }
    // If a readable secret signed the token, unreadable secrets cannot change the result.
    check.is_undecided &= !has_valid_signature;
    None
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

/// Installs a crypto provider, unless the program has installed one: in a program that also enables
/// another, `jsonwebtoken` panics without.
pub(super) fn install_cryptography() {
    let _ = aws_lc::DEFAULT_PROVIDER.install_default();
}

/// Returns the claims of a token, if it was signed with this secret.
fn claims_of(token: &[u8], secret: &str) -> Result<Claims, &'static str> {
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

/// Returns the claims of a token that this key has signed. Nothing else about them is checked.
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
