//! The scopes that a token must have for a call.

use std::collections::BTreeSet;

use super::Auth;
use crate::{Caller, Toolkit, tool::parts::ToolParts};

impl Auth {
    /// Returns the scopes that every call requires.
    pub(crate) fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Returns the scopes to ask the user for: those that the call requires, and those that the
    /// token already has and that other tools require, so that a new token does not lose them.
    /// `None` if the caller has all that are required, or is not restricted by scopes.
    pub(crate) fn missing_scopes(
        &self,
        caller: &Caller,
        tool: &ToolParts,
        toolkit: &Toolkit,
    ) -> Option<Vec<String>> {
        let granted = caller.scopes()?;
        if self.may_call(caller, tool) {
            return None;
        }
        let required = self.scopes.iter().chain(&tool.scopes).map(String::as_str);
        let known = self.known_scopes(toolkit);
        let kept = known.filter(|scope| is_granted(scope, granted));
        let wanted: BTreeSet<_> = required.chain(kept).collect();
        Some(wanted.into_iter().map(str::to_owned).collect())
    }

    /// Returns true if the caller's token has the scopes of a tool, and those of every call.
    pub(crate) fn may_call(&self, caller: &Caller, tool: &ToolParts) -> bool {
        let Some(granted) = caller.scopes() else {
            return true;
        };
        let mut required = self.scopes.iter().chain(&tool.scopes);
        required.all(|scope| is_granted(scope, granted))
    }

    /// Returns the scopes that any call requires, some more than once.
    pub(crate) fn known_scopes<'a>(
        &'a self,
        toolkit: &'a Toolkit,
    ) -> impl Iterator<Item = &'a str> {
        let tools = toolkit.entries().iter();
        let of_tools = tools.flat_map(|entry| &entry.tool.scopes);
        self.scopes.iter().chain(of_tools).map(String::as_str)
    }
}

/// Returns true if a scope is granted. Azure's clients ask for
/// `https://tools.example/mcp/mail.read`, and get a token for that resource with the scope
/// `mail.read`. Its audience has been checked, so no other resource's scope of that name can be
/// meant.
fn is_granted(required: &str, granted: &[String]) -> bool {
    let path = required.split_once("://").map(|(_, path)| path);
    let short = path.and_then(|path| path.rsplit('/').next());
    let is_it = |scope: &String| scope == required || Some(&**scope) == short;
    granted.iter().any(is_it)
}
