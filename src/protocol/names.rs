//! Tools by the names that models see, for protocols without versions.

use std::{collections::HashMap, sync::OnceLock};

use super::codec::{EncodedRequest, Operation};
use crate::{
    Toolkit,
    call::rejection::Rejection,
    observe::request_log::RequestNames,
    tool::{
        definition::name_of,
        toolkit::{ToolEntry, closest_name},
    },
};

/// The newest version of each tool, by its name.
#[derive(Default)]
pub(super) struct ModelNames(OnceLock<HashMap<String, ToolEntry>>);

impl ModelNames {
    /// The tool whose newest version has this name.
    pub(super) fn tool_of(&self, name: &str, toolkit: &Toolkit) -> Option<&ToolEntry> {
        self.index(toolkit).get(name)
    }

    /// The tool in the caller's list whose name is closest.
    pub(super) fn closest(&self, name: &str, request: &EncodedRequest<'_>) -> Option<String> {
        let names = self.index(&request.engine.toolkit);
        let is_listed = |entry: &ToolEntry| request.engine.is_listed(entry, request.caller);
        let listed = names.iter().filter(|(_, entry)| is_listed(entry));
        closest_name(name, listed.map(|(name, _)| &**name), names.len(), '_')
    }

    /// Rejects a call of an unknown name. `similar` is the name to look for among the known ones.
    pub(super) fn reject_unknown(
        &self,
        name: String,
        similar: &str,
        call_id: Option<String>,
        request: &EncodedRequest<'_>,
    ) -> Operation {
        let rejection = Rejection::UnknownTool {
            closest: self.closest(similar, request),
            qualified: (&*name).into(),
        };
        let names = RequestNames {
            tool: Some(name),
            call_id,
            trace_id: None,
        };
        Operation::Reject(rejection, names)
    }

    /// Built on first use: cold starts must not take longer with more tools.
    fn index(&self, toolkit: &Toolkit) -> &HashMap<String, ToolEntry> {
        self.0.get_or_init(|| {
            let newest = toolkit.newest();
            newest
                .map(|entry| (name_of(&entry.id, &entry.tool), entry.clone()))
                .collect()
        })
    }
}
