//! Challenges, as they are stored.
//!
//! Each combination of caller, user, provider and scopes has one challenge: a repeated request
//! returns the pending one. A challenge's id consists of the hash in its record id and a nonce that
//! cannot be guessed.

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use super::page::CallbackPage;
use crate::hash;

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
    pub(super) fn page(self) -> Option<CallbackPage> {
        match self {
            Self::Pending => None,
            Self::Exchanging => Some(CallbackPage::InUse),
            Self::Completed => Some(CallbackPage::Completed),
            Self::Failed => Some(CallbackPage::Failed),
        }
    }
}

impl StoredChallenge {
    pub(super) fn has_nonce(&self, nonce: &str) -> bool {
        bool::from(self.nonce.as_bytes().ct_eq(nonce.as_bytes()))
    }
}

/// Returns the hash in a record's id: record ids appear in logs and metrics, so they contain no
/// user ids. Read access to the store still reveals whether a given user is in it. An empty
/// namespace is not hashed.
pub(super) fn record_hash(
    kind: &str,
    caller: &str,
    user: &str,
    provider: &str,
    scopes: &[String],
) -> String {
    let mut scopes: Vec<_> = scopes.iter().map(String::as_str).collect();
    scopes.sort_unstable();
    scopes.dedup();
    // No kind is named "caller", so a hash with a namespace differs from every hash without one.
    let caller = (!caller.is_empty()).then_some(["caller", caller]);
    let caller = caller.into_iter().flatten();
    hash::of_texts(caller.chain([kind, user, provider]).chain(scopes))
}

/// Returns the hash and the nonce in a challenge's id.
pub(super) fn parse_id(id: &str) -> Option<(&str, &str)> {
    let is_valid = id.len() == 2 * HASH_LENGTH && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_valid.then(|| id.split_at(HASH_LENGTH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_caller_has_separate_records() {
        let scopes = ["https://www.googleapis.com/auth/gmail.readonly".to_owned()];
        let hash = |kind: &str, caller: &str, user: &str| {
            record_hash(kind, caller, user, "google", &scopes)
        };
        let mut all = vec![
            hash("challenge", "", "user-1"),
            hash("challenge", "key A", "user-1"),
            hash("challenge", "key B", "user-1"),
            hash("challenge", "key A", "user-2"),
            hash("grant", "key A", "user-1"),
            // The same text if the parts were concatenated.
            hash("challenge", "key Au", "ser-1"),
            record_hash("caller", "", "key A", "challenge", &scopes),
        ];
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
