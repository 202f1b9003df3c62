//! JWTs: none is accepted unless it is signed with the planted key, and of the signed ones, those that
//! the RFCs require, and none that they forbid.
//!
//! The first byte of an input chooses what the rest is: a token (`r`), edits of a valid token
//! (`e`), a header and claims that get signed with the secret (`h`) or with the issuer's key (`i`),
//! or the issuer's keys as JSON (`k`).

mod keys;
mod rules;

use serde_json::{Deserializer, Value};

use crate::{MemoryBound, bounded};
use keys::{IssuerKeys, KEYS, Keys, jwk};
use rules::{Fields, is_access_token, is_plain_jwt, may_be_accepted, may_be_access_token};

/// A token is decoded twice and its claims once; those are JSON.
const BOUND: MemoryBound = MemoryBound {
    per_byte: 1024,
    base: 1 << 20,
};

pub fn run(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else {
        return;
    };
    let keys: &Keys = &KEYS;
    bounded(data.len(), BOUND, || match kind {
        b'e' => check_edited(keys, rest),
        b'h' => check_signed(keys, rest, true),
        b'i' => check_signed(keys, rest, false),
        b'k' => check_keys(keys, rest),
        _ => check_raw(keys, rest),
    });
}

/// Checks a token of anyone: nobody but the server has the secret, and nobody but the issuer has
/// its key.
fn check_raw(keys: &Keys, token: &[u8]) {
    let Ok(token) = str::from_utf8(token) else {
        return;
    };
    let is_known = keys.valid.iter().any(|valid| valid == token);
    assert!(keys.accepts_secret(token).is_err() || is_known, "{token}");
    assert!(keys.accepts_issuer(token).is_err() || is_known, "{token}");
}

/// Checks an edited token. Each edit is a position and a byte to put there, or with the highest bit
/// to insert or to delete.
fn check_edited(keys: &Keys, edits: &[u8]) {
    for valid in &keys.valid {
        let mut token = valid.clone().into_bytes();
        for edit in edits.chunks_exact(3) {
            let at = usize::from(edit[0]) | usize::from(edit[1] & 0x3F) << 8;
            let at = at % token.len().max(1);
            match edit[1] >> 6 {
                0 | 1 if !token.is_empty() => token[at] = edit[2],
                2 if !token.is_empty() => drop(token.remove(at)),
                _ => token.insert(at, edit[2]),
            }
        }
        if let Ok(token) = str::from_utf8(&token) {
            check_raw(keys, token.as_bytes());
        }
    }
}

/// Checks a signed token of two JSON objects: the header and the claims. They have no duplicate
/// fields, because readers differ in which of two counts.
fn check_signed(keys: &Keys, text: &[u8], with_secret: bool) {
    let mut values = Deserializer::from_slice(text).into_iter::<Fields>();
    let (Some(Ok(header)), Some(Ok(claims))) = (values.next(), values.next()) else {
        return;
    };
    let [head, body] = [&header, &claims].map(|it| serde_json::to_string(it).expect("JSON"));
    let (holder, is_allowed, is_required) = if with_secret {
        let accepted = keys.accepts_secret(&keys.signed_with_secret(&head, &body));
        let is_allowed = may_be_accepted(&header, &claims);
        (accepted, is_allowed, is_plain_jwt(&header, &claims))
    } else {
        let accepted = keys.accepts_issuer(&keys.signed_by_issuer(&head, &body));
        let is_allowed = may_be_access_token(&header, &claims);
        (
            accepted.map(|it| it.user).map_err(str::to_owned),
            is_allowed,
            is_access_token(&header, &claims),
        )
    };
    assert!(holder.is_err() || is_allowed, "{head} {body}");
    assert!(holder.is_ok() || !is_required, "{head} {body} {holder:?}");
    if let Ok(Some(user)) = holder {
        assert_eq!(claims["sub"], *user, "{head} {body}");
    }
}

/// Checks keys that a stranger might give the issuer: a token is accepted only with the right key.
fn check_keys(keys: &Keys, document: &[u8]) {
    let Some(parsed) = IssuerKeys::parse(document) else {
        return;
    };
    let accepted = parsed.accept(&keys.valid[1]);
    // The library reads one key after the other, and ignores those that are not valid.
    let Ok(document) = serde_json::from_slice::<Value>(document) else {
        return;
    };
    let right = jwk(&keys.ed25519);
    let all = document.get("keys").or_else(|| document.get(0));
    let mut all = all.and_then(Value::as_array).into_iter().flatten();
    let has_key = all.any(|it| it["x"] == right["x"] && it["kty"] == "OKP" && it["kid"] == "1");
    assert!(accepted.is_err() || has_key, "{document}");
    let other = parsed.accept(&keys.valid[0]);
    assert!(other.is_err(), "{document}");
}
