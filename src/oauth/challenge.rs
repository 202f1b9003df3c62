//! Challenges, as they are stored.
//!
//! Each combination of caller, user, provider and scopes has one challenge: a repeated request
//! returns the pending one. A challenge's id consists of the hash in its record id and a nonce that
//! cannot be guessed.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
use uuid::Uuid;

use super::{
    GrantRequest,
    broker::Broker,
    page::ChallengePage,
    records::{Versioned, record_hash},
};
use crate::{
    StoreError,
    clock::since_epoch,
    oauth::Challenge,
    store::{Change, Start},
};

/// The length of the hash in a challenge's id, and of the nonce, in hexadecimal digits.
const HASH_LENGTH: usize = 32;

#[derive(Clone, Deserialize, Serialize)]
pub(super) struct StoredChallenge {
    /// The part of the id that cannot be guessed.
    pub(super) nonce: String,
    /// The caller's namespace.
    pub(super) caller: String,
    pub(super) user: String,
    pub(super) provider: String,
    /// The scopes that the tool needs.
    pub(super) scopes: Vec<String>,
    /// All scopes requested from the provider, once the user has been redirected there.
    #[serde(rename = "asked_for")]
    pub(super) requested: Vec<String>,
    pub(super) status: ChallengeStatus,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ChallengeStatus {
    Pending,
    /// The code is being exchanged.
    Exchanging,
    Completed,
    Failed,
}

impl ChallengeStatus {
    /// Returns the page that explains why the challenge cannot be continued. `None` if it can.
    pub(super) fn page(self) -> Option<ChallengePage> {
        match self {
            Self::Pending => None,
            Self::Exchanging => Some(ChallengePage::InUse),
            Self::Completed => Some(ChallengePage::Completed),
            Self::Failed => Some(ChallengePage::Failed),
        }
    }
}

impl StoredChallenge {
    pub(super) fn has_nonce(&self, nonce: &str) -> bool {
        bool::from(self.nonce.as_bytes().ct_eq(nonce.as_bytes()))
    }
}

/// Returns the record id and the nonce in a challenge's id.
pub(super) fn parse_id(id: &str) -> Option<(String, &str)> {
    let is_valid = id.len() == 2 * HASH_LENGTH && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (hash, nonce) = is_valid.then(|| id.split_at(HASH_LENGTH))?;
    Some((format!("challenge#{hash}"), nonce))
}

/// Returns the id of one attempt at a challenge, so that no two have the same `state` and verifier
/// (RFC 9700, 2.1.1). The provider may redirect the browser back until then, also if a call extends
/// the challenge.
pub(super) fn attempt_id(challenge: &str, returns_until: SystemTime, salt: Uuid) -> String {
    let until = since_epoch(returns_until).as_secs();
    format!("{challenge}.{until}.{}", salt.simple())
}

/// Returns the challenge's id in that of an attempt, and the time in seconds since 1970.
pub(super) fn parse_attempt(attempt: &str) -> Option<(&str, u64)> {
    let mut parts = attempt.split('.');
    Some((parts.next()?, parts.next()?.parse().ok()?))
}

/// Returns the name of a challenge's cookie: unique, so that several challenges can be open at
/// once.
pub(super) fn cookie_name(challenge: &str) -> String {
    let id = challenge.get(..16).unwrap_or_default();
    format!("authorization-{id}")
}

impl Broker {
    /// Returns the challenge for the user: the pending one, or else a new one.
    pub(crate) async fn challenge(
        &self,
        request: GrantRequest<'_>,
    ) -> Result<Challenge, StoreError> {
        let request = request.checked()?;
        let need = request.need;
        let base = self.public_url.resolve(request.base).ok_or_else(|| {
            StoreError::denied(
                "set TOOLS_PUBLIC_URL: the URL at which users reach this server is unknown",
            )
        })?;
        let (caller, scopes) = (request.caller, &need.oauth2.scopes);
        let hash = record_hash("challenge", caller, request.user, &need.id, scopes);
        let records = self.records(Some(request.left)).await?;
        let life = self.settings.challenge_life;
        let change = |versioned: Versioned<StoredChallenge>| {
            let is_running = |it: &StoredChallenge| {
                matches!(
                    it.status,
                    ChallengeStatus::Pending | ChallengeStatus::Exchanging
                )
            };
            let Some(pending) = versioned.value.filter(is_running) else {
                let nonce = self.clock.id().simple().to_string();
                let pending = StoredChallenge {
                    nonce: nonce.clone(),
                    caller: caller.to_owned(),
                    user: request.user.to_owned(),
                    provider: need.id.clone(),
                    scopes: scopes.clone(),
                    requested: Vec::new(),
                    status: ChallengeStatus::Pending,
                };
                return Change::Write(pending, nonce);
            };
            let nonce = pending.nonce.clone();
            if pending.status == ChallengeStatus::Pending && versioned.left < life / 2 {
                // Extends the challenge: the user may be following its URL.
                Change::Write(pending, nonce)
            } else {
                Change::Leave(nonce)
            }
        };
        let record_id = format!("challenge#{hash}");
        let nonce = records.update(Start::Absent, &record_id, life, change);
        let id = format!("{hash}{}", nonce.await?);
        let check_url = format!("{base}/authorization/challenges/{id}");
        Ok(Challenge {
            url: format!("{check_url}/start"),
            check_url,
            id,
            provider: need.id.clone(),
        })
    }

    /// Returns the status of a challenge, for `GET check_url`. A missing challenge is reported as
    /// failed.
    pub(crate) async fn status(&self, id: &str) -> Result<&'static str, StoreError> {
        let Some((record_id, nonce)) = parse_id(id) else {
            return Ok("failed");
        };
        let records = self.records(None).await?;
        let versioned: Versioned<StoredChallenge> = records.load(&record_id).await?;
        let challenge = versioned.value.filter(|it| it.has_nonce(nonce));
        Ok(match challenge.map(|it| it.status) {
            Some(ChallengeStatus::Pending | ChallengeStatus::Exchanging) => "pending",
            Some(ChallengeStatus::Completed) => "completed",
            Some(ChallengeStatus::Failed) | None => "failed",
        })
    }
}
