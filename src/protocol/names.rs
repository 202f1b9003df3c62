//! Tools by the names that models see, for protocols without versions.

use std::{collections::HashMap, sync::OnceLock};

use crate::{
    Caller, Toolkit,
    call::Engine,
    tool::{
        definition::name_of,
        toolkit::{ToolEntry, closest_name},
    },
};

/// The newest version of each tool, by its name.
#[derive(Default)]
pub(crate) struct ModelNames(OnceLock<HashMap<String, ToolEntry>>);

impl ModelNames {
    /// Returns the tool whose newest version has this name.
    pub(super) fn tool_of(&self, name: &str, toolkit: &Toolkit) -> Option<&ToolEntry> {
        self.index(toolkit).get(name)
    }

    /// Returns the tool in the caller's list whose name is closest.
    pub(super) fn closest(&self, name: &str, engine: &Engine, caller: &Caller) -> Option<String> {
        let names = self.index(&engine.toolkit);
        let is_listed = |entry: &ToolEntry| engine.is_listed(entry, caller);
        let listed = names.iter().filter(|(_, entry)| is_listed(entry));
        closest_name(name, listed.map(|(name, _)| &**name), names.len(), '_')
    }

    /// Returns the index, built on first use: cold starts must not take longer with more tools.
    fn index(&self, toolkit: &Toolkit) -> &HashMap<String, ToolEntry> {
        self.0.get_or_init(|| {
            let newest = toolkit.newest();
            newest
                .map(|entry| (name_of(&entry.id, &entry.tool), entry.clone()))
                .collect()
        })
    }
}
