//! Challenges, as they are kept.
//!
//! There is one for a caller, a user, a provider and a set of scopes: asking again while it is pending gives
//! the same one. Its id is where it is kept, and something that cannot be guessed.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::records::Stored;

/// How many characters of a challenge's id say where it is kept.
const RECORD_ID_LENGTH: usize = 32;

#[derive(Clone, Deserialize, Serialize)]
pub(super) struct StoredChallenge {
    /// What cannot be guessed.
    pub(super) nonce: String,
    /// The namespace of the caller who asks. Items of earlier versions have none.
    #[serde(default)]
    pub(super) caller: String,
    pub(super) user: String,
    pub(super) provider: String,
    /// What the tool needs.
    pub(super) scopes: Vec<String>,
    /// All that the provider is asked for, once the user is on the way there.
    pub(super) asked_for: Vec<String>,
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

impl Stored for StoredChallenge {
    /// Callers may ask for any number, for users whom they have invented.
    fn owner(&self) -> Option<&str> {
        Some(&self.caller)
    }
}

impl StoredChallenge {
    pub(super) fn is_named_by(&self, nonce: &str) -> bool {
        bool::from(self.nonce.as_bytes().ct_eq(nonce.as_bytes()))
    }
}

/// Where something is kept: a hash, because table ids stand in logs and metrics. Who has the table
/// can still find out whether a user that they know is in it.
///
/// Without a caller's namespace it is what it was before there were any.
pub(super) fn record_id_of(
    kind: &str,
    caller: &str,
    user: &str,
    provider: &str,
    scopes: &[String],
) -> String {
    let mut scopes: Vec<_> = scopes.iter().map(String::as_str).collect();
    scopes.sort_unstable();
    scopes.dedup();
    // No kind is called that: what has a caller is in nobody else's place.
    let caller = (!caller.is_empty()).then_some(["caller", caller]);
    let caller = caller.into_iter().flatten();
    let mut hash = Sha256::new();
    for part in caller.chain([kind, user, provider]).chain(scopes) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let hash = hash.finalize();
    let half = hash.first_chunk().expect("a SHA-256 has 32 bytes");
    // As hexadecimal digits.
    format!("{:032x}", u128::from_be_bytes(*half))
}

/// The two halves of a challenge's id.
pub(super) fn parse_id(id: &str) -> Option<(&str, &str)> {
    let is_hex =
        id.len() == 2 * RECORD_ID_LENGTH && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| id.split_at(RECORD_ID_LENGTH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_have_places_of_their_own() {
        let scopes = ["https://www.googleapis.com/auth/gmail.readonly".to_owned()];
        let of = |kind: &str, caller: &str, user: &str| {
            record_id_of(kind, caller, user, "google", &scopes)
        };
        // Items from before there were namespaces are still found.
        assert_eq!(
            of("challenge", "", "user-1"),
            "b9e837c157b2a0d1dc0bba8f09a5087e"
        );
        let mut all = vec![
            of("challenge", "", "user-1"),
            of("challenge", "key A", "user-1"),
            of("challenge", "key B", "user-1"),
            of("challenge", "key A", "user-2"),
            of("grant", "key A", "user-1"),
            // The parts together are the same text.
            of("challenge", "key Au", "ser-1"),
            record_id_of("caller", "", "key A", "challenge", &scopes),
        ];
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn a_challenge_of_an_earlier_version_is_read() {
        let text = r#"{"nonce": "n", "user": "u", "provider": "google", "scopes": [],
            "asked_for": [], "status": "pending"}"#;
        let pending: StoredChallenge = serde_json::from_str(text).unwrap();
        assert_eq!(pending.caller, "");
    }
}
