//! Tools by the names that models see, for protocols without versions.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use super::codec::EncodedRequest;
use crate::{
    Toolkit,
    tool::{
        definition::name_of,
        toolkit::{ToolEntry, closest_name},
    },
};

/// The newest version of each tool, by its name.
#[derive(Default)]
pub(super) struct ModelNames(OnceLock<HashMap<String, Arc<str>>>);

impl ModelNames {
    /// The `Toolkit.Tool` whose newest version has this name.
    pub(super) fn tool_of(&self, name: &str, toolkit: &Toolkit) -> Option<Arc<str>> {
        self.index(toolkit).get(name).cloned()
    }

    /// The closest name in the caller's list.
    pub(super) fn closest(&self, name: &str, request: &EncodedRequest<'_>) -> Option<String> {
        let names = self.index(&request.engine.toolkit);
        let listed = names.iter().filter(|(_, id)| request.is_listed(id));
        closest_name(name, listed.map(|(name, _)| &**name), names.len(), '_')
    }

    /// Built on first use: cold starts must not take longer with more tools.
    fn index(&self, toolkit: &Toolkit) -> &HashMap<String, Arc<str>> {
        self.0.get_or_init(|| {
            let name_and_id =
                |entry: &ToolEntry| (name_of(&entry.id, &entry.tool), entry.id.shared());
            toolkit.newest().map(name_and_id).collect()
        })
    }
}
