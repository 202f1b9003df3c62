//! A token before its signature has been checked.

use std::collections::HashMap;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE_NO_PAD};
use serde::Deserialize;
use serde_json::Value;

/// The maximum length of a token, in bytes. Lambda's event sources limit all headers together to
/// less.
const LONGEST_TOKEN: usize = 16 * 1024;

/// A token whose signature has not been checked: its issuer only selects the keys to check it with,
/// and its expiry can only lead to its rejection.
pub struct UnverifiedToken<'a> {
    pub(super) text: &'a [u8],
    pub(super) header: Header,
    pub(super) issuer: String,
    /// Its `exp` claim, if that is a number.
    pub(super) expires_at: Option<f64>,
}

/// The JOSE header: RFC 7515, 4.1. A field that occurs twice is an error.
#[derive(Deserialize)]
pub(super) struct Header {
    pub(super) kid: Option<String>,
    typ: Option<String>,
    /// The others, whatever their values are: `null` is not the same as no value.
    #[serde(flatten)]
    others: HashMap<String, Value>,
}

#[derive(Deserialize)]
struct UnverifiedClaims {
    iss: String,
    exp: Option<Value>,
}

impl<'a> UnverifiedToken<'a> {
    /// Parses a token. The error is the reason why the text is not a JWT of any issuer.
    pub fn parse(text: &'a [u8]) -> Result<Self, &'static str> {
        if text.len() > LONGEST_TOKEN {
            return Err("the token is longer than 16 KiB");
        }
        let parts: Vec<_> = text.split(|byte| *byte == b'.').collect();
        let [header, claims, _] = parts[..] else {
            return Err("the token is not a JWT");
        };
        let header: Header = decode(header).ok_or("the token's header is not valid")?;
        header.check()?;
        let claims: UnverifiedClaims = decode(claims).ok_or("the token names no issuer")?;
        Ok(Self {
            text,
            header,
            issuer: claims.iss,
            expires_at: claims.exp.and_then(|exp| exp.as_f64()),
        })
    }
}

#[cfg(feature = "sign-in")]
impl UnverifiedToken<'_> {
    /// Returns true if the token names this issuer.
    pub(in crate::auth) fn is_from(&self, issuer: &str) -> bool {
        self.issuer == issuer
    }

    /// Returns the id of the key that the token names.
    pub(in crate::auth) fn key_id(&self) -> Option<&str> {
        self.header.kid.as_deref()
    }
}

impl Header {
    fn check(&self) -> Result<(), &'static str> {
        if self.others.contains_key("crit") {
            // RFC 7515, 4.1.11: these extensions must be understood; none is supported.
            return Err("the JWT has a crit header");
        }
        let mut keys = ["jwk", "jku", "x5c", "x5u"].into_iter();
        if keys.any(|key| self.others.contains_key(key)) {
            // RFC 8725, 3.10: a key that the token itself brings proves nothing.
            return Err("the JWT's header brings its own key");
        }
        // RFC 9068, 2.1, and RFC 8725, 3.11. Many issuers still write `JWT`, or nothing.
        let Some(typ) = &self.typ else {
            return Ok(());
        };
        let accepted = ["jwt", "at+jwt", "application/at+jwt"];
        if accepted.iter().any(|it| typ.eq_ignore_ascii_case(it)) {
            return Ok(());
        }
        Err("the JWT's typ is not that of an access token")
    }
}

fn decode<T: for<'de> Deserialize<'de>>(part: &[u8]) -> Option<T> {
    let json = URL_SAFE_NO_PAD.decode(part).ok()?;
    serde_json::from_slice(&json).ok()
}
