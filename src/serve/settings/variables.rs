//! The table of the environment variables that this crate defines, and reading them.

use std::env;

use Values::{Any, OneOf, Seconds, Secret};

use super::{InvalidSetting, invalid};
use crate::text::alternatives;

/// The values that a variable can have.
pub(super) enum Values {
    /// Texts and lists, which the setting's own type checks.
    Any,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A whole number of seconds.
    Seconds,
    /// The value of a secret. It is read from the store of secrets, and never shown.
    Secret,
}

const YES_OR_NO: Values = OneOf(&["yes", "no"]);

/// The providers in variables such as `TOOLS_GOOGLE_CLIENT_ID`.
pub(super) const PROVIDERS: [&str; 4] = ["GITHUB", "GOOGLE", "MICROSOFT", "SLACK"];

const SECRET_STORES: Values = OneOf(&["environment", "parameter-store", "secrets-manager", "none"]);

const SIGN_IN_PROVIDERS: Values = OneOf(&["cognito", "entra", "github", "google", "openid"]);

/// Every variable that this crate defines. A test compares them with `docs/environment.md`.
pub(super) const VARIABLES: [(&str, Values); 60] = [
    ("ALLOWED_HOSTS", Any),
    ("HOST", Any),
    ("LOG_CALLS", YES_OR_NO),
    ("LOG_FORMAT", OneOf(&["text", "json"])),
    ("PORT", Any),
    ("RECORD_EVENTS", Any),
    ("SHUTDOWN_SECONDS", Seconds),
    ("TOOLS_ALLOW", Any),
    ("TOOLS_ALLOWED_ORIGINS", Any),
    ("TOOLS_API_KEY", Secret),
    ("TOOLS_API_KEY_IDS", Any),
    ("TOOLS_AUTH", Any),
    ("TOOLS_BASE_PATH", Any),
    ("TOOLS_EVENTS", Any),
    ("TOOLS_EXPLORER", YES_OR_NO),
    ("TOOLS_GITHUB_CLIENT_ID", Any),
    ("TOOLS_GITHUB_CLIENT_SECRET", Secret),
    ("TOOLS_GITHUB_ISSUER", Any),
    ("TOOLS_GOOGLE_CLIENT_ID", Any),
    ("TOOLS_GOOGLE_CLIENT_SECRET", Secret),
    ("TOOLS_GOOGLE_ISSUER", Any),
    ("TOOLS_IDEMPOTENCY", OneOf(&["memory", "dynamodb", "none"])),
    ("TOOLS_IDEMPOTENCY_TABLE", Any),
    ("TOOLS_JWT_AUDIENCES", Any),
    ("TOOLS_JWT_SECRET", Secret),
    ("TOOLS_JWT_SECRET_IDS", Any),
    ("TOOLS_JWT_SUBJECT_IS_USER", YES_OR_NO),
    ("TOOLS_LIST", OneOf(&["all", "callable"])),
    ("TOOLS_METRICS", OneOf(&["cloudwatch", "none"])),
    ("TOOLS_METRICS_NAMESPACE", Any),
    ("TOOLS_MICROSOFT_CLIENT_ID", Any),
    ("TOOLS_MICROSOFT_CLIENT_SECRET", Secret),
    ("TOOLS_MICROSOFT_ISSUER", Any),
    ("TOOLS_OAUTH_KEY", Secret),
    ("TOOLS_OAUTH_KEY_IDS", Any),
    ("TOOLS_OAUTH_TABLE", Any),
    ("TOOLS_OIDC_AUDIENCES", Any),
    ("TOOLS_OIDC_ISSUERS", Any),
    ("TOOLS_OIDC_SCOPES", Any),
    ("TOOLS_OPENAPI", YES_OR_NO),
    ("TOOLS_PUBLIC_URL", Any),
    ("TOOLS_QUOTAS", Any),
    ("TOOLS_SECRETS", SECRET_STORES),
    ("TOOLS_SECRETS_FILE", Any),
    ("TOOLS_SECRETS_FROM_CALLS", YES_OR_NO),
    ("TOOLS_SECRETS_JSON", Any),
    ("TOOLS_SECRETS_PREFIX", Any),
    ("TOOLS_SECRET_HEADERS", Any),
    ("TOOLS_SIGN_IN_ALLOW", Any),
    ("TOOLS_SIGN_IN_CLIENTS", Any),
    ("TOOLS_SIGN_IN_CLIENT_ID", Any),
    ("TOOLS_SIGN_IN_CLIENT_SECRET", Secret),
    ("TOOLS_SIGN_IN_ISSUER", Any),
    ("TOOLS_SIGN_IN_PROVIDER", SIGN_IN_PROVIDERS),
    ("TOOLS_SIGN_IN_SCOPES", Any),
    ("TOOLS_SLACK_CLIENT_ID", Any),
    ("TOOLS_SLACK_CLIENT_SECRET", Secret),
    ("TOOLS_SLACK_ISSUER", Any),
    ("TOOLS_STREAMING", Any),
    ("TOOLS_TASKS", YES_OR_NO),
];

