//! Reading environment variables.
//!
//! Every variable that this crate defines is listed here, so that a test can compare the list with
//! `docs/environment.md`.

use std::{env, time::Duration};

use super::InvalidSetting;
use crate::text::alternatives;

/// The providers in variables such as `TOOLS_GOOGLE_CLIENT_ID`.
pub(super) const PROVIDERS: [&str; 4] = ["GITHUB", "GOOGLE", "MICROSOFT", "SLACK"];

/// Every variable that this crate defines, except those of providers.
const NAMES: [&str; 52] = [
    "ALLOWED_HOSTS",
    "HOST",
    "LOG_CALLS",
    "LOG_FORMAT",
    "PORT",
    "RECORD_EVENTS",
    "SHUTDOWN_SECONDS",
    "TOOLS_AGENTCORE_TOKEN_HEADER",
    "TOOLS_AGENTCORE_USER_HEADER",
    "TOOLS_ALLOWED_ORIGINS",
    "TOOLS_API_KEY_IDS",
    "TOOLS_AUTH",
    "TOOLS_OAUTH_CHECKS",
    "TOOLS_OAUTH_KEY_IDS",
    "TOOLS_OAUTH_TABLE",
    "TOOLS_BASE_PATH",
    "TOOLS_EVENTS",
    "TOOLS_EXPLORER",
    "TOOLS_IDEMPOTENCY",
    "TOOLS_IDEMPOTENCY_REQUIRED",
    "TOOLS_IDEMPOTENCY_SECONDS",
    "TOOLS_IDEMPOTENCY_TABLE",
    "TOOLS_IDEMPOTENCY_WAIT_SECONDS",
    "TOOLS_JWT_AUDIENCES",
    "TOOLS_JWT_SECRET_IDS",
    "TOOLS_JWT_SUBJECT_IS_USER",
    "TOOLS_METRICS",
    "TOOLS_METRICS_NAMESPACE",
    "TOOLS_LIST",
    "TOOLS_OIDC_AUDIENCES",
    "TOOLS_OIDC_CLIENT_IDS",
    "TOOLS_OIDC_ISSUERS",
    "TOOLS_OIDC_SCOPES",
    "TOOLS_OIDC_USER_CLAIM",
    "TOOLS_PUBLIC_URL",
    "TOOLS_QUOTAS",
    "TOOLS_QUOTAS_REQUIRED",
    "TOOLS_SECRETS",
    "TOOLS_SECRETS_CACHE_SECONDS",
    "TOOLS_SECRETS_FILE",
    "TOOLS_SECRETS_FROM_CALLS",
    "TOOLS_SECRETS_JSON",
    "TOOLS_SECRETS_PREFIX",
    "TOOLS_SIGN_IN_ALLOW",
    "TOOLS_SIGN_IN_CLIENTS",
    "TOOLS_SIGN_IN_CLIENT_ID",
    "TOOLS_SIGN_IN_ISSUER",
    "TOOLS_SIGN_IN_PROVIDER",
    "TOOLS_SIGN_IN_SCOPES",
    "TOOLS_SIGN_IN_SESSION_SECONDS",
    "TOOLS_SIGN_IN_USER_CLAIM",
    "TOOLS_STREAMING",
];

/// The parts of a provider's variables after its name.
const OF_PROVIDERS: [&str; 2] = ["CLIENT_ID", "ISSUER"];

/// Returns true for the name of a variable that this crate defines.
fn is_defined(name: &str) -> bool {
    let of_provider = name
        .strip_prefix("TOOLS_")
        .and_then(|rest| rest.split_once('_'));
    NAMES.contains(&name)
        || of_provider.is_some_and(|(provider, part)| {
            PROVIDERS.contains(&provider) && OF_PROVIDERS.contains(&part)
        })
}

/// Returns the names of all variables that this crate defines.
pub(super) fn names() -> impl Iterator<Item = String> {
    let of_providers = PROVIDERS.into_iter().flat_map(|provider| {
        OF_PROVIDERS
            .into_iter()
            .map(move |part| format!("TOOLS_{provider}_{part}"))
    });
    NAMES.into_iter().map(str::to_owned).chain(of_providers)
}

/// Reads the value of a variable. An empty value counts as unset.
pub(crate) fn get(name: &str) -> Result<Option<String>, InvalidSetting> {
    debug_assert!(is_defined(name), "{name} is not in NAMES");
    match env::var(name) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => Err(InvalidSetting(format!("{name} is not UTF-8"))),
    }
}

/// Reads a comma-separated list.
pub(crate) fn list(name: &str, default: &str) -> Result<Vec<String>, InvalidSetting> {
    let text = get(name)?;
    let items = text.as_deref().unwrap_or(default).split(',');
    let items = items.map(str::trim).filter(|item| !item.is_empty());
    Ok(items.map(str::to_owned).collect())
}

pub(crate) fn seconds(name: &str) -> Result<Option<Duration>, InvalidSetting> {
    let Some(text) = get(name)? else {
        return Ok(None);
    };
    match text.parse() {
        Ok(seconds) => Ok(Some(Duration::from_secs(seconds))),
        Err(_) => Err(InvalidSetting(format!(
            "{name} is '{text}', but must be a number of seconds"
        ))),
    }
}

/// Reads one of a few values, by its name.
pub(crate) fn choice<T: Copy>(
    name: &str,
    choices: &[(&str, T)],
) -> Result<Option<T>, InvalidSetting> {
    let Some(text) = get(name)? else {
        return Ok(None);
    };
    if let Some((_, value)) = choices.iter().find(|(choice, _)| *choice == text) {
        return Ok(Some(*value));
    }
    let names: Vec<_> = choices.iter().map(|(choice, _)| *choice).collect();
    let names = alternatives(&names);
    let text = format!("{name} is '{text}', but must be {names}");
    Err(InvalidSetting(text))
}

pub(crate) fn yes_or_no(name: &str) -> Result<Option<bool>, InvalidSetting> {
    choice(name, &[("yes", true), ("no", false)])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::NAMES;

    #[test]
    fn the_documentation_lists_every_variable() {
        let page = include_str!("../../../docs/environment.md");
        let rows = page
            .lines()
            .skip_while(|line| !line.starts_with("| environment variable |"));
        let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
        let cells = rows.filter_map(|row| row.split(" | ").next());
        let names: BTreeSet<_> = cells
            .flat_map(|cell| cell.split('`').skip(1).step_by(2))
            .filter(|name| name.chars().any(|it| it == '_') || NAMES.contains(name))
            // The variables of Lambda and `tracing`.
            .filter(|name| !name.starts_with("AWS_") && *name != "RUST_LOG")
            .filter(|name| !name.starts_with("TOOLS_GOOGLE_"))
            .collect();
        assert_eq!(names, BTreeSet::from(NAMES));
    }
}
