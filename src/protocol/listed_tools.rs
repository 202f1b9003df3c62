//! The tools that a list shows to its reader.

use crate::{Auth, Caller, ToolDefinition, Toolkit, tool::toolkit::ToolEntry};

/// The tools of a server, or those that one caller may call.
pub(super) struct ListedTools<'a> {
    toolkit: &'a Toolkit,
    /// The caller whose scopes decide; `None` if the list shows all tools.
    reader: Option<(&'a Auth, &'a Caller)>,
}

impl<'a> ListedTools<'a> {
    /// All tools.
    pub(super) fn complete(toolkit: &'a Toolkit) -> Self {
        let reader = None;
        Self { toolkit, reader }
    }

    /// The tools that the caller has the scopes for.
    pub(super) fn callable(toolkit: &'a Toolkit, auth: &'a Auth, caller: &'a Caller) -> Self {
        let callable = Self {
            toolkit,
            reader: Some((auth, caller)),
        };
        if toolkit.entries().iter().all(|entry| callable.shows(entry)) {
            return Self::complete(toolkit);
        }
        callable
    }

    /// True if the list shows all tools, so that its encoded form can be cached for all callers.
    pub(super) fn is_complete(&self) -> bool {
        self.reader.is_none()
    }

    /// The definitions of all versions.
    pub(super) fn definitions(&self) -> Vec<ToolDefinition> {
        let entries = self.toolkit.entries().iter();
        let shown = entries.filter(|entry| self.shows(entry));
        shown
            .map(|entry| ToolDefinition::of(&entry.id, &entry.tool))
            .collect()
    }

    /// The newest version of each tool.
    pub(super) fn newest(&self) -> impl Iterator<Item = &'a ToolEntry> {
        self.toolkit.newest().filter(|entry| self.shows(entry))
    }

    /// True if the list has this tool.
    pub(super) fn shows(&self, entry: &ToolEntry) -> bool {
        self.reader
            .is_none_or(|(auth, caller)| auth.may_call(caller, &entry.tool))
    }
}
