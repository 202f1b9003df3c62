//! An identity provider with the keys and the responses that a test gives it.

use std::{
    sync::{Arc, LazyLock, Mutex},
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
    body::Body,
    extract::{Request, State},
    response::Response,
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, Header, jwk::Jwk};
use serde_json::{Value, json};

/// The supported algorithms.
pub(crate) const ALGORITHMS: [Algorithm; 5] = [
    Algorithm::RS256,
    Algorithm::PS256,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// The time of a fixed clock, in seconds since 1970.
pub(crate) const NOW: u64 = 471_252 * 3600;

/// Claims that are accepted, of a user named alice.
pub(crate) fn claims(issuer: &str) -> Value {
    json!({
        "iss": issuer,
        "sub": "alice",
        "aud": super::URL,
        "exp": NOW + 600,
        "iat": NOW,
    })
}

/// A key with its id, which names its algorithm.
#[derive(Clone)]
pub(crate) struct SigningKey {
    pub(crate) kid: String,
    pub(crate) algorithm: Algorithm,
    pub(crate) key: EncodingKey,
}

impl SigningKey {
    /// A new key.
    pub(crate) fn new(kid: &str, algorithm: Algorithm) -> Self {
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

    /// The public key, as an issuer publishes it.
    pub(crate) fn public(&self) -> Value {
        let jwk = Jwk::from_encoding_key(&self.key, self.algorithm).unwrap();
        let mut jwk = json!(jwk);
        jwk["kid"] = self.kid.clone().into();
        jwk["use"] = "sig".into();
        jwk
    }

    pub(crate) fn sign(&self, claims: &Value) -> String {
        let header = json!({"alg": self.algorithm, "kid": self.kid, "typ": "at+jwt"});
        self.sign_as(&header, claims)
    }

    /// Signs any header, even one that contradicts the key.
    pub(crate) fn sign_as(&self, header: &Value, claims: &Value) -> String {
        self.sign_text(&header.to_string(), &claims.to_string())
    }

    /// Signs any text, even one that is no JSON.
    pub(crate) fn sign_text(&self, header: &str, claims: &str) -> String {
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
    // RFC 5958: version, algorithm, and then the key in the form of RFC 8017, which is expected.
    EncodingKey::from_rsa_der(&der.as_ref()[26..])
}

/// A part of a token.
pub(crate) fn encode(part: &Value) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(part.to_string())
}

/// Signs with HS256.
pub(crate) fn sign_with_secret(secret: &str, claims: &Value) -> String {
    let key = EncodingKey::from_secret(secret.as_bytes());
    jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, &key).unwrap()
}

/// The keys that most tests share: making RSA keys takes long.
static KEYS: LazyLock<Vec<SigningKey>> = LazyLock::new(|| {
    let new = |algorithm: &Algorithm| SigningKey::new(&format!("{algorithm:?}"), *algorithm);
    ALGORITHMS.iter().map(new).collect()
});

/// The behaviour of an issuer.
pub(crate) struct Behaviour {
    pub(crate) keys: Vec<SigningKey>,
    /// Replaces the body of the key set.
    pub(crate) key_set: Option<Vec<u8>>,
    /// Replaces the issuer's metadata.
    pub(crate) metadata: Option<Value>,
    pub(crate) cache_control: Option<&'static str>,
    pub(crate) delay: Duration,
    pub(crate) status: u16,
    /// The path of the metadata.
    pub(crate) metadata_path: String,
    /// The number of requests for the keys.
    pub(crate) fetches: usize,
}

/// A running issuer. It stops serving when it is dropped.
pub(crate) struct Issuer {
    pub(crate) url: String,
    pub(crate) behaviour: Arc<Mutex<Behaviour>>,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Issuer {
    pub(crate) async fn start() -> Self {
        Self::start_at("").await
    }

    /// An issuer whose URL has a path, as those of tenants have.
    pub(crate) async fn start_at(path: &str) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}{path}", listener.local_addr().unwrap());
        let behaviour = Arc::new(Mutex::new(Behaviour {
            keys: KEYS.clone(),
            key_set: None,
            metadata: None,
            cache_control: None,
            delay: Duration::ZERO,
            status: 200,
            metadata_path: format!("{path}/.well-known/openid-configuration"),
            fetches: 0,
        }));
        let state = (url.clone(), Arc::clone(&behaviour));
        let router = Router::new().fallback(answer).with_state(state);
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            url,
            behaviour,
            serving,
        }
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.behaviour.lock().unwrap());
    }

    pub(crate) fn fetches(&self) -> usize {
        self.behaviour.lock().unwrap().fetches
    }

    /// Withdraws all other keys.
    pub(crate) fn use_only(&self, algorithm: Algorithm) {
        self.change(|it| it.keys.retain(|key| key.algorithm == algorithm));
    }

    /// One of the keys that all issuers have.
    #[expect(
        clippy::unused_self,
        reason = "the key of this issuer, for its readers"
    )]
    pub(crate) fn key(&self, algorithm: Algorithm) -> &'static SigningKey {
        KEYS.iter().find(|it| it.algorithm == algorithm).unwrap()
    }

    pub(crate) fn sign(&self, algorithm: Algorithm, claims: &Value) -> String {
        self.key(algorithm).sign(claims)
    }

    /// A token, signed with RS256.
    pub(crate) fn token(&self, claims: &Value) -> String {
        self.sign(Algorithm::RS256, claims)
    }

    /// An accepted token.
    pub(crate) fn valid(&self) -> String {
        self.token(&claims(&self.url))
    }
}

type Shared = (String, Arc<Mutex<Behaviour>>);

async fn answer(State((url, behaviour)): State<Shared>, request: Request) -> Response {
    let delay = behaviour.lock().unwrap().delay;
    tokio::time::sleep(delay).await;
    let mut behaviour = behaviour.lock().unwrap();
    let path = request.uri().path();
    let body = if path == behaviour.metadata_path {
        let own = json!({"issuer": url, "jwks_uri": format!("{url}/keys")});
        behaviour
            .metadata
            .clone()
            .unwrap_or(own)
            .to_string()
            .into_bytes()
    } else if path.ends_with("/keys") {
        behaviour.fetches += 1;
        let keys: Vec<_> = behaviour.keys.iter().map(SigningKey::public).collect();
        let own = json!({"keys": keys}).to_string().into_bytes();
        behaviour.key_set.clone().unwrap_or(own)
    } else {
        return Response::builder().status(404).body(Body::empty()).unwrap();
    };
    let mut response = Response::builder().status(behaviour.status);
    if let Some(value) = behaviour.cache_control {
        response = response.header("cache-control", value);
    }
    response.body(body.into()).unwrap()
}
