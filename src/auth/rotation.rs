//! The secrets of one caller.

use std::{collections::HashSet, sync::Arc};

/// The ids of the secrets that are one caller's: the one in use, and those between which a
/// rotation goes. Whichever of them fits, it is the same caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SecretRotation(Vec<Arc<str>>);

impl SecretRotation {
    /// Reads `ID` or `ID|ID|…`. None where there is no id.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let ids = text.split('|').map(str::trim).filter(|id| !id.is_empty());
        let ids: Vec<_> = ids.map(Arc::from).collect();
        (!ids.is_empty()).then_some(Self(ids))
    }

    /// The caller's name: the first id.
    pub(super) fn name(&self) -> &Arc<str> {
        &self.0[0]
    }

    pub(super) fn ids(&self) -> &[Arc<str>] {
        &self.0
    }
}

/// Each id with the name of its caller.
pub(super) fn named(all: &[SecretRotation]) -> impl Iterator<Item = (&Arc<str>, &Arc<str>)> {
    all.iter()
        .flat_map(|one| one.ids().iter().map(move |id| (one.name(), id)))
}

/// The first id that is there more than once.
pub(super) fn named_twice(all: &[SecretRotation]) -> Option<&str> {
    let mut seen = HashSet::new();
    let mut ids = all.iter().flat_map(SecretRotation::ids).map(|id| &**id);
    ids.find(|id| !seen.insert(*id))
}
