//! An identity provider whose signing key changes every few minutes.
//!
//! As real ones do, it publishes a key before it signs with it, and keeps publishing it until the
//! last token that was signed with it has expired.

use std::{
    collections::VecDeque,
    error::Error,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use aws_lc_rs::{
    encoding::{AsDer, Pkcs8V1Der},
    rand::SystemRandom,
    rsa::{KeyPair, KeySize},
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair},
};
use axum::{Router, extract::State, routing::get};
use jsonwebtoken::{Algorithm, EncodingKey, Header, jwk::Jwk};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// The audience of the tokens.
pub(crate) const AUDIENCE: &str = "https://tools.example/mcp";

/// The time for which a key is published before tokens are signed with it: longer than the minute in
/// which the function looks up unknown keys once.
const AHEAD: Duration = Duration::from_secs(70);
/// The lifetime of a token.
pub(crate) const LIFETIME: Duration = Duration::from_mins(2);
/// The algorithms, in turn.
const ALGORITHMS: [Algorithm; 3] = [Algorithm::RS256, Algorithm::ES256, Algorithm::EdDSA];

/// A key, and the times at which it is used.
struct Key {
    kid: String,
    algorithm: Algorithm,
    key: EncodingKey,
    public: Value,
    /// Tokens are signed with the newest key that has reached this time.
    signs_from: Instant,
}

impl Key {
    fn new(number: usize, signs_from: Instant) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let algorithm = ALGORITHMS[number % ALGORITHMS.len()];
        let random = SystemRandom::new();
        let key = match algorithm {
            Algorithm::ES256 => {
                let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)?;
                EncodingKey::from_ec_der(der.as_ref())
            }
            Algorithm::EdDSA => {
                let der = Ed25519KeyPair::generate_pkcs8v1(&random)?;
                EncodingKey::from_ed_der(der.as_ref())
            }
            _ => {
                let pair = KeyPair::generate(KeySize::Rsa2048)?;
                let der = AsDer::<Pkcs8V1Der<'_>>::as_der(&pair)?;
                // RFC 5958: version, algorithm, and then the key in the form of RFC 8017.
                EncodingKey::from_rsa_der(&der.as_ref()[26..])
            }
        };
        let kid = format!("key-{number}");
        let mut public = json!(Jwk::from_encoding_key(&key, algorithm)?);
        public["kid"] = kid.clone().into();
        Ok(Self {
            kid,
            algorithm,
            key,
            public,
            signs_from,
        })
    }

    fn sign(&self, claims: &Value) -> Result<String, jsonwebtoken::errors::Error> {
        let mut header = Header::new(self.algorithm);
        header.kid = Some(self.kid.clone());
        header.typ = Some("at+jwt".into());
        jsonwebtoken::encode(&header, claims, &self.key)
    }
}

struct Shared {
    url: String,
    keys: Mutex<VecDeque<Key>>,
    fetches: AtomicU64,
}

/// A running issuer. It stops when it is dropped.
pub(crate) struct Issuer {
    shared: Arc<Shared>,
    /// A key that is never published.
    forged: Key,
    tasks: [JoinHandle<()>; 2],
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Issuer {
    /// Publishes a new key every `period`.
    pub(crate) async fn start(period: Duration) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let shared = Arc::new(Shared {
            url: format!("http://{}", listener.local_addr()?),
            keys: Mutex::new(VecDeque::from([Key::new(0, Instant::now())?])),
            fetches: AtomicU64::default(),
        });
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(metadata))
            .route("/keys", get(keys))
            .with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        let rotating = tokio::spawn(rotate(Arc::clone(&shared), period));
        Ok(Self {
            shared,
            forged: Key::new(usize::MAX, Instant::now())?,
            tasks: [serving, rotating],
        })
    }

    pub(crate) fn url(&self) -> &str {
        &self.shared.url
    }

    /// A token for this user, with the id of the key that has signed it.
    pub(crate) fn token(&self, user: &str) -> String {
        let claims = self.claims(user);
        let keys = self.shared.keys.lock().expect("no thread panics");
        let now = Instant::now();
        let key = keys.iter().rev().find(|key| key.signs_from <= now);
        let token = key.expect("the first key signs at once").sign(&claims);
        token.expect("the claims can be signed")
    }

    /// A token that names a key of the issuer, but is signed with one that the issuer does not have.
    pub(crate) fn forged_token(&self, user: &str) -> String {
        let token = self.token(user);
        let (message, _) = token.rsplit_once('.').expect("a token has three parts");
        let Key { key, algorithm, .. } = &self.forged;
        let signature = jsonwebtoken::crypto::sign(message.as_bytes(), key, *algorithm);
        format!("{message}.{}", signature.expect("the token can be signed"))
    }

    fn claims(&self, user: &str) -> Value {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default();
        json!({
            "iss": self.shared.url,
            "sub": user,
            "aud": AUDIENCE,
            "client_id": "soak",
            "scope": "tools.call",
            "iat": now.as_secs(),
            "exp": (now + LIFETIME).as_secs(),
        })
    }

    /// The number of times that the function has fetched the keys.
    pub(crate) fn fetches(&self) -> u64 {
        self.shared.fetches.load(Relaxed)
    }
}

async fn rotate(shared: Arc<Shared>, period: Duration) {
    for number in 1.. {
        tokio::time::sleep(period).await;
        let key = Key::new(number, Instant::now() + AHEAD).expect("keys can be made");
        let mut keys = shared.keys.lock().expect("no thread panics");
        keys.push_back(key);
        // The next key signs since this long, so no valid token needs the first one.
        let outdated = AHEAD.max(LIFETIME) * 2;
        while keys.len() > 1 && keys[1].signs_from.elapsed() > outdated {
            keys.pop_front();
        }
    }
}

async fn metadata(State(shared): State<Arc<Shared>>) -> String {
    let url = &shared.url;
    json!({"issuer": url, "jwks_uri": format!("{url}/keys")}).to_string()
}

async fn keys(State(shared): State<Arc<Shared>>) -> ([(&'static str, &'static str); 1], String) {
    shared.fetches.fetch_add(1, Relaxed);
    let keys = shared.keys.lock().expect("no thread panics");
    let keys: Vec<_> = keys.iter().map(|key| &key.public).collect();
    let body = json!({"keys": keys}).to_string();
    ([("cache-control", "max-age=300")], body)
}
