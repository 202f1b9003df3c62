//! Environment variables that are named like settings but are not settings.
//!
//! A misspelt setting has no effect, and nothing else would say so.

use std::{collections::BTreeSet, env};

use super::{get, list, variables::VARIABLES};
use crate::{
    Server,
    assemble::declared_secrets,
    text::{clipped, closest},
};

const PREFIX: &str = "TOOLS_";

/// The longest name that is shown and compared, in bytes.
const LONGEST: usize = 64;

/// Returns a sentence for each variable in the environment that has no effect: it is neither a
/// setting nor one of the server's secrets, which may have names like settings, or `TOOLS_AUTH`
/// lacks the credentials that it is for. Values are never shown.
pub(super) fn sentences(server: &Server) -> Vec<String> {
    let mut known: BTreeSet<_> = VARIABLES
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    let auth = get("TOOLS_AUTH").ok().flatten().unwrap_or_default();
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut names: BTreeSet<_> = names.filter(|name| name.starts_with(PREFIX)).collect();
    names.retain(|name| !known.contains(name) || unused_kind(name, &auth).is_some());
    if names.is_empty() {
        // A cold start does not look through all tools for their secrets.
        return Vec::new();
    }
    let declared = declared_secrets(server);
    names.retain(|name| !declared.contains(name));
    known.extend(declared.into_iter().chain(listed_secrets()));
    let unknown = names.difference(&known).map(|name| sentence(name, &known));
    let unused = names.iter().filter_map(|name| {
        let kind = unused_kind(name, &auth)?;
        Some(format!("{name} has no effect without TOOLS_AUTH={kind}"))
    });
    unknown.chain(unused).collect()
}

/// Returns the kind of credentials that a variable is for, if it has a value and `auth` lacks them.
fn unused_kind(name: &str, auth: &str) -> Option<&'static str> {
    let words = name.strip_prefix(PREFIX)?.to_lowercase().replace('_', "-");
    let mut kinds = ["api-key", "jwt", "oidc", "sign-in"].into_iter();
    let kind = kinds.find(|kind| words.starts_with(kind))?;
    let has_value = env::var_os(name).is_some_and(|it| !it.is_empty());
    (has_value && auth.split(',').all(|it| it.trim() != kind)).then_some(kind)
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

/// Returns the ids of secrets in settings, which the server would read with other settings.
fn listed_secrets() -> impl Iterator<Item = String> {
    let lists = [
        "TOOLS_API_KEY_IDS",
        "TOOLS_JWT_SECRET_IDS",
        "TOOLS_OAUTH_KEY_IDS",
    ];
    lists.into_iter().flat_map(|name| {
        let ids = list(name, "").unwrap_or_default().join("|");
        let ids = ids.split('|').map(|id| id.trim().to_owned());
        ids.collect::<Vec<_>>()
    })
}
