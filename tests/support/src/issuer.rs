//! An identity provider in this process, with the keys and the responses that a test gives it: its
//! metadata, its keys, and the tokens that it issues for codes and refresh tokens.

use std::{
    sync::{
        Arc, LazyLock, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use aws_lc_rs::{
    encoding::AsDer,
    rand::SystemRandom,
    rsa::KeySize,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
        Ed25519KeyPair,
    },
};
use axum::{
    Router,
    extract::{Request, State},
    response::Response,
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
pub use jsonwebtoken::Algorithm;
use jsonwebtoken::{EncodingKey, Header, jwk::Jwk};
use serde_json::{Value, json};

use crate::{Served, answer, requests::Recorder};

/// The supported algorithms.
pub const ALGORITHMS: [Algorithm; 5] = [
    Algorithm::RS256,
    Algorithm::PS256,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// The URL of the server that tokens are for.
pub const URL: &str = "https://tools.example";

/// The time of a fixed clock, in seconds since 1970.
pub const NOW: u64 = 471_252 * 3600;

/// Claims that are accepted, of a user named alice.
pub fn claims(issuer: &str) -> Value {
    json!({
        "iss": issuer,
        "sub": "alice",
        "aud": URL,
        "exp": NOW + 600,
        "iat": NOW,
    })
}

/// A key with its id, which names its algorithm.
#[derive(Clone)]
pub struct SigningKey {
    /// Its id.
    pub kid: String,
    /// The algorithm it signs with.
    pub algorithm: Algorithm,
    key: EncodingKey,
}

impl SigningKey {
    /// Creates a new key.
    pub fn new(kid: &str, algorithm: Algorithm) -> Self {
        let random = SystemRandom::new();
        let key = match algorithm {
            Algorithm::ES256 => {
                let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
                EncodingKey::from_ec_der(der.unwrap().as_ref())
            }
            Algorithm::ES384 => {
                let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, &random);
                EncodingKey::from_ec_der(der.unwrap().as_ref())
            }
            Algorithm::EdDSA => {
                let der = Ed25519KeyPair::generate_pkcs8v1(&random);
                EncodingKey::from_ed_der(der.unwrap().as_ref())
            }
            _ => rsa_key(),
        };
        Self {
            kid: kid.to_owned(),
            algorithm,
            key,
        }
    }

    /// Returns the public key, as an issuer publishes it.
    pub fn public(&self) -> Value {
        let jwk = Jwk::from_encoding_key(&self.key, self.algorithm).unwrap();
        let mut jwk = json!(jwk);
        jwk["kid"] = self.kid.clone().into();
        jwk["use"] = "sig".into();
        jwk
    }

    /// Signs an access token with these claims.
    pub fn sign(&self, claims: &Value) -> String {
        let header = json!({"alg": self.algorithm, "kid": self.kid, "typ": "at+jwt"});
        self.sign_as(&header, claims)
    }

    /// Signs any header, even one that contradicts the key.
    pub fn sign_as(&self, header: &Value, claims: &Value) -> String {
        self.sign_text(&header.to_string(), &claims.to_string())
    }

    /// Signs any text, even one that is no JSON.
    pub fn sign_text(&self, header: &str, claims: &str) -> String {
        let message = [header, claims].map(|it| BASE64_URL_SAFE_NO_PAD.encode(it));
        let message = message.join(".");
        let signature =
            jsonwebtoken::crypto::sign(message.as_bytes(), &self.key, self.algorithm).unwrap();
        format!("{message}.{signature}")
    }
}

fn rsa_key() -> EncodingKey {
    let pair = aws_lc_rs::rsa::KeyPair::generate(KeySize::Rsa2048).unwrap();
    let der = AsDer::<aws_lc_rs::encoding::Pkcs8V1Der<'_>>::as_der(&pair).unwrap();
    // RFC 5958: version, algorithm, and then the key in the format of RFC 8017, which is expected.
    EncodingKey::from_rsa_der(&der.as_ref()[26..])
}

/// Encodes a part of a token.
pub fn encode(part: &Value) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(part.to_string())
}

/// Signs with HS256.
pub fn sign_with_secret(secret: &str, claims: &Value) -> String {
    let key = EncodingKey::from_secret(secret.as_bytes());
    jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, &key).unwrap()
}

