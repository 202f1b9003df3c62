//! The tools that a list shows to its reader.

use crate::{Auth, Caller, Toolkit, tool::toolkit::ToolEntry};

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
