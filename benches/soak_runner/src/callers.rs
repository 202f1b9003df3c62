//! The callers: API keys, and users with access tokens whose keys change.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use fastrand::Rng;
use serde_json::json;
use test_support::issuer::{Algorithm, Issuer, SigningKey};

/// The audience of the tokens.
pub(crate) const AUDIENCE: &str = "https://tools.example/mcp";
/// The API keys, by the ids of their secrets.
pub(crate) const KEYS: [(&str, &str); 2] = [
    ("KEY_ONE", "marked-one-0123456789abcdef0123456789"),
    ("KEY_TWO", "marked-two-0123456789abcdef0123456789"),
];
/// The time from new keys to tokens that are signed with them: the function looks unknown keys up
/// once in a minute, and forged tokens may have used that one up.
const AHEAD: Duration = Duration::from_secs(70);

/// A header with credentials.
pub(crate) type Credential = (&'static str, String);

pub(crate) struct Callers {
    pub(crate) issuer: Issuer,
    key: SigningKey,
    /// Those of the users, in the order of their numbers.
    pub(crate) tokens: Vec<Credential>,
    /// The time of the next new keys, or that of tokens that they have signed.
    next: Instant,
    has_new_keys: bool,
    /// The time between new keys.
    period: Duration,
}

impl Callers {
    pub(crate) async fn new(period: Duration) -> Self {
        let issuer = Issuer::start().await;
        let mut callers = Self {
            key: issuer.key(Algorithm::RS256).clone(),
            issuer,
            tokens: Vec::new(),
            next: Instant::now() + period,
            has_new_keys: false,
            period,
        };
        callers.renew_tokens();
        callers
    }

    /// Makes new keys in each period, and tokens that they have signed some time later.
    pub(crate) fn rotate_keys(&mut self) {
        if Instant::now() < self.next {
            return;
        }
        if self.has_new_keys {
            self.renew_tokens();
            self.next += self.period.saturating_sub(AHEAD);
        } else {
            let kid = format!("key at {:?}", self.next);
            self.key = SigningKey::new(&kid, Algorithm::RS256);
            let key = self.key.clone();
            // The last key still verifies.
            self.issuer.change(|it| {
                it.keys.insert(0, key);
                it.keys.truncate(2);
            });
            self.next += AHEAD;
        }
        self.has_new_keys = !self.has_new_keys;
    }

    fn renew_tokens(&mut self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_secs();
        let tokens = ["user-0", "user-1", "user-2", "user-3"].map(|user| {
            let token = self.key.sign(&json!({
                "iss": self.issuer.url, "sub": user, "aud": AUDIENCE, "iat": now,
                "exp": now + 86_400, "scope": "mail.read", "client_id": "soak",
            }));
            ("authorization", format!("Bearer {token}"))
        });
        self.tokens = tokens.into();
    }

    pub(crate) fn key(number: usize) -> Credential {
        ("oxp-api-key", KEYS[number].1.to_owned())
    }

    /// Returns the credentials of any caller.
    pub(crate) fn any(&self, random: &mut Rng) -> Credential {
        if random.bool() {
            return Self::key(random.usize(..KEYS.len()));
        }
        self.tokens[random.usize(..self.tokens.len())].clone()
    }

    /// Returns credentials that no caller has. The issuer does not have the key of the last one.
    pub(crate) fn wrong(&self) -> [Credential; 4] {
        let (header, token) = &self.tokens[0];
        let (message, _) = token.rsplit_once('.').unwrap_or_default();
        let (_, payload) = message.split_once('.').unwrap_or_default();
        let unknown = json!({"alg": "RS256", "typ": "at+jwt", "kid": "unknown"}).to_string();
        let unknown = BASE64_URL_SAFE_NO_PAD.encode(unknown);
        let signature = "A".repeat(342);
        [
            ("oxp-api-key", "wrong-0123456789abcdef".into()),
            (*header, "Bearer a.b.c".into()),
            (*header, format!("{message}.{signature}")),
            (*header, format!("Bearer {unknown}.{payload}.{signature}")),
        ]
    }
}
