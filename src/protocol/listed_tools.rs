//! The tools that a caller sees: in lists, and by the names that models use.

use std::{collections::HashMap, sync::OnceLock};

use crate::{
    Auth, Caller, Toolkit,
    call::Engine,
    tool::{
        definition::name_of,
        toolkit::{ToolEntry, closest_name},
    },
};

/// The tools of a server, or those that one caller may call.
#[derive(Clone, Copy)]
pub(super) struct ListedTools<'a> {
    toolkit: &'a Toolkit,
    /// The credentials that calls require.
    pub(super) auth: &'a Auth,
    /// The URL of the server, if it is known.
    server_url: Option<&'a str>,
    /// The caller whose scopes decide; `None` if the list shows all tools.
    reader: Option<&'a Caller>,
}

impl<'a> ListedTools<'a> {
    /// Lists all tools.
    pub(super) fn complete(
        toolkit: &'a Toolkit,
        auth: &'a Auth,
        server_url: Option<&'a str>,
    ) -> Self {
        Self {
            toolkit,
            auth,
            server_url,
            reader: None,
        }
    }

    /// Returns the tools that the caller has the scopes for.
    pub(super) fn callable_by(self, caller: &'a Caller) -> Self {
        let callable = Self {
            reader: Some(caller),
            ..self
        };
        let mut entries = self.toolkit.entries().iter();
        if entries.all(|entry| callable.shows(entry)) {
            return self;
        }
        callable
    }

    pub(super) fn server_url(&self) -> Option<&'a str> {
        self.server_url
    }

    /// Returns true if the list shows all tools, so that its encoding can be cached for all
    /// callers.
    pub(super) fn is_complete(&self) -> bool {
        self.reader.is_none()
    }

    /// Returns all versions of each tool.
    pub(super) fn entries(&self) -> impl Iterator<Item = &'a ToolEntry> {
        let entries = self.toolkit.entries().iter();
        entries.filter(|entry| self.shows(entry))
    }

    /// Returns the newest version of each tool.
    pub(super) fn newest(&self) -> impl Iterator<Item = &'a ToolEntry> {
        self.toolkit.newest().filter(|entry| self.shows(entry))
    }

    /// Returns true if the list has this tool.
    pub(super) fn shows(&self, entry: &ToolEntry) -> bool {
        self.reader
            .is_none_or(|caller| self.auth.may_call(caller, &entry.tool))
    }
}

/// The newest version of each tool, by its name: for protocols without versions.
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
