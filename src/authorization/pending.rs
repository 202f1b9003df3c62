//! Challenges, as they are kept.
//!
//! There is one for a user, a provider and a set of scopes: asking again while it is pending gives
//! the same one. Its id is where it is kept, and something that cannot be guessed.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// How many characters of a challenge's id say where it is kept.
const PLACE: usize = 32;

#[derive(Clone, Deserialize, Serialize)]
pub(super) struct Pending {
    /// What cannot be guessed.
    pub(super) nonce: String,
    pub(super) user: String,
    pub(super) provider: String,
    /// What the tool needs.
    pub(super) scopes: Vec<String>,
    /// All that the provider is asked for, once the user is on the way there.
    pub(super) asked_for: Vec<String>,
    pub(super) status: Status,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    Pending,
    /// The code is being exchanged.
    Exchanging,
    Completed,
    Failed,
}

impl Pending {
    pub(super) fn is_named_by(&self, nonce: &str) -> bool {
        bool::from(self.nonce.as_bytes().ct_eq(nonce.as_bytes()))
    }
}

/// Where something is kept: a hash, because table ids stand in logs and metrics. Who has the table
/// can still find out whether a user that they know is in it.
pub(super) fn place_of(kind: &str, user: &str, provider: &str, scopes: &[String]) -> String {
    let mut scopes: Vec<_> = scopes.iter().map(String::as_str).collect();
    scopes.sort_unstable();
    scopes.dedup();
    let mut hash = Sha256::new();
    for part in [kind, user, provider].into_iter().chain(scopes) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let hash = hash.finalize();
    let half = hash.first_chunk().expect("a SHA-256 has 32 bytes");
    // As hexadecimal digits.
    format!("{:032x}", u128::from_be_bytes(*half))
}

/// The two halves of a challenge's id.
pub(super) fn halves_of(id: &str) -> Option<(&str, &str)> {
    let is_hex = id.len() == 2 * PLACE && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| id.split_at(PLACE))
}
