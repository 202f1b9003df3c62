//! The rules for the headers and the claims of tokens, as RFC 7515, RFC 7519 and `docs/sign-in.md`
//! state them.
//!
//! They are written a second time, and differently, so that a rule that the library loses is
//! noticed. The header and the claims are read as plain JSON, without duplicate fields.

use std::collections::HashMap;

use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Deserializer, Map, Value, json};

use super::keys::{AUDIENCE, ISSUER, Keys, NOW, SERVER};

#[derive(Deserialize)]
struct AnyHeader {
    alg: String,
}

pub(super) fn object(text: &str) -> Option<Map<String, Value>> {
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

pub(super) fn has_duplicate(text: &str) -> bool {
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
                map.next_value::<IgnoredAny>()?;
                has_duplicate |= !seen.insert(name);
            }
            Ok(has_duplicate)
        }
    }
    let mut json = Deserializer::from_str(text);
    serde::Deserializer::deserialize_map(&mut json, Fields).unwrap_or(false)
}

/// True for an object that can be read only by ignoring some of its values: with a number beyond the
/// range of floats, or with half of a surrogate pair (RFC 8259, sections 6 and 8.2).
pub(super) fn is_readable_in_part(text: &str) -> bool {
    let ignoring: Result<HashMap<String, IgnoredAny>, _> = serde_json::from_str(text);
    ignoring.is_ok() && object(text).is_none()
}

/// The subject and the scopes of a token that the secret has signed, if it is accepted.
pub(super) fn expected_holder(header: &str, claims: &str) -> Option<(Option<String>, Vec<String>)> {
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
pub(super) fn is_plain_header(fields: &Map<String, Value>) -> bool {
    fields.iter().all(|(name, value)| match name.as_str() {
        "alg" | "typ" | "kid" | "cty" | "jku" | "x5u" | "x5t" | "x5t#S256" => value.is_string(),
        "jwk" | "x5c" | "crit" | "enc" | "zip" | "url" | "nonce" | "b64" => false,
        _ => true,
    })
}

/// The rules of `docs/sign-in.md` for the access tokens of an issuer.
pub(super) fn is_access_token(keys: &Keys, header: &str, text: &str) -> bool {
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
    let is_id_token = has("at_hash") || has("c_hash") || has("s_hash");
    let is_request_or_event = has("response_type") || has("redirect_uri") || has("events");
    let is_other = is_id_token || is_request_or_event || (has("nonce") && !has("typ"));
    is("token_use", "access") && is("typ", "Bearer") && !is_other
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
