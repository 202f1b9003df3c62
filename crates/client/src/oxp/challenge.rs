//! Authorization challenges: permissions that a tool needs from the user before it can act.
//!
//! OXP 1.0, Authorization Challenges: the user opens `url` once, `check_url` reports completion,
//! and the same call then succeeds.

use std::time::{Duration, Instant};

use http::HeaderMap;

use super::OxpClient;
use crate::{
    ClientError,
    outcome::AuthorizationChallenge,
    response::ReceivedResponse,
    retry::{RetryAdvice, advice_on},
};

const SHORTEST_WAIT: Duration = Duration::from_millis(10);

/// The user's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChallengeDecision {
    /// The user granted the permission: the same call can now succeed.
    Completed,
    /// The user declined, or the challenge failed.
    Failed,
}

impl OxpClient {
    /// Polls until the user has decided. `check_url` may be on any server, as the specification
    /// allows; credentials are sent only if it is on the client's own server.
    ///
    /// # Errors
    /// There was no decision in time, or the `check_url` or a response was invalid.
    pub async fn wait_for(
        &self,
        challenge: &AuthorizationChallenge,
    ) -> Result<ChallengeDecision, ClientError> {
        let url = self.http.base.join(&challenge.check_url).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
        let (Some(url), false) = (url, challenge.check_url.is_empty()) else {
            return Err(ClientError::Setup(
                "the challenge has no valid check_url".into(),
            ));
        };
        let started = Instant::now();
        let remaining = || self.challenge_timeout.saturating_sub(started.elapsed());
        let interval = self.poll_interval.max(SHORTEST_WAIT);
        loop {
            if remaining().is_zero() {
                return Err(ClientError::StillPending);
            }
            let timeout = self.http.options.limits.timeout.min(remaining());
            let response = self.http.get(url.clone(), HeaderMap::new(), timeout).await;
            let after = match advice_on(response.as_ref()) {
                // The server may recover before the user decides.
                RetryAdvice::Again(after) => after,
                RetryAdvice::Done => match decision_in(&response?)? {
                    Some(decision) => return Ok(decision),
                    None => None,
                },
            };
            let wait = interval.max(after.unwrap_or_default());
            tokio::time::sleep(wait.min(remaining())).await;
        }
    }
}

fn decision_in(response: &ReceivedResponse) -> Result<Option<ChallengeDecision>, ClientError> {
    if !response.status.is_success() {
        return Err(response.status_error());
    }
    match response.json()?["status"].as_str() {
        Some("completed") => Ok(Some(ChallengeDecision::Completed)),
        Some("failed") => Ok(Some(ChallengeDecision::Failed)),
        Some("pending") => Ok(None),
        _ => Err(ClientError::Unreadable("it has no known 'status'".into())),
    }
}
