//! JWTs: none is accepted unless it is signed with the planted key, and of the signed ones, exactly
//! those that the rules for their claims accept.
//!
//! The first byte of an input chooses what the rest is: a token (`r`), edits of a valid token (`e`),
//! a header and claims that get signed with the secret (`h`) or with the issuer's key (`i`), or the
//! issuer's keys as JSON (`k`).

use std::{
    sync::LazyLock,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use aws_lc_rs::{
    hmac,
    signature::{Ed25519KeyPair, KeyPair},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE};
use lambda_tools::{Secret, fuzzing};
use serde::Deserialize;
use serde_json::{Deserializer, Map, Value, json};

use crate::{MemoryBound, bounded};

/// A token is decoded twice and its claims once; those are JSON.
const BOUND: MemoryBound = MemoryBound {
    per_byte: 1024,
    base: 1 << 20,
};

const NOW: u64 = 1_696_507_200;
const SECRET: &str = "jwt-planted-0123456789abcdef0123456789";
const ISSUER: &str = "https://issuer.example";
const SERVER: &str = "https://tools.example";
const AUDIENCE: &str = "audience";
const CLIENT: &str = "client";

struct Keys {
    hmac: hmac::Key,
    secret: Secret,
    ed25519: Ed25519KeyPair,
    issuer: fuzzing::IssuerKeys,
    audiences: Vec<String>,
    clients: Vec<String>,
    /// Tokens that are accepted.
    valid: [String; 2],
}

static KEYS: LazyLock<Keys> = LazyLock::new(Keys::new);

impl Keys {
    fn new() -> Self {
        let ed25519 = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("a seed has 32 bytes");
        let (audiences, clients) = (vec![AUDIENCE.to_owned()], vec![CLIENT.to_owned()]);
        let document = json!({"keys": [jwk(&ed25519)]}).to_string();
        let issuer = fuzzing::IssuerKeys::parse(ISSUER, document.as_bytes(), &audiences, &clients);
        let mut keys = Self {
            hmac: hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes()),
            secret: SECRET.into(),
            ed25519,
            issuer: issuer.expect("the keys are valid"),
            audiences,
            clients,
            valid: [String::new(), String::new()],
        };
        let claims = r#"{"iss":"https://issuer.example","aud":"https://tools.example","exp":1696510800,"sub":"user-1","scope":"a b"}"#;
        keys.valid[1] =
            keys.signed_by_issuer(r#"{"alg":"EdDSA","typ":"at+jwt","kid":"1"}"#, claims);
        let claims = r#"{"aud":["audience"],"exp":1696510800,"nbf":1696507200,"sub":"user-1"}"#;
        keys.valid[0] = keys.signed_with_secret(r#"{"alg":"HS256","typ":"JWT"}"#, claims);
        assert!(
            keys.accepts_secret(&keys.valid[0]).is_ok()
                && keys.accepts_issuer(&keys.valid[1]).is_ok()
        );
        keys
    }

    fn signed_with_secret(&self, header: &str, claims: &str) -> String {
        let text = format!("{}.{}", URL_SAFE.encode(header), URL_SAFE.encode(claims));
        let signature = hmac::sign(&self.hmac, text.as_bytes());
        format!("{text}.{}", URL_SAFE.encode(signature))
    }

    fn signed_by_issuer(&self, header: &str, claims: &str) -> String {
        let text = format!("{}.{}", URL_SAFE.encode(header), URL_SAFE.encode(claims));
        let signature = self.ed25519.sign(text.as_bytes());
        format!("{text}.{}", URL_SAFE.encode(signature))
    }

    fn accepts_secret(&self, token: &str) -> Result<(Option<String>, Vec<String>), &'static str> {
        fuzzing::jwt_holder(token.as_bytes(), &self.secret, &self.audiences, now())
    }

    fn accepts_issuer(&self, token: &str) -> Result<lambda_tools::AccessToken, &'static str> {
        self.issuer.accept(token.as_bytes(), now(), Some(SERVER))
    }
}

fn jwk(key: &Ed25519KeyPair) -> Value {
    let x = URL_SAFE.encode(key.public_key());
    json!({"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": "1", "x": x})
}

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(NOW)
}

pub fn run(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else {
        return;
    };
    let keys: &Keys = &KEYS;
    bounded(data, BOUND, || match kind {
        b'e' => check_edited(keys, rest),
        b'h' => check_signed(keys, rest, true),
        b'i' => check_signed(keys, rest, false),
        b'k' => check_keys(keys, rest),
        _ => check_raw(keys, rest),
    });
}

