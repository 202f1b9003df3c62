//! Challenges: what a user has to allow before a tool can act for them.
//!
//! OXP 1.0, Authorization Challenges: the user follows `url` once, `check_url` tells when that is
//! done, then the same call succeeds.

use std::time::{Duration, Instant};

use http::HeaderMap;
use serde::Deserialize;

use super::{OxpClient, advice_on, status_error};
use crate::client::{ClientError, http::ReceivedResponse, retry::RetryAdvice};

const SHORTEST_WAIT: Duration = Duration::from_millis(10);

/// What the user has to allow, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct AuthorizationChallenge {
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
pub enum ChallengeDecision {
    /// The tool may act: the same call succeeds now.
    Completed,
    /// The user refused, or the challenge came to nothing.
    Failed,
}

impl OxpClient {
    /// Asks until the user has answered a challenge. `check_url` is asked wherever it is, as the
    /// specification has it; the credentials go along only if it is on the same server.
    ///
    /// # Errors
    /// No decision in time, a `check_url` that is none, an answer that is none.
    pub async fn wait_for(
        &self,
        challenge: &AuthorizationChallenge,
    ) -> Result<ChallengeDecision, ClientError> {
        let base = self.http.base();
        let url = base.join(&challenge.check_url).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
        let (Some(url), false) = (url, challenge.check_url.is_empty()) else {
            return Err(ClientError::Setup(
                "the challenge has no URL to ask at".into(),
            ));
        };
        let begun = Instant::now();
        let every = self.poll_every.max(SHORTEST_WAIT);
        loop {
            let left = self.challenge_for.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(ClientError::StillPending);
            }
            let timeout = self.patience.timeout.min(left);
            let received = self.http.get(url.clone(), HeaderMap::new(), timeout).await;
            let after = match advice_on(&received) {
                // It may be back before the user is.
                RetryAdvice::Again(after) => after,
                RetryAdvice::Done => match decision_in(&received?)? {
                    Some(decision) => return Ok(decision),
                    None => None,
                },
            };
            let left = self.challenge_for.saturating_sub(begun.elapsed());
            tokio::time::sleep(every.max(after.unwrap_or_default()).min(left)).await;
        }
    }
}

fn decision_in(received: &ReceivedResponse) -> Result<Option<ChallengeDecision>, ClientError> {
    if !received.status.is_success() {
        return Err(status_error(received));
    }
    match received.json()?["status"].as_str() {
        Some("completed") => Ok(Some(ChallengeDecision::Completed)),
        Some("failed") => Ok(Some(ChallengeDecision::Failed)),
        Some("pending") => Ok(None),
        _ => Err(ClientError::Unreadable("it has no known 'status'".into())),
    }
}
