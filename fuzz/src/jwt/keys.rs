//! The secret and the issuer's key that sign tokens, and the checks of tokens with them: with the
//! secret, as the credential of a call; with the issuer's key, without the network between.

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
    AccessToken, Caller, Context, Failure, Jwt, Server, Tool, Toolkit,
    http::HeaderValue,
    seams::{ClaimRules, KeySet, UnverifiedToken, accepted},
    secrets::Secrets,
    testing::LambdaFunction,
};
use serde_json::{Value, json};

use crate::{
    runtime::wait,
    server::{JWT_SECRET as SECRET, JWT_SECRET_ID as SECRET_ID},
};

pub(super) const NOW: u64 = 1_696_507_200;
pub(super) const ISSUER: &str = "https://issuer.example";
pub(super) const SERVER: &str = "https://tools.example";
pub(super) const AUDIENCE: &str = "audience";
pub(super) const CLIENT: &str = "client";

/// The keys of the issuer, and the rules for its tokens.
pub(super) struct IssuerKeys {
    keys: KeySet,
    rules: ClaimRules,
}

impl IssuerKeys {
    /// Reads a JSON Web Key Set.
    pub(super) fn parse(document: &[u8]) -> Option<Self> {
        let keys = KeySet::parse(ISSUER.into(), document).ok()?;
        let rules = ClaimRules {
            audiences: vec![AUDIENCE.to_owned()],
            client_ids: vec![CLIENT.to_owned()],
            ..ClaimRules::default()
        };
        Some(Self { keys, rules })
    }

    /// Returns the facts in a token that is accepted, or the reason for its rejection.
    pub(super) fn accept(&self, token: &str) -> Result<AccessToken, &'static str> {
        let token = UnverifiedToken::parse(token.as_bytes())?;
        let now = UNIX_EPOCH + Duration::from_secs(NOW);
        accepted(&token, &self.keys, &self.rules, now, Some(SERVER))
    }
}

pub(super) struct Keys {
    hmac: hmac::Key,
    pub(super) ed25519: Ed25519KeyPair,
    issuer: IssuerKeys,
    /// A function whose callers send a JWT that the secret signed.
    function: LambdaFunction,
    /// Tokens that are accepted.
    pub(super) valid: [String; 2],
}

pub(super) static KEYS: LazyLock<Keys> = LazyLock::new(Keys::new);

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
        let accepted = keys.accepts_issuer(&keys.valid[1]);
        accepted.expect("the issuer has signed the token");
        keys
    }

    pub(super) fn signed_with_secret(&self, header: &str, claims: &str) -> String {
        let text = format!("{}.{}", URL_SAFE.encode(header), URL_SAFE.encode(claims));
        let signature = hmac::sign(&self.hmac, text.as_bytes());
        format!("{text}.{}", URL_SAFE.encode(signature))
    }

    pub(super) fn signed_by_issuer(&self, header: &str, claims: &str) -> String {
        let text = format!("{}.{}", URL_SAFE.encode(header), URL_SAFE.encode(claims));
        let signature = self.ed25519.sign(text.as_bytes());
        format!("{text}.{}", URL_SAFE.encode(signature))
    }

    /// Returns the subject of a token that is accepted, or the response to any other.
    pub(super) fn accepts_secret(&self, token: &str) -> Result<Option<String>, String> {
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

    pub(super) fn accepts_issuer(&self, token: &str) -> Result<AccessToken, &'static str> {
        self.issuer.accept(token)
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

pub(super) fn jwk(key: &Ed25519KeyPair) -> Value {
    let x = URL_SAFE.encode(key.public_key());
    json!({"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": "1", "x": x})
}