/// Nobody but the server has the secret, and nobody but the issuer has its key.
fn check_raw(keys: &Keys, token: &[u8]) {
    let Ok(token) = str::from_utf8(token) else {
        return;
    };
    let is_known = keys.valid.iter().any(|valid| valid == token);
    assert!(keys.accepts_secret(token).is_err() || is_known, "{token}");
    assert!(keys.accepts_issuer(token).is_err() || is_known, "{token}");
}

/// Each edit is a position and a byte to put there, or with the highest bit to insert or to delete.
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

/// Two JSON values: the header and the claims.
fn check_signed(keys: &Keys, text: &[u8], with_secret: bool) {
    let Ok(text) = str::from_utf8(text) else {
        return;
    };
    let mut values = Deserializer::from_str(text).into_iter::<&serde_json::value::RawValue>();
    let (Some(Ok(header)), Some(Ok(claims))) = (values.next(), values.next()) else {
        return;
    };
    let (header, claims) = (header.get(), claims.get());
    // Whether the fields that occur twice matter depends on the reader.
    let fields = object(header).filter(is_plain_header);
    if fields.is_none() || has_duplicate(header) || has_duplicate(claims) {
        return;
    }
    if with_secret {
        let token = keys.signed_with_secret(header, claims);
        let accepted = keys.accepts_secret(&token);
        assert_eq!(
            accepted.clone().ok(),
            expected_holder(header, claims),
            "{header} {claims} {accepted:?}"
        );
    } else {
        let token = keys.signed_by_issuer(header, claims);
        let accepted = keys.accepts_issuer(&token);
        let expected = is_access_token(keys, header, claims);
        assert_eq!(accepted.is_ok(), expected, "{header} {claims} {accepted:?}");
    }
}

/// The issuer's keys as a stranger might want them: a token is accepted only with the right key.
fn check_keys(keys: &Keys, document: &[u8]) {
    let parsed = fuzzing::IssuerKeys::parse(ISSUER, document, &keys.audiences, &keys.clients);
    let Some(parsed) = parsed else {
        return;
    };
    let accepted = parsed.accept(keys.valid[1].as_bytes(), now(), Some(SERVER));
    // The library reads one key after the other, and ignores those that are not valid.
    let Ok(document) = serde_json::from_slice::<Value>(document) else {
        return;
    };
    let right = jwk(&keys.ed25519);
    let all = document.get("keys").or_else(|| document.get(0));
    let mut all = all.and_then(Value::as_array).into_iter().flatten();
    let has_key = all.any(|it| it["x"] == right["x"] && it["kty"] == "OKP" && it["kid"] == "1");
    assert!(accepted.is_err() || has_key, "{document}");
    let other = parsed.accept(keys.valid[0].as_bytes(), now(), Some(SERVER));
    assert!(other.is_err(), "{document}");
}

// The references below read the header and the claims as plain JSON, without duplicate fields.

#[derive(Deserialize)]
struct AnyHeader {
    alg: String,
}

fn object(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(text).ok()
}

/// RFC 7519, 4.1.4 and 4.1.5, with a minute of leeway. `None` for a value that is not a number.
fn is_in_time(claims: &Map<String, Value>, null_is_absent: bool) -> Option<bool> {
    let time = |name: &str| match claims.get(name) {
        None => Some(None),
        Some(Value::Null) if null_is_absent => Some(None),
        Some(value) => value.as_f64().map(Some),
    };
    let (exp, nbf) = (time("exp")?, time("nbf")?);
    #[expect(clippy::cast_precision_loss, reason = "the time is small")]
    let now = NOW as f64;
    Some(exp.is_some_and(|exp| now < exp + 60.0) && nbf.is_none_or(|nbf| now >= nbf - 60.0))
}

/// A text or a list of texts.
fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(items) => {
            let texts = items.iter().map(|it| it.as_str().map(str::to_owned));
            texts.collect()
        }
        _ => None,
    }
}

fn has_duplicate(text: &str) -> bool {
    struct Fields;
    impl<'de> serde::de::Visitor<'de> for Fields {
        type Value = bool;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
            let mut seen = std::collections::HashSet::new();
            let mut has_duplicate = false;
            while let Some(name) = map.next_key::<String>()? {
                map.next_value::<serde::de::IgnoredAny>()?;
                has_duplicate |= !seen.insert(name);
            }
            Ok(has_duplicate)
        }
    }
    let mut json = Deserializer::from_str(text);
    serde::Deserializer::deserialize_map(&mut json, Fields).unwrap_or(false)
}

