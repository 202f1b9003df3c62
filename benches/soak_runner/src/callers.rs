//! The callers: API keys, and users with access tokens whose keys change.

use std::time::{Duration, Instant};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use fastrand::Rng;
use serde_json::json;
use test_support::sign_in::IdentityProvider;

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
    pub(crate) issuer: IdentityProvider,
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
        let mut callers = Self {
            issuer: IdentityProvider::oidc_provider(&[("ACCESS_TOKEN_TTL", "86400")]),
            tokens: Vec::new(),
            next: Instant::now() + period,
            has_new_keys: false,
            period,
        };
        callers.renew_tokens().await;
        callers
    }

    /// Makes new keys in each period, and tokens that they have signed some time later.
    pub(crate) async fn rotate_keys(&mut self) {
        if Instant::now() < self.next {
            return;
        }
        if self.has_new_keys {
            self.renew_tokens().await;
            self.next += self.period.saturating_sub(AHEAD);
        } else {
            self.issuer.rotate_keys().await;
            self.next += AHEAD;
        }
        self.has_new_keys = !self.has_new_keys;
    }

    async fn renew_tokens(&mut self) {
        self.tokens.clear();
        for user in ["user-0", "user-1", "user-2", "user-3"] {
            let parameters = [
                ("user", user),
                ("resource", AUDIENCE),
                ("scope", "mail.read"),
            ];
            let token = self.issuer.token(&parameters).await;
            self.tokens
                .push(("authorization", format!("Bearer {token}")));
        }
    }

    pub(crate) fn key(number: usize) -> Credential {
        ("oxp-api-key", KEYS[number].1.to_owned())
    }

    /// The credentials of any caller.
    pub(crate) fn any(&self, random: &mut Rng) -> Credential {
        if random.bool() {
            return Self::key(random.usize(..KEYS.len()));
        }
        self.tokens[random.usize(..self.tokens.len())].clone()
    }

    /// Credentials that no caller has. The issuer does not have the key of the last one.
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
