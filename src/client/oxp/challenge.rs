//! Challenges: what a user has to allow before a tool can act for them.
//!
//! OXP 1.0, Authorization Challenges: the user follows `url` once, `check_url` tells when that is
//! done, then the same call succeeds.

use std::time::Instant;

use http::HeaderMap;
use serde::Deserialize;

use super::{Client, status_error};
use crate::client::Error;

/// What the user has to allow, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Challenge {
    /// The challenge's or the provider's id.
    pub id: String,
    /// Where the user goes.
    #[serde(default)]
    pub url: String,
    /// Where a client asks whether the user is done.
    #[serde(default)]
    pub check_url: String,
}

/// What the user has decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// The tool may act: the same call succeeds now.
    Completed,
    /// The user refused, or the challenge came to nothing.
    Failed,
}

impl Client {
    /// Asks until the user has answered a challenge. The server's credentials go to `check_url`
    /// only if it is on the same server.
    ///
    /// # Errors
    /// No decision in time, a `check_url` that is none, an answer that is none.
    pub async fn wait_for(&self, challenge: &Challenge) -> Result<Decision, Error> {
        let base = self.http.base();
        let url = base.join(&challenge.check_url).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
        let (Some(url), false) = (url, challenge.check_url.is_empty()) else {
            return Err(Error::Setup("the challenge has no URL to ask at".into()));
        };
        let begun = Instant::now();
        loop {
            let timeout = self.patience.timeout;
            match self.http.get(url.clone(), HeaderMap::new(), timeout).await {
                Ok(received) if received.status.is_success() => {
                    match received.json()?["status"].as_str() {
                        Some("completed") => return Ok(Decision::Completed),
                        Some("failed") => return Ok(Decision::Failed),
                        Some("pending") => {}
                        _ => return Err(Error::Unreadable("it has no known 'status'".into())),
                    }
                }
                // It may be back before the user is.
                Ok(received) if received.status.is_server_error() => {}
                Err(Error::Unreachable(_)) => {}
                Ok(received) => return Err(status_error(&received)),
                Err(error) => return Err(error),
            }
            if begun.elapsed() + self.poll_every >= self.challenge_for {
                return Err(Error::StillPending);
            }
            tokio::time::sleep(self.poll_every).await;
        }
    }
}
