//! The secret and the issuer's key that sign tokens, and the checks of tokens with them.

use std::{
    sync::LazyLock,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use aws_lc_rs::{
    hmac,
    signature::{Ed25519KeyPair, KeyPair},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE};
use lambda_tools::{AccessToken, Secret, fuzzing};
use serde_json::{Value, json};

use crate::server::JWT_SECRET as SECRET;

pub(super) const NOW: u64 = 1_696_507_200;
pub(super) const ISSUER: &str = "https://issuer.example";
pub(super) const SERVER: &str = "https://tools.example";
pub(super) const AUDIENCE: &str = "audience";
pub(super) const CLIENT: &str = "client";

pub(super) struct Keys {
    hmac: hmac::Key,
    secret: Secret,
    pub(super) ed25519: Ed25519KeyPair,
    issuer: fuzzing::IssuerKeys,
    pub(super) audiences: Vec<String>,
    pub(super) clients: Vec<String>,
    /// Tokens that are accepted.
    pub(super) valid: [String; 2],
}

pub(super) static KEYS: LazyLock<Keys> = LazyLock::new(Keys::new);

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
        let claims = r#"{"iss":"https://issuer.example","aud":"https://tools.example",
            "exp":1696510800,"sub":"user-1","scope":"a b"}"#;
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

    pub(super) fn accepts_secret(
        &self,
        token: &str,
    ) -> Result<(Option<String>, Vec<String>), &'static str> {
        fuzzing::jwt_holder(token.as_bytes(), &self.secret, &self.audiences, now())
    }

    pub(super) fn accepts_issuer(&self, token: &str) -> Result<AccessToken, &'static str> {
        self.issuer.accept(token.as_bytes(), now(), Some(SERVER))
    }
}

pub(super) fn jwk(key: &Ed25519KeyPair) -> Value {
    let x = URL_SAFE.encode(key.public_key());
    json!({"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": "1", "x": x})
}

pub(super) fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(NOW)
}
