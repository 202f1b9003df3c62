//! The options that the clients of all protocols share, and their credentials.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderName, HeaderValue, header::AUTHORIZATION};
use jsonwebtoken::{EncodingKey, Header, crypto::aws_lc};
use lambda_tools_core::Secret;
use serde_json::json;

use super::ClientError;

/// The maximum size of a response: more than Lambda can send.
pub(super) const MAX_RESPONSE_SIZE: usize = 16 * 1024 * 1024;

/// The lifetime of a token: OXP 1.0, Server Authentication, recommends at most 15 minutes.
const LIFE: Duration = Duration::from_mins(5);
/// The minimum length of a secret in bytes: that of the hash (RFC 7518, 3.2).
const SHORTEST_SECRET: usize = 32;

/// The options of a client, the same for all protocols.
///
/// By default, a client sends no credentials; an attempt takes at most 30 seconds; and a request
/// has at most 4 attempts and takes at most 90 seconds, including the waits between attempts. A
/// response may have at most 16 MiB.
///
/// ```
/// # mod lambda_tools { pub use lambda_tools_client as client; }
/// use std::time::Duration;
///
/// use lambda_tools::client::{ClientOptions, oxp::OxpClient};
///
/// # fn main() -> Result<(), lambda_tools::client::ClientError> {
/// let options = ClientOptions::default()
///     .api_key("my-api-key")
///     .timeout(Duration::from_secs(5));
/// let client = OxpClient::new("https://tools.example", options)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ClientOptions {
    pub(super) credentials: ClientCredentials,
    /// True if credentials may be sent to other machines unencrypted.
    pub(super) allows_http: bool,
    /// The time limit of one attempt.
    pub(super) timeout: Duration,
    /// The time limit of all attempts, including the waits between them.
    pub(super) deadline: Duration,
    pub(super) attempts: u32,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            credentials: ClientCredentials::None,
            allows_http: false,
            timeout: Duration::from_secs(30),
            deadline: Duration::from_secs(90),
            attempts: 4,
        }
    }
}

impl ClientOptions {
    /// Sends an API key: over OXP in the header `OXP-API-Key`, otherwise as `Authorization: Bearer`.
    pub fn api_key(mut self, key: impl Into<Secret>) -> Self {
        self.credentials = ClientCredentials::ApiKey(key.into());
        self
    }

    /// Sends JWTs that the client signs itself, which OXP's specification prefers to API keys.
    pub fn jwt(mut self, jwt: JwtSigner) -> Self {
        self.credentials = ClientCredentials::Jwt(jwt);
        self
    }

    /// Allows credentials to be sent to other machines over `http://`. Use it only for a server inside
    /// a network that you trust: without encryption, everyone on the way can read them.
    pub fn allow_http(mut self) -> Self {
        self.allows_http = true;
        self
    }

    /// Sets the time limit of one attempt.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = time;
        self
    }

    /// Sets the time limit of a request, including all its attempts and the waits between them. The
    /// OpenTool client makes one attempt only, so this and [`attempts`](Self::attempts) do not apply
    /// to it.
    pub fn deadline(mut self, time: Duration) -> Self {
        self.deadline = time;
        self
    }

    /// Sets the maximum number of attempts; 1 disables retries.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }
}

/// The signer of a client's JWTs, with HS256: a new one for every request, each valid for a few
/// minutes.
///
/// ```
/// # mod lambda_tools { pub use lambda_tools_client as client; }
/// use lambda_tools::client::JwtSigner;
///
/// let tokens = JwtSigner::signed_with("a-secret-of-32-bytes-or-more-.....").subject("user-1");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct JwtSigner {
    secret: Secret,
    subject: Option<String>,
    audience: Option<String>,
}

impl JwtSigner {
    /// Signs tokens with this secret of at least 32 bytes; they are valid for 5 minutes.
    pub fn signed_with(secret: impl Into<Secret>) -> Self {
        // This does nothing if the program has already installed a provider.
        let _ = aws_lc::DEFAULT_PROVIDER.install_default();
        Self {
            secret: secret.into(),
            subject: None,
            audience: None,
        }
    }

    /// Sets the `sub` claim: the caller.
    pub fn subject(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// Sets the `aud` claim: the server that the token is for.
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audience = Some(audience.into());
        self
    }

    fn token(&self) -> Result<String, ClientError> {
        // Values pasted into a store often end with a line feed, which servers ignore as well.
        let secret = self.secret.expose().trim_end_matches(['\r', '\n']);
        let secret = secret.as_bytes();
        if secret.len() < SHORTEST_SECRET {
            let text = "the JWT signing secret has fewer than 32 bytes";
            return Err(ClientError::Setup(text.to_owned()));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let iat = now.unwrap_or_default().as_secs();
        let mut claims = json!({"iat": iat, "exp": iat + LIFE.as_secs()});
        for (name, value) in [("sub", &self.subject), ("aud", &self.audience)] {
            if let Some(value) = value {
                claims[name] = json!(value);
            }
        }
        let key = EncodingKey::from_secret(secret);
        jsonwebtoken::encode(&Header::default(), &claims, &key)
            .map_err(|error| ClientError::Setup(format!("a JWT cannot be signed: {error}")))
    }
}

#[derive(Clone, Debug)]
pub(super) enum ClientCredentials {
    None,
    ApiKey(Secret),
    Jwt(JwtSigner),
}

impl ClientCredentials {
    /// Returns the header that carries the credentials, and the key or token in it. An API key is
    /// sent in `key_header`; without one, as a bearer token.
    pub(super) fn header(
        &self,
        key_header: Option<&HeaderName>,
    ) -> Result<Option<(HeaderName, HeaderValue, Secret)>, ClientError> {
        let (key_header, token) = match self {
            Self::None => return Ok(None),
            Self::ApiKey(key) => (key_header, key.expose().trim().to_owned()),
            Self::Jwt(jwt) => (None, jwt.token()?),
        };
        let (name, scheme) = match key_header {
            Some(name) => (name.clone(), ""),
            None => (AUTHORIZATION, "Bearer "),
        };
        let invalid_key = |_| ClientError::Setup("the API key is not a valid header value".into());
        let value = HeaderValue::try_from(format!("{scheme}{token}"));
        let mut value = value.map_err(invalid_key)?;
        value.set_sensitive(true);
        Ok(Some((name, value, token.into())))
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
    use serde_json::Value;

    use super::*;

    fn claims_of(jwt: &JwtSigner) -> Value {
        let token = jwt.token().unwrap();
        let claims = token.split('.').nth(1).unwrap();
        let claims = BASE64_URL_SAFE_NO_PAD.decode(claims).unwrap();
        serde_json::from_slice(&claims).unwrap()
    }

    #[test]
    fn tokens_expire_within_minutes_and_carry_no_extra_claims() {
        let jwt = || JwtSigner::signed_with("a-secret-of-32-bytes-or-more-0123\n");
        let life =
            |claims: &Value| claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap();
        let plain = claims_of(&jwt());
        assert_eq!((life(&plain), plain.as_object().unwrap().len()), (300, 2));
        let full = claims_of(&jwt().subject("s").audience("a"));
        assert_eq!(
            (&full["sub"], &full["aud"], life(&full)),
            (&json!("s"), &json!("a"), 300)
        );
    }
}
