//! Environment variables that are named like settings but are not settings.
//!
//! A misspelt setting has no effect, and nothing else would say so.

use std::{collections::BTreeSet, env};

use super::{
    get, list,
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

/// Returns a sentence for each variable in the environment that has no effect: it is neither a
/// setting nor one of the server's secrets, which may have names like settings, or `TOOLS_AUTH`
/// lacks the credentials that it is for. Values are never shown.
pub(super) fn sentences(server: &Server) -> Vec<String> {
    let settings: BTreeSet<_> = names().collect();
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let names: BTreeSet<_> = names.filter(|name| name.starts_with(PREFIX)).collect();
    let auth = get("TOOLS_AUTH").ok().flatten().unwrap_or_default();
    let unused = names.iter();
    let mut unused: Vec<_> = unused
        .filter_map(|it| Some((it, unused_kind(it, &auth)?)))
        .collect();
    if names.is_subset(&settings) && unused.is_empty() {
        // A cold start does not look through all tools for their secrets.
        return Vec::new();
    }
    let declared = declared_secrets(server);
    unused.retain(|(name, _)| !declared.contains(name));
    let known: BTreeSet<_> = settings.into_iter().chain(secrets(declared)).collect();
    let unknown = names.difference(&known).map(|name| sentence(name, &known));
    let unused = unused.iter();
    let unused =
        unused.map(|(name, kind)| format!("{name} has no effect without TOOLS_AUTH={kind}"));
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

/// Returns the ids of secrets: those that the server reads, and those that it would read with other
/// settings.
fn secrets(declared: Vec<String>) -> BTreeSet<String> {
    let lists = [
        ("TOOLS_API_KEY_IDS", "TOOLS_API_KEY"),
        ("TOOLS_JWT_SECRET_IDS", "TOOLS_JWT_SECRET"),
        ("TOOLS_OAUTH_KEY_IDS", "TOOLS_OAUTH_KEY"),
    ];
    let listed = lists.into_iter().flat_map(|(name, default)| {
        let ids = list(name, default).unwrap_or_default().join("|");
        let ids = ids.split('|').map(|id| id.trim().to_owned());
        ids.chain([default.to_owned()]).collect::<Vec<_>>()
    });
    let of_providers = PROVIDERS.into_iter().chain(["SIGN_IN"]);
    let of_providers = of_providers.map(|name| format!("TOOLS_{name}_CLIENT_SECRET"));
    let declared = declared.into_iter();
    declared.chain(listed).chain(of_providers).collect()
}
