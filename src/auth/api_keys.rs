//! API keys, which callers send as they are.

use std::sync::Arc;

use subtle::ConstantTimeEq;

use super::{attempt::CredentialCheck, rotation::SecretRotation};
use crate::{Caller, secrets::ReadResult};

/// The minimum length of a key in bytes: shorter ones can be guessed.
pub(super) const SHORTEST: usize = 16;

/// API keys, which callers send as `OXP-API-Key` or, as the published clients do, as
/// `Authorization: Bearer`.
///
/// API keys are secrets, like those of tools: their ids are configured here; their values are in
/// the server's [store](crate::secrets).
///
/// ```
/// use lambda_tools::{ApiKeys, Server, Toolkit};
///
/// let keys = ApiKeys::with_ids(["PARTNER_KEY|PARTNER_KEY_NEXT", "OTHER_KEY"]);
/// let server = Server::new(Toolkit::new([])?).auth(keys);
/// # Ok::<(), lambda_tools::BuildError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ApiKeys(Vec<SecretRotation>);

impl ApiKeys {
    /// Accepts the values of the secrets with these ids; never pass the keys themselves. Each id is
    /// a separate caller: callers share neither replays nor users' grants. `"A|A_NEXT"` names two
    /// keys of one caller, so that its key can be rotated; the caller's name is `A`, whichever key
    /// it sends. Without any id, every call is rejected.
    #[must_use]
    pub fn with_ids<I: AsRef<str>>(ids: impl IntoIterator<Item = I>) -> Self {
        Self(SecretRotation::parse_all(ids))
    }

    pub(super) fn callers(&self) -> &[SecretRotation] {
        &self.0
    }
}

/// Returns the caller whose key was presented. `reads` has the keys in the order of their ids.
///
/// All keys are compared, even after a match, and the time of a comparison does not depend on how
/// much of a key matches.
pub(super) fn identify(
    all: &[ApiKeys],
    presented: &[u8],
    reads: impl Iterator<Item = ReadResult>,
    check: &mut CredentialCheck,
) -> Option<Caller> {
    let mut caller = None;
    let mut has_key = false;
    let callers = all.iter().flat_map(ApiKeys::callers);
    let ids = callers.flat_map(SecretRotation::named_ids);
    for ((name, id), read) in ids.zip(reads) {
        let Some(key) = check.secret(id, SHORTEST, read) else {
            continue;
        };
        has_key = true;
        // Secrets pasted into a store often end with a line feed, which no header can carry.
        let is_match = bool::from(key.expose().trim().as_bytes().ct_eq(presented));
        if is_match & caller.is_none() {
            caller = Some(Arc::clone(name));
        }
    }
    check.reason = Some(if has_key {
        "the API key is not valid"
    } else {
        // Every call is rejected until the store has a key.
        "the server has no API key to compare with"
    });
    caller.map(|id| Caller::ApiKey { id })
}