pub(crate) fn is_on_lambda() -> bool {
    env::var_os("AWS_LAMBDA_RUNTIME_API").is_some()
}

/// Reads the value of a variable. An empty value counts as unset.
pub(crate) fn get(name: &str) -> Result<Option<String>, InvalidSetting> {
    let variable = VARIABLES.iter().find(|(it, _)| *it == name);
    let (_, values) = variable.expect("the table has every variable");
    let Some(value) = env::var_os(name).filter(|it| !it.is_empty()) else {
        return Ok(None);
    };
    let Ok(value) = value.into_string() else {
        return invalid(format!("{name} is not UTF-8"));
    };
    let rule = match values {
        OneOf(words) if !words.contains(&&*value) => alternatives(words),
        Seconds if value.parse::<u64>().is_err() => "a number of seconds".to_owned(),
        _ => return Ok(Some(value)),
    };
    invalid(format!("{name} is '{value}', but must be {rule}"))
}

/// Reads a comma-separated list.
pub(crate) fn list(name: &str, default: &str) -> Result<Vec<String>, InvalidSetting> {
    let text = get(name)?;
    let items = text.as_deref().unwrap_or(default).split(',');
    let items = items.map(str::trim).filter(|item| !item.is_empty());
    Ok(items.map(str::to_owned).collect())
}

pub(crate) fn yes_or_no(name: &str) -> Result<Option<bool>, InvalidSetting> {
    Ok(get(name)?.map(|word| word == "yes"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Secret, VARIABLES};

    #[test]
    fn the_documentation_lists_every_variable() {
        // The page has those of one provider, and names the others.
        let others = ["TOOLS_GITHUB_", "TOOLS_MICROSOFT_", "TOOLS_SLACK_"];
        let is_listed = |name: &str| !others.iter().any(|it| name.starts_with(it));
        let settings = VARIABLES.iter().filter(|(_, it)| !matches!(it, Secret));
        let settings = settings.map(|(name, _)| *name).filter(|it| is_listed(it));
        let settings: BTreeSet<_> = settings.collect();
        let page = include_str!("../../../docs/environment.md");
        let rows = page
            .lines()
            .skip_while(|line| !line.starts_with("| environment variable |"));
        let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
        let cells = rows.filter_map(|row| row.split(" | ").next());
        let names: BTreeSet<_> = cells
            .flat_map(|cell| cell.split('`').skip(1).step_by(2))
            .filter(|name| name.contains('_') || settings.contains(name))
            // The variables of Lambda and `tracing`.
            .filter(|name| !name.starts_with("AWS_") && *name != "RUST_LOG")
            .collect();
        assert_eq!(names, settings);
    }
}
