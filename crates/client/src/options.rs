//! The options that the clients of all protocols share.

use std::time::Duration;

use lambda_tools_core::Secret;

use super::{JwtSigner, credentials::ClientCredentials};

/// The maximum size of a response: more than Lambda can send.
pub(super) const MAX_RESPONSE_SIZE: usize = 16 * 1024 * 1024;

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
