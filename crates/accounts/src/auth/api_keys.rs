//! API keys, which callers send as they are, and the ids of their secrets.

use std::{collections::HashSet, sync::Arc};

use subtle::ConstantTimeEq;

use super::CredentialCheck;
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
/// # use lambda_tools_accounts as lambda_tools;
/// use lambda_tools::ApiKeys;
///
/// // For `Server::auth`.
/// let keys = ApiKeys::with_ids(["PARTNER_KEY|PARTNER_KEY_NEXT", "OTHER_KEY"]);
/// ```
#[derive(Clone, Debug)]
pub struct ApiKeys(pub(super) Vec<SecretRotation>);

impl ApiKeys {
    /// Accepts the values of the secrets with these ids; never pass the keys themselves. Each id is
    /// a separate caller: callers share neither replays nor users' grants. `"A|A_NEXT"` names two
    /// keys of one caller, so that its key can be rotated; the caller's name is `A`, whichever key
    /// it sends. Without any id, every call is rejected.
    #[must_use]
    pub fn with_ids<I: AsRef<str>>(ids: impl IntoIterator<Item = I>) -> Self {
        Self(SecretRotation::parse_all(ids))
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
    let callers = all.iter().flat_map(|keys| &keys.0);
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

/// The ids of one caller's secrets: the current one and its successors. Each identifies the same
/// caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SecretRotation(Vec<Arc<str>>);

impl SecretRotation {
    /// Parses texts such as `ID` or `ID|ID|…`; those without an id are left out.
    pub(super) fn parse_all<I: AsRef<str>>(texts: impl IntoIterator<Item = I>) -> Vec<Self> {
        let rotations = texts.into_iter().map(|text| {
            let ids = text.as_ref().split('|').map(str::trim);
            Self(ids.filter(|id| !id.is_empty()).map(Arc::from).collect())
        });
        rotations.filter(|it| !it.0.is_empty()).collect()
    }

    /// Returns the caller's name: the first id.
    pub(super) fn name(&self) -> &Arc<str> {
        &self.0[0]
    }

    pub(super) fn ids(&self) -> &[Arc<str>] {
        &self.0
    }

    /// Returns the ids, each after the caller's name.
    pub(super) fn named_ids(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<str>)> {
        self.0.iter().map(move |id| (self.name(), id))
    }
}

/// Returns the first id that is listed more than once.
pub(super) fn duplicate_id<'a>(
    rotations: impl Iterator<Item = &'a SecretRotation>,
) -> Option<&'a str> {
    let mut seen = HashSet::new();
    let mut ids = rotations.flat_map(SecretRotation::ids).map(|id| &**id);
    ids.find(|id| !seen.insert(*id))
}
