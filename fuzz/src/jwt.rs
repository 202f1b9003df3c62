//! JWTs: none is accepted unless it is signed with the planted key, and of the signed ones, those that
//! the RFCs require, and none that they forbid.
//!
//! The first byte of an input chooses what the rest is: a token (`r`), edits of a valid token
//! (`e`), a header and claims that get signed with the secret (`h`) or with the issuer's key (`i`),
//! or the issuer's keys as JSON (`k`).

use std::{
    future::ready,
    sync::LazyLock,
    time::{Duration, UNIX_EPOCH},
};

use aws_lc_rs::{
    hmac,
    signature::{Ed25519KeyPair, KeyPair},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE};
use lambda_tools::{
    AccessToken, Caller, Context, Failure, Jwt, Server, Tool, Toolkit, http::HeaderValue,
    secrets::Secrets, testing::LambdaFunction,
};
use lambda_tools_accounts::auth::oidc::{ClaimRules, KeySet, UnverifiedToken, accepted};
use serde_json::{Deserializer, Map, Value, json};

use crate::{
    MemoryBound, bounded,
    server::{JWT_SECRET as SECRET, JWT_SECRET_ID as SECRET_ID, wait},
};

type Fields = Map<String, Value>;

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
    assert!(keys.issuer.accept(token).is_err() || is_known, "{token}");
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
        let accepted = keys.issuer.accept(&keys.signed_by_issuer(&head, &body));
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

const NOW: u64 = 1_696_507_200;
const ISSUER: &str = "https://issuer.example";
const SERVER: &str = "https://tools.example";
const AUDIENCE: &str = "audience";
const CLIENT: &str = "client";

/// The keys of the issuer, and the rules for its tokens.
struct IssuerKeys {
    keys: KeySet,
    rules: ClaimRules,
}

impl IssuerKeys {
    /// Reads a JSON Web Key Set.
    fn parse(document: &[u8]) -> Option<Self> {
        let keys = KeySet::parse(ISSUER.into(), document).ok()?;
        let rules = ClaimRules {
            audiences: vec![AUDIENCE.to_owned()],
            client_ids: vec![CLIENT.to_owned()],
            ..ClaimRules::default()
        };
        Some(Self { keys, rules })
    }

    /// Returns the facts in a token that is accepted, or the reason for its rejection.
    fn accept(&self, token: &str) -> Result<AccessToken, &'static str> {
        let token = UnverifiedToken::parse(token.as_bytes())?;
        let now = UNIX_EPOCH + Duration::from_secs(NOW);
        accepted(&token, &self.keys, &self.rules, now, Some(SERVER))
    }
}

struct Keys {
    hmac: hmac::Key,
    ed25519: Ed25519KeyPair,
    issuer: IssuerKeys,
    /// A function whose callers send a JWT that the secret signed.
    function: LambdaFunction,
    /// Tokens that are accepted.
    valid: [String; 2],
}

static KEYS: LazyLock<Keys> = LazyLock::new(Keys::new);

