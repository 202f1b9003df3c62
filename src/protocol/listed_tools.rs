//! The tools that a caller sees: in lists, and by the names that models use.

use std::{collections::HashMap, sync::OnceLock};

use crate::{
    Auth, Caller, ServerInfo, Toolkit,
    tool::{definition::name_of, toolkit::ToolEntry},
};

/// The tools of a server, or those that one caller may call.
pub(super) struct ListedTools<'a> {
    toolkit: &'a Toolkit,
    /// The description of the server.
    pub(super) info: &'a ServerInfo,
    /// The credentials that calls require.
    pub(super) auth: &'a Auth,
    /// The URL of the server, if it is known.
    pub(super) server_url: Option<&'a str>,
    /// The caller whose scopes and rules decide; `None` if the list shows all tools.
    reader: Option<&'a Caller>,
}

impl<'a> ListedTools<'a> {
    /// Lists the tools that `reader` may call; without a reader, all tools.
    pub(super) fn new(
        info: &'a ServerInfo,
        toolkit: &'a Toolkit,
        auth: &'a Auth,
        server_url: Option<&'a str>,
        reader: Option<&'a Caller>,
    ) -> Self {
        let sees_all = |reader: &&Caller| toolkit.all().all(|entry| auth.may_call(reader, entry));
        Self {
            info,
            toolkit,
            auth,
            server_url,
            reader: reader.filter(|it| !sees_all(it)),
        }
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

    /// Returns the resources, with their URIs, or the templates of URIs.
    pub(super) fn resources(&self) -> impl Iterator<Item = (&'a str, &'a ToolEntry)> {
        let resources = self.toolkit.resources_with_uris();
        resources.filter(|(_, entry)| self.shows(entry))
    }

    /// Returns the prompts.
    pub(super) fn prompts(&self) -> impl Iterator<Item = &'a ToolEntry> {
        self.toolkit
            .prompt_entries()
            .filter(|entry| self.shows(entry))
    }

    /// Returns true if the list has this tool.
    fn shows(&self, entry: &ToolEntry) -> bool {
        self.reader
            .is_none_or(|caller| self.auth.may_call(caller, entry))
    }
}

/// The newest version of each tool, by its name: for protocols without versions.
#[derive(Default)]
pub(crate) struct ModelNames(OnceLock<HashMap<String, ToolEntry>>);

impl ModelNames {
    /// Returns the index, built on first use: cold starts must not take longer with more tools.
    pub(super) fn index(&self, toolkit: &Toolkit) -> &HashMap<String, ToolEntry> {
        self.0.get_or_init(|| {
            let newest = toolkit.newest();
            newest
                .map(|entry| (name_of(&entry.id, &entry.tool), entry.clone()))
                .collect()
        })
    }
}
