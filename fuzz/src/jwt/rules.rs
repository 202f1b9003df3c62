//! The RFCs' rules for accepted tokens, in two directions: an accepted token has everything that
//! they require, and a token that has this and nothing else is accepted. Between the two lies what
//! issuers do and `docs/sign-in.md` allows.

use serde_json::{Map, Value, json};

use super::keys::{AUDIENCE, CLIENT, ISSUER, NOW, SERVER};

pub(super) type Fields = Map<String, Value>;

/// Returns true for a valid time, with a minute of leeway (RFC 7519, 4.1.4 and 4.1.5).
fn is_in_time(claims: &Fields) -> bool {
    let time = |name: &str| claims.get(name).and_then(Value::as_f64);
    #[expect(clippy::cast_precision_loss, reason = "the time is small")]
    let now = NOW as f64;
    time("exp").is_some_and(|exp| now < exp + 60.0)
        && time("nbf").is_none_or(|nbf| nbf - 60.0 <= now)
}

/// Returns true if the token is for one of these audiences (RFC 7519, 4.1.3).
fn is_for(claims: &Fields, audiences: &[&str]) -> bool {
    let is_one = |it: &Value| {
        it.as_str()
            .is_some_and(|it| audiences.contains(&it.trim_end_matches('/')))
    };
    match claims.get("aud") {
        Some(Value::Array(all)) => all.iter().any(is_one),
        Some(one) => is_one(one),
        None => false,
    }
}

/// Returns true for the algorithm of the key, without extensions and keys (RFC 7515, 4.1.1 and
/// 4.1.11; RFC 8725, 3.10).
fn has_safe_header(header: &Fields, algorithm: &str) -> bool {
    let refused = ["crit", "jwk", "jku", "x5c", "x5u"];
    let is_safe = algorithm == "HS256" || !refused.iter().any(|name| header.contains_key(*name));
    header.get("alg") == Some(&json!(algorithm)) && !header.contains_key("crit") && is_safe
}

/// Returns true for what a token that the secret has signed may be, at most.
pub(super) fn may_be_accepted(header: &Fields, claims: &Fields) -> bool {
    has_safe_header(header, "HS256") && is_in_time(claims) && is_for(claims, &[AUDIENCE])
}

/// Returns true for what an access token may be, at most (RFC 9068, 4).
pub(super) fn may_be_access_token(header: &Fields, claims: &Fields) -> bool {
    // A `null` is no type, as an absent one.
    let typ = header
        .get("typ")
        .filter(|it| !it.is_null())
        .map(|it| it.as_str().unwrap_or("?").to_lowercase());
    let has_type = typ.is_none_or(|it| ["jwt", "at+jwt", "application/at+jwt"].contains(&&*it));
    let mcp = format!("{SERVER}/mcp");
    let is_for_client =
        !claims.contains_key("aud") && claims.get("client_id") == Some(&json!(CLIENT));
    let is_for_server = is_for(claims, &[SERVER, &mcp, AUDIENCE]) || is_for_client;
    // OpenID Connect Core 1.0, 3.3.2.11; RFC 8417, 2.2; RFC 9101, 4.
    let others = [
        "at_hash",
        "c_hash",
        "events",
        "redirect_uri",
        "response_type",
    ];
    has_safe_header(header, "EdDSA")
        && has_type
        && claims.get("iss") == Some(&json!(ISSUER))
        && is_in_time(claims)
        && is_for_server
        && !others.iter().any(|name| claims.contains_key(*name))
}

/// Returns true for a token with what an access token must have, and nothing else (RFC 9068, 2).
pub(super) fn is_access_token(header: &Fields, claims: &Fields) -> bool {
    let is_text = |it: &Value| it.as_str().is_some_and(|it| !it.is_empty());
    let has = |name: &str| claims.get(name).is_some_and(is_text);
    *header
        == *json!({"alg": "EdDSA", "typ": "at+jwt", "kid": "1"})
            .as_object()
            .expect("an object")
        && claims.get("iss") == Some(&json!(ISSUER))
        && claims.get("aud") == Some(&json!(SERVER))
        && is_in_time(claims)
        && ["sub", "client_id", "jti"].into_iter().all(has)
        && claims.get("iat").is_some_and(Value::is_number)
        && claims.len() == 7
}

/// Returns true for a JWT with the registered claims that this server reads, and nothing else (RFC
/// 7519, 4.1).
pub(super) fn is_plain_jwt(header: &Fields, claims: &Fields) -> bool {
    *header
        == *json!({"alg": "HS256", "typ": "JWT"})
            .as_object()
            .expect("an object")
        && claims.get("aud") == Some(&json!(AUDIENCE))
        && is_in_time(claims)
        && claims.get("sub").is_some_and(Value::is_string)
        && claims.len() == 3
}
