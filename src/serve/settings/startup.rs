//! The settings in the log, when the server starts.

use std::{collections::BTreeSet, env};

use tracing::Level;

use super::{
    get, list,
    variables::{VARIABLES, Values::Secret, is_on_lambda},
};
use crate::{Server, assemble::declared_secrets, text::closest};

const PREFIX: &str = "TOOLS_";

/// Warns of unknown settings and, at level `debug`, shows those in the environment.
pub(in crate::serve) fn log(server: &Server) {
    for sentence in unknown(server) {
        tracing::warn!("{sentence}");
    }
    let idempotency = server.idempotency.as_ref();
    let is_shared = idempotency.is_some_and(|it| it.shared_store().is_some());
    if !server.quotas.is_empty() && !is_shared && is_on_lambda() {
        tracing::warn!(
            "each instance of this function counts by itself, from zero: quotas need a table \
             (TOOLS_IDEMPOTENCY=dynamodb)"
        );
    }
    let mut tools = server.toolkit.entries().iter();
    if !is_shared && is_on_lambda() && tools.any(|it| it.tool.once_within.is_some()) {
        tracing::warn!(
            "each instance of this function knows only its own calls: equal calls of a tool with \
             once_within need a table to be one (TOOLS_IDEMPOTENCY=dynamodb)"
        );
    }
    if !tracing::enabled!(Level::DEBUG) {
        return;
    }
    let settings = VARIABLES.iter().filter(|(_, it)| !matches!(it, Secret));
    let variables = settings.filter_map(|(name, _)| Some(format!("{name}={}", get(name).ok()??)));
    let variables = variables.collect::<Vec<_>>().join(" ");
    tracing::debug!(variables, "settings in the environment");
}

/// Returns a sentence for each variable in the environment that has no effect, which nothing else
/// would say: it is named like a setting, but is neither one nor one of the server's secrets, or
/// `TOOLS_AUTH` lacks the credentials that it is for. Values are never shown.
pub(super) fn unknown(server: &Server) -> Vec<String> {
    let auth = get("TOOLS_AUTH").ok().flatten().unwrap_or_default();
    let is_setting = |name: &str| VARIABLES.iter().any(|(it, _)| *it == name);
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut names: BTreeSet<_> = names.filter(|name| name.starts_with(PREFIX)).collect();
    names.retain(|name| !is_setting(name) || unused_kind(name, &auth).is_some());
    if names.is_empty() {
        // A cold start does not look through all tools for their secrets.
        return Vec::new();
    }
    let declared = declared_secrets(server);
    // Also those that the server would read with other settings.
    let lists = [
        "TOOLS_API_KEY_IDS",
        "TOOLS_JWT_SECRET_IDS",
        "TOOLS_OAUTH_KEY_IDS",
    ];
    let ids = lists.map(|it| list(it, "").unwrap_or_default().join("|"));
    let ids = ids.join("|");
    let is_listed = |name: &str| ids.split('|').any(|id| id.trim() == name);
    let is_unused = |name: &str| unused_kind(name, &auth).is_some();
    names.retain(|name| !declared.contains(name) && (!is_listed(name) || is_unused(name)));
    let sentence = |name: String| {
        if (is_setting(&name) || is_listed(&name))
            && let Some(kind) = unused_kind(&name, &auth)
        {
            return format!("{name} has no effect without TOOLS_AUTH={kind}");
        }
        let settings = VARIABLES.iter().map(|(name, _)| *name);
        let known = settings.chain(declared.iter().map(String::as_str));
        let known = known.filter_map(|known| known.strip_prefix(PREFIX));
        match closest(&name[PREFIX.len()..], known) {
            Some(known) => format!("{name} is not a setting; did you mean {PREFIX}{known}?"),
            None => format!("{name} is not a setting"),
        }
    };
    names.into_iter().map(sentence).collect()
}

/// Returns the kind of credentials that a variable is for, if it has a value and `auth` lacks them.
fn unused_kind(name: &str, auth: &str) -> Option<&'static str> {
    let words = name.strip_prefix(PREFIX)?.to_lowercase().replace('_', "-");
    let mut kinds = ["api-key", "jwt", "oidc", "sign-in"].into_iter();
    let kind = kinds.find(|kind| words.starts_with(kind))?;
    let has_value = env::var_os(name).is_some_and(|it| !it.is_empty());
    (has_value && auth.split(',').all(|it| it.trim() != kind)).then_some(kind)
}
