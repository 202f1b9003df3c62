//! Environment variables that are named like settings but are not settings.
//!
//! A misspelt setting has no effect, and nothing else would say so.

use std::{collections::BTreeSet, env};

use super::{
    list,
    variables::{PROVIDERS, names},
};
use crate::{
    Server,
    assemble::declared_secrets,
    text::{clipped, closest},
};

const PREFIX: &str = "TOOLS_";

/// The longest name that is shown and compared, in bytes.
const LONGEST: usize = 64;

/// Returns a sentence for each variable in the environment that is neither a setting nor one of the
/// server's secrets, which may have names like settings. Values are never shown.
pub(super) fn sentences(server: &Server) -> Vec<String> {
    let settings: BTreeSet<_> = names().collect();
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let names = names.filter(|name| name.starts_with(PREFIX) && !settings.contains(name));
    let names: BTreeSet<_> = names.collect();
    if names.is_empty() {
        // A cold start does not look through all tools for their secrets.
        return Vec::new();
    }
    let known: BTreeSet<_> = settings.into_iter().chain(secrets(server)).collect();
    let unknown = names.difference(&known);
    unknown.map(|name| sentence(name, &known)).collect()
}

fn sentence(name: &str, known: &BTreeSet<String>) -> String {
    let name = clipped(name, LONGEST);
    let rest = name.strip_prefix(PREFIX).unwrap_or(&name);
    let known = known.iter().filter_map(|known| known.strip_prefix(PREFIX));
    match closest(rest, known) {
        Some(known) => format!("{name} is not a setting; did you mean {PREFIX}{known}?"),
        None => format!("{name} is not a setting"),
    }
}

/// Returns the ids of secrets: those that the server reads, and those that it would read with other
/// settings.
fn secrets(server: &Server) -> BTreeSet<String> {
    let lists = [
        ("TOOLS_API_KEY_IDS", "TOOLS_API_KEY"),
        ("TOOLS_JWT_SECRET_IDS", "TOOLS_JWT_SECRET"),
        ("TOOLS_OAUTH_KEY_IDS", "TOOLS_OAUTH_KEY"),
    ];
    let listed = lists
        .into_iter()
        .flat_map(|(name, default)| {
            let mut ids = list(name, default).unwrap_or_default();
            ids.push(default.to_owned());
            ids
        })
        .flat_map(|ids| {
            let ids = ids.split('|').map(|id| id.trim().to_owned());
            ids.collect::<Vec<_>>()
        });
    let of_providers = PROVIDERS.map(|name| format!("TOOLS_{name}_CLIENT_SECRET"));
    let declared = declared_secrets(server).into_iter();
    declared.chain(listed).chain(of_providers).collect()
}
