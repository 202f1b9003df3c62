//! The secrets of one caller.

use std::{collections::HashSet, sync::Arc};

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