impl Keys {
    fn new() -> Self {
        let ed25519 = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("a seed has 32 bytes");
        let document = json!({"keys": [jwk(&ed25519)]}).to_string();
        let function = function();
        let mut keys = Self {
            hmac: hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes()),
            ed25519,
            issuer: IssuerKeys::parse(document.as_bytes()).expect("the keys are valid"),
            function,
            valid: [String::new(), String::new()],
        };
        let claims = r#"{"iss":"https://issuer.example","aud":"https://tools.example",
            "exp":1696510800,"sub":"user-1","scope":"a b"}"#;
        keys.valid[1] =
            keys.signed_by_issuer(r#"{"alg":"EdDSA","typ":"at+jwt","kid":"1"}"#, claims);
        let claims = r#"{"aud":["audience"],"exp":1696510800,"nbf":1696507200,"sub":"user-1"}"#;
        keys.valid[0] = keys.signed_with_secret(r#"{"alg":"HS256","typ":"JWT"}"#, claims);
        let accepted = keys.accepts_secret(&keys.valid[0]);
        accepted.expect("the secret has signed the token");
        let accepted = keys.issuer.accept(&keys.valid[1]);
        accepted.expect("the issuer has signed the token");
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

    /// Returns the subject of a token that is accepted, or the response to any other.
    fn accepts_secret(&self, token: &str) -> Result<Option<String>, String> {
        let credential = format!("Bearer {token}");
        HeaderValue::from_str(&credential).map_err(|error| error.to_string())?;
        let path = "/tools/Fuzz.Caller/call";
        let event = json!({
            "version": "2.0", "rawPath": path, "rawQueryString": "",
            "headers": {"content-type": "application/json", "authorization": credential},
            "requestContext": {"http": {"method": "POST", "path": path}},
            "body": "{}", "isBase64Encoded": false,
        })
        .to_string();
        let response = wait(self.function.respond(&event)).map_err(|it| it.to_string())?;
        match &response.body {
            Value::Array(subject) => Ok(subject[0].as_str().map(str::to_owned)),
            _ => Err(format!("{response:?}")),
        }
    }
}

/// Creates a function whose tool returns the subject of its caller.
fn function() -> LambdaFunction {
    let subject = |_: Value, cx: Context| match cx.caller() {
        Caller::Jwt { subject, .. } => ready(Ok::<_, Failure>(json!([subject]))),
        caller => panic!("{caller:?}"),
    };
    let (open, any) = (json!({"type": "object"}), json!({}));
    let tool = Tool::dynamic("Fuzz.Caller@1.0.0", "Names its caller.", open, any, subject);
    let toolkit = Toolkit::new([tool]).expect("the tool is valid");
    let auth = Jwt::with_secret_ids([SECRET_ID]).audience(AUDIENCE);
    let secrets = Secrets::fixed([(SECRET_ID, SECRET)]);
    LambdaFunction::new(Server::new(toolkit).secrets(secrets).auth(auth))
}

fn jwk(key: &Ed25519KeyPair) -> Value {
    let x = URL_SAFE.encode(key.public_key());
    json!({"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": "1", "x": x})
}

// The RFCs' rules for accepted tokens, in two directions: an accepted token has everything that they
// require, and a token that has this and nothing else is accepted. Between the two lies what issuers
// do and `docs/sign-in.md` allows.

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
fn may_be_accepted(header: &Fields, claims: &Fields) -> bool {
    has_safe_header(header, "HS256") && is_in_time(claims) && is_for(claims, &[AUDIENCE])
}

/// Returns true for what an access token may be, at most (RFC 9068, 4).
fn may_be_access_token(header: &Fields, claims: &Fields) -> bool {
    // A `null` is no type, as an absent one.
    let typ = header.get("typ").filter(|it| !it.is_null());
    let typ = typ.map(|it| it.as_str().unwrap_or("?").to_lowercase());
    let has_type = typ.is_none_or(|it| ["jwt", "at+jwt", "application/at+jwt"].contains(&&*it));
    let mcp = format!("{SERVER}/mcp");
    let is_for_client =
        !claims.contains_key("aud") && claims.get("client_id") == Some(&json!(CLIENT));
    let is_for_server = is_for(claims, &[SERVER, &mcp, AUDIENCE]) || is_for_client;
    // OpenID Connect Core 1.0, 3.3.2.11; RFC 8417, 2.2; RFC 9101, 4.
    let mut others = "at_hash c_hash events redirect_uri response_type".split(' ');
    has_safe_header(header, "EdDSA")
        && has_type
        && claims.get("iss") == Some(&json!(ISSUER))
        && is_in_time(claims)
        && is_for_server
        && !others.any(|name| claims.contains_key(name))
}

/// Returns true for a token with what an access token must have, and nothing else (RFC 9068, 2).
fn is_access_token(header: &Fields, claims: &Fields) -> bool {
    let is_text = |it: &Value| it.as_str().is_some_and(|it| !it.is_empty());
    let has = |name: &str| claims.get(name).is_some_and(is_text);
    json!(header) == json!({"alg": "EdDSA", "typ": "at+jwt", "kid": "1"})
        && claims.get("iss") == Some(&json!(ISSUER))
        && claims.get("aud") == Some(&json!(SERVER))
        && is_in_time(claims)
        && ["sub", "client_id", "jti"].into_iter().all(has)
        && claims.get("iat").is_some_and(Value::is_number)
        && claims.len() == 7
}

/// Returns true for a JWT with the registered claims that this server reads, and nothing else (RFC
/// 7519, 4.1).
fn is_plain_jwt(header: &Fields, claims: &Fields) -> bool {
    json!(header) == json!({"alg": "HS256", "typ": "JWT"})
        && claims.get("aud") == Some(&json!(AUDIENCE))
        && is_in_time(claims)
        && claims.get("sub").is_some_and(Value::is_string)
        && claims.len() == 3
}