/// The subject and the scopes of a token that the secret has signed, if it is accepted.
fn expected_holder(header: &str, claims: &str) -> Option<(Option<String>, Vec<String>)> {
    let fields = object(header)?;
    let AnyHeader { alg } = serde_json::from_str(header).ok()?;
    if alg != "HS256" || fields.contains_key("crit") {
        return None;
    }
    let claims = object(claims)?;
    let optional_text = |name: &str| match claims.get(name) {
        None | Some(Value::Null) => Some(None),
        Some(Value::String(text)) => Some(Some(text.clone())),
        Some(_) => None,
    };
    let optional_texts = |name: &str| match claims.get(name) {
        None | Some(Value::Null) => Some(None),
        Some(value) => texts(value).map(Some),
    };
    let (subject, audience) = (optional_text("sub")?, optional_texts("aud")?);
    let scopes = [optional_texts("scope")?, optional_texts("scp")?];
    let is_for_server = audience?.iter().any(|it| it == AUDIENCE);
    if !is_for_server || !is_in_time(&claims, true)? {
        return None;
    }
    let scopes = scopes.into_iter().flatten().flatten();
    let scopes = scopes.flat_map(|it| it.split(' ').map(str::to_owned).collect::<Vec<_>>());
    Some((subject, scopes.filter(|it| !it.is_empty()).collect()))
}

/// Only headers whose other fields have the types of RFC 7515 are compared; the rest is rejected by
/// one of the parsers.
fn is_plain_header(fields: &Map<String, Value>) -> bool {
    fields.iter().all(|(name, value)| match name.as_str() {
        "alg" | "typ" | "kid" | "cty" | "jku" | "x5u" | "x5t" | "x5t#S256" => value.is_string(),
        "jwk" | "x5c" | "crit" | "enc" | "zip" | "url" | "nonce" | "b64" => false,
        _ => true,
    })
}

/// The rules of `docs/sign-in.md` for the access tokens of an issuer.
fn is_access_token(keys: &Keys, header: &str, text: &str) -> bool {
    let (Some(fields), Some(claims)) = (object(header), object(text)) else {
        return false;
    };
    let typ = fields
        .get("typ")
        .map(|it| it.as_str().unwrap_or("?").to_ascii_lowercase());
    let accepted = ["jwt", "at+jwt", "application/at+jwt"];
    let is_accepted = fields.get("alg") == Some(&json!("EdDSA"))
        && fields.get("kid").is_none_or(|kid| kid == "1")
        && typ.is_none_or(|typ| accepted.contains(&&*typ));
    if !is_accepted {
        return false;
    }
    if ["jku", "x5u"].iter().any(|name| fields.contains_key(*name)) {
        return false;
    }
    if claims.get("iss") != Some(&json!(ISSUER)) {
        return false;
    }
    is_in_time(&claims, false) == Some(true)
        && is_for_server(keys, &claims)
        && has_no_other_purpose(&claims)
        && names_holder(&claims)
}

fn is_for_server(keys: &Keys, claims: &Map<String, Value>) -> bool {
    let marks = [
        "appid",
        "azpacr",
        "cid",
        "client_id",
        "scope",
        "scp",
        "token_use",
        "typ",
    ];
    let is_marked = marks.iter().any(|name| claims.contains_key(*name));
    let Some(audience) = claims.get("aud") else {
        return is_marked
            && claims
                .get("client_id")
                .is_some_and(|it| keys.clients.iter().any(|id| it == id));
    };
    let Some(audiences) = texts(audience) else {
        return false;
    };
    let mut named = audiences.iter().map(|it| it.trim_end_matches('/'));
    let urls = [SERVER.to_owned(), format!("{SERVER}/mcp")];
    let is_url = named.clone().any(|it| urls.iter().any(|url| url == it));
    is_url || (is_marked && named.any(|it| it == AUDIENCE))
}

fn has_no_other_purpose(claims: &Map<String, Value>) -> bool {
    let is = |name: &str, expected: &str| {
        claims.get(name).is_none_or(|it| {
            it.as_str()
                .is_some_and(|it| it.eq_ignore_ascii_case(expected))
        })
    };
    let has = |name: &str| claims.contains_key(name);
    let is_id_token = has("at_hash") || has("c_hash") || (has("nonce") && !has("typ"));
    is("token_use", "access") && is("typ", "Bearer") && !is_id_token
}

fn names_holder(claims: &Map<String, Value>) -> bool {
    let text = |name: &str| {
        claims
            .get(name)
            .and_then(Value::as_str)
            .is_some_and(|it| !it.is_empty())
    };
    let is_odd = claims
        .get("sub")
        .is_some_and(|it| !it.is_string() && !it.is_null());
    let clients = ["client_id", "azp", "appid", "cid"];
    !is_odd && (text("sub") || clients.into_iter().any(text))
}
