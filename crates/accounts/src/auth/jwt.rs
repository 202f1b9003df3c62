//! JWTs (RFC 7519), signed with HS256.
//!
//! `jsonwebtoken` parses the token and checks its signature. The claims are checked here, against
//! the time of the call instead of the machine's clock, so that recorded events are reproducible.

use std::{sync::Arc, time::SystemTime};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE_NO_PAD};
use jsonwebtoken::{
    Algorithm, DecodingKey, TokenData, Validation, crypto::aws_lc, errors::ErrorKind,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{CredentialCheck, api_keys::SecretRotation};
use crate::{Caller, clock::since_epoch, secrets::ReadResult};

/// The minimum length of a secret in bytes: that of the hash (RFC 7518, 3.2).
pub(super) const SHORTEST_SECRET: usize = 32;

/// The permitted clock difference, in seconds.
const LEEWAY: f64 = 60.0;

/// JWTs, signed with HS256, which callers send as `Authorization: Bearer`.
///
/// A token must have an `exp` claim and be used before it, and not before its `nbf`; clocks may
/// differ by a minute. If there are [audiences](Self::audience), the `aud` claim must name one of
/// them; otherwise there must be no `aud` claim (RFC 7519, 4.1.3; RFC 8725, 3.9).
///
/// Signers with different rules can be combined:
///
/// ```
/// # use lambda_tools_accounts::{Auth, Jwt};
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
    /// [`Context::user_id`](lambda_tools_core::Context::user_id). A call that names another user is rejected,
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
        check_times(claims, now)?;
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
    // `jsonwebtoken` takes a `null` for no list.
    let header = token.split(|byte| *byte == b'.').next().unwrap_or_default();
    let header: Option<Map<String, Value>> = decoded(header);
    if header.is_none_or(|it| it.contains_key("crit")) {
        return Err("the JWT has a crit header");
    }
    Ok(claims)
}

/// Reads a part of a token: JSON in base64url.
pub(super) fn decoded<T: DeserializeOwned>(part: &[u8]) -> Option<T> {
    let json = URL_SAFE_NO_PAD.decode(part).ok()?;
    serde_json::from_slice(&json).ok()
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

/// The claims of a token whose signature is valid: RFC 7519, 4. A `null` is no claim.
pub(super) type Claims = Map<String, Value>;

/// Checks `exp`, which a token must have, and `nbf`: RFC 7519, 4.1.4 and 4.1.5.
pub(super) fn check_times(claims: &Claims, now: SystemTime) -> Result<(), &'static str> {
    let time = |name: &str| match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_f64()
            .ok_or("the JWT's times are not numbers")
            .map(Some),
    };
    let (exp, nbf) = (time("exp")?, time("nbf")?);
    if is_expired(exp.ok_or("the JWT has no exp claim")?, now) {
        return Err("the JWT has expired");
    }
    if nbf.is_some_and(|nbf| since_epoch(now).as_secs_f64() < nbf - LEEWAY) {
        return Err("the JWT is not valid yet");
    }
    Ok(())
}

/// Returns true if a token with this `exp` can be used no more.
pub(super) fn is_expired(exp: f64, now: SystemTime) -> bool {
    since_epoch(now).as_secs_f64() >= exp + LEEWAY
}

/// Returns the name of a user. Numbers that differ may be read as the same one.
pub(super) fn name_in(claims: &Claims, name: &str) -> Result<Option<String>, &'static str> {
    match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err("the JWT's user is not a text"),
    }
}

/// Returns the scopes of a token, which are separated by spaces or are items of a list: RFC 9068,
/// 2.2.3; some issuers use `scp`.
pub(super) fn scopes_in(claims: &Claims) -> Vec<String> {
    let values = ["scope", "scp"]
        .into_iter()
        .filter_map(|name| claims.get(name));
    let all = values.filter_map(texts).flatten();
    let split = all.flat_map(|text| text.split(' ').filter(|scope| !scope.is_empty()));
    split.map(str::to_owned).collect()
}

/// Reads a text, or a list of texts.
pub(super) fn texts(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::String(text) => Some(vec![text]),
        Value::Array(items) => items.iter().map(Value::as_str).collect(),
        _ => None,
    }
}