/// The keys that most tests share: making RSA keys takes long.
static KEYS: LazyLock<Vec<SigningKey>> = LazyLock::new(|| {
    let new = |algorithm: &Algorithm| SigningKey::new(&format!("{algorithm:?}"), *algorithm);
    ALGORITHMS.iter().map(new).collect()
});

/// Returns one of the keys that all issuers have.
pub fn key(algorithm: Algorithm) -> &'static SigningKey {
    KEYS.iter().find(|it| it.algorithm == algorithm).unwrap()
}

/// The behaviour of an issuer.
pub struct Behaviour {
    /// The keys that it publishes.
    pub keys: Vec<SigningKey>,
    /// Replaces the body of the key set.
    pub key_set: Option<Vec<u8>>,
    /// Replaces the issuer's metadata.
    pub metadata: Option<Value>,
    /// The header of all responses.
    pub cache_control: Option<&'static str>,
    /// The time that each response takes.
    pub delay: Duration,
    /// The status of all responses but tokens.
    pub status: u16,
    /// The path of the metadata.
    pub metadata_path: String,
    /// The number of requests for the keys.
    pub fetches: usize,
    /// The response to a request for tokens with this body: tokens, of which the claims of the ID
    /// token are signed, or an error.
    pub tokens: fn(&str) -> Value,
    /// Claims of the ID token that replace those of `tokens`.
    pub id_token: Option<Value>,
    /// The number of requests for tokens.
    pub token_requests: usize,
    /// The status and the body of userinfo for the newest access token. `None` if the metadata names
    /// no such endpoint.
    pub userinfo: Option<(u16, Value)>,
    /// The newest access token.
    newest: Value,
}

/// A running issuer, stopped when dropped.
pub struct Issuer {
    /// Its URL, which is also its name.
    pub url: String,
    behaviour: Arc<Mutex<Behaviour>>,
    /// While this is locked, no tokens are issued.
    pub issuing: Arc<tokio::sync::Mutex<()>>,
    _served: Served,
}

impl Issuer {
    /// Starts an issuer whose URL has no path.
    pub async fn start() -> Self {
        Self::start_at("", None).await
    }

    /// Starts an issuer whose URL has a path, as those of tenants have, and whose requests may be
    /// recorded.
    pub async fn start_at(path: &str, recorder: Option<&Recorder>) -> Self {
        let behaviour = Arc::new(Mutex::new(Behaviour {
            keys: KEYS.clone(),
            key_set: None,
            metadata: None,
            cache_control: None,
            delay: Duration::ZERO,
            status: 200,
            metadata_path: format!("{path}/.well-known/openid-configuration"),
            fetches: 0,
            tokens: |_| tokens_for(3600),
            id_token: None,
            token_requests: 0,
            userinfo: None,
            newest: Value::Null,
        }));
        let issuing = Arc::default();
        let (shared, gate) = (Arc::clone(&behaviour), Arc::clone(&issuing));
        let served = Served::start_with(async move |url: &str| {
            let router = Router::new().fallback(respond);
            let router = router.with_state((format!("{url}{path}"), shared, gate));
            match recorder {
                Some(recorder) => recorder.layer(router),
                None => router,
            }
        });
        let served = served.await;
        Self {
            url: format!("{}{path}", served.url),
            behaviour,
            issuing,
            _served: served,
        }
    }

    /// Locks its behaviour, which a test may change.
    pub fn behaviour(&self) -> MutexGuard<'_, Behaviour> {
        self.behaviour.lock().unwrap()
    }

    /// Changes its behaviour.
    pub fn change(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.behaviour());
    }

    /// Returns the number of requests for the keys.
    pub fn fetches(&self) -> usize {
        self.behaviour().fetches
    }

    /// Returns one of the keys that all issuers have.
    pub fn key(&self, algorithm: Algorithm) -> &'static SigningKey {
        key(algorithm)
    }

    /// Signs an access token with these claims.
    pub fn sign(&self, algorithm: Algorithm, claims: &Value) -> String {
        self.key(algorithm).sign(claims)
    }

    /// Returns a token, signed with RS256.
    pub fn token(&self, claims: &Value) -> String {
        self.sign(Algorithm::RS256, claims)
    }

    /// Returns an accepted token with other claims; `null` removes a claim.
    pub fn token_with(&self, changes: &Value) -> String {
        let mut claims = claims(&self.url);
        let fields = claims.as_object_mut().unwrap();
        for (name, value) in changes.as_object().unwrap() {
            fields.remove(name);
            if !value.is_null() {
                fields.insert(name.clone(), value.clone());
            }
        }
        self.token(&claims)
    }

    /// Returns an accepted token.
    pub fn valid(&self) -> String {
        self.token(&claims(&self.url))
    }
}

/// Signs an ID token with these claims.
pub fn id_token(claims: &Value) -> String {
    let key = key(Algorithm::RS256);
    key.sign_as(&json!({"alg": "RS256", "kid": key.kid}), claims)
}

/// Returns new tokens whose access token expires after this number of seconds.
pub fn tokens_for(seconds: u64) -> Value {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    json!({
        "access_token": format!("token-{number}"),
        "refresh_token": "refresh",
        "token_type": "bearer",
        "expires_in": seconds,
    })
}

type Shared = (String, Arc<Mutex<Behaviour>>, Arc<tokio::sync::Mutex<()>>);

async fn respond(State((url, behaviour, issuing)): State<Shared>, request: Request) -> Response {
    let json = ("content-type", "application/json");
    let delay = behaviour.lock().unwrap().delay;
    tokio::time::sleep(delay).await;
    let path = request.uri().path().to_owned();
    if path.ends_with("/token") {
        let body = axum::body::to_bytes(request.into_body(), 10_000).await;
        let body = String::from_utf8(body.unwrap().to_vec()).unwrap();
        behaviour.lock().unwrap().token_requests += 1;
        let _issuing = issuing.lock().await;
        let mut behaviour = behaviour.lock().unwrap();
        let mut tokens = (behaviour.tokens)(&body);
        let claims = behaviour.id_token.iter().filter_map(Value::as_object);
        for (name, value) in claims.flatten() {
            tokens["id_token"][name] = value.clone();
        }
        if tokens["id_token"].is_object() {
            tokens["id_token"] = id_token(&tokens["id_token"]).into();
        }
        behaviour.newest = tokens["access_token"].clone();
        // RFC 6749, 5.2.
        let status = if tokens["error"].is_null() { 200 } else { 400 };
        return answer(status, &[json], tokens.to_string());
    }
    let mut behaviour = behaviour.lock().unwrap();
    if let (true, Some((status, body))) = (path.ends_with("/userinfo"), &behaviour.userinfo) {
        let newest = format!("Bearer {}", behaviour.newest.as_str().unwrap_or_default());
        let is_newest = request.headers().get("authorization");
        let is_newest = is_newest.is_some_and(|it| *it == newest);
        let status = if is_newest { *status } else { 401 };
        return answer(status, &[json], body.to_string());
    }
    let body = if path == behaviour.metadata_path {
        let mut own = json!({
            "issuer": url,
            "jwks_uri": format!("{url}/keys"),
            "authorization_endpoint": format!("{url}/authorize"),
            "token_endpoint": format!("{url}/token"),
        });
        if behaviour.userinfo.is_some() {
            own["userinfo_endpoint"] = format!("{url}/userinfo").into();
        }
        let metadata = behaviour.metadata.as_ref().unwrap_or(&own);
        metadata.to_string().into_bytes()
    } else if path.ends_with("/keys") {
        behaviour.fetches += 1;
        let keys: Vec<_> = behaviour.keys.iter().map(SigningKey::public).collect();
        let own = json!({"keys": keys}).to_string().into_bytes();
        behaviour.key_set.clone().unwrap_or(own)
    } else {
        return answer(404, &[], "");
    };
    let cache_control = behaviour.cache_control.map(|it| ("cache-control", it));
    let headers: Vec<_> = cache_control.into_iter().chain([json]).collect();
    answer(behaviour.status, &headers, body)
}
