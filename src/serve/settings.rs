//! The owner's choices in the environment.
//!
//! They fill in what the program leaves open; what it chose itself stands. A choice that cannot be
//! understood ends the start: whoever mistypes `jwt` must not get an open server.

#[cfg(feature = "oauth")]
mod oauth;
mod variables;

use std::{env, fmt, path::PathBuf};

use variables::seconds;
pub(super) use variables::{list, set, yes_or_no};

use super::Error;
use crate::{Auth, Server, idempotency::Idempotency, observe::metrics::Metrics, secrets::Secrets};

/// Fills in what `server` has not chosen.
pub(crate) fn apply(server: &mut Server) -> Result<(), Error> {
    let on_lambda = env::var_os("AWS_LAMBDA_RUNTIME_API").is_some();
    if server.base_path.is_none() {
        server.base_path = set("TOOLS_BASE_PATH")?;
    }
    if server.auth.is_none() {
        server.auth = Some(chosen_auth(on_lambda)?);
    }
    if let Some(id) = server.auth.as_ref().and_then(Auth::shared_secret) {
        let text = format!(
            "the secret '{id}' is named twice among those of callers, who are kept apart by them; \
             write A|B for two secrets of one caller (TOOLS_API_KEY_IDS, TOOLS_JWT_SECRET_IDS)"
        );
        return Err(InvalidSetting(text).into());
    }
    if server.secrets.is_none() {
        server.secrets = Some(chosen_secrets(on_lambda)?);
    }
    if server.idempotency.is_none() {
        server.idempotency = Some(chosen_idempotency()?);
    }
    if server.metrics.is_none() {
        server.metrics = chosen_metrics()?;
    }
    if let Some(namespace) = server.metrics.as_ref().map(Metrics::namespace) {
        check_namespace(namespace)?;
    }
    check_version(server.version())?;
    #[cfg(feature = "oauth")]
    oauth::apply(server, on_lambda)?;
    #[cfg(not(feature = "oauth"))]
    for provider in variables::PROVIDERS {
        let name = format!("TOOLS_{provider}_CLIENT_ID");
        if set(&name)?.is_some() {
            return Err(without_feature(&name, "oauth").into());
        }
    }
    Ok(())
}

/// CloudWatch does not say that it takes none of the metrics.
fn check_namespace(namespace: &str) -> Result<(), InvalidSetting> {
    let is_allowed = |it: char| it.is_ascii_alphanumeric() || ".-_/#: ".contains(it);
    let is_right = (1..=255).contains(&namespace.len()) && namespace.chars().all(is_allowed);
    if is_right && !namespace.starts_with("AWS/") && !namespace.trim().is_empty() {
        return Ok(());
    }
    Err(InvalidSetting(format!(
        "the namespace of metrics is '{namespace}', and has to be 1 to 255 letters, digits, spaces \
         and .-_/#: and not begin with AWS/ (TOOLS_METRICS_NAMESPACE)"
    )))
}

/// OpenTool, `GET /version`: `x.y.z`.
fn check_version(version: &str) -> Result<(), InvalidSetting> {
    let parsed = version.parse::<semver::Version>();
    if parsed.is_ok_and(|it| it.pre.is_empty() && it.build.is_empty()) {
        return Ok(());
    }
    Err(InvalidSetting(format!(
        "ServerInfo::new has the version '{version}', and it has to be x.y.z, such as 1.0.0"
    )))
}

/// A choice that cannot be carried out, with what to do about it.
pub(super) struct InvalidSetting(pub(super) String);

impl fmt::Display for InvalidSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The same as `Display`: `main` prints its error with `Debug`.
impl fmt::Debug for InvalidSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidSetting {}

fn chosen_auth(on_lambda: bool) -> Result<Auth, InvalidSetting> {
    const HOW: &str = "TOOLS_AUTH=api-key asks callers for an API key, which is the secret \
        TOOLS_API_KEY (or those that TOOLS_API_KEY_IDS names); TOOLS_AUTH=jwt for a JWT, signed \
        with the secret TOOLS_JWT_SECRET (or those that TOOLS_JWT_SECRET_IDS names); \
        TOOLS_AUTH=api-key,jwt for either; TOOLS_AUTH=none lets everybody call, for a function \
        behind IAM or an authorizer of API Gateway. In the program: Server::auth";
    let Some(choice) = set("TOOLS_AUTH")? else {
        if on_lambda {
            let text = format!("nothing says who may call this function. {HOW}");
            return Err(InvalidSetting(text));
        }
        return Ok(Auth::none());
    };
    let wrong = |what: String| InvalidSetting(format!("TOOLS_AUTH is '{choice}': {what}. {HOW}"));
    let kinds: Vec<_> = choice.split(',').map(str::trim).collect();
    if kinds == ["none"] {
        return Ok(Auth::none());
    }
    kinds
        .into_iter()
        .try_fold(Auth::none(), |auth, kind| match kind {
            "api-key" => {
                let ids = list("TOOLS_API_KEY_IDS", "TOOLS_API_KEY")?;
                Ok(auth.or(Auth::api_key_ids(ids)))
            }
            "jwt" => Ok(auth.or(chosen_jwt()?)),
            "none" => Err(wrong("none leaves nothing to ask for".into())),
            other => Err(wrong(format!("there is no '{other}'"))),
        })
}

#[cfg(feature = "jwt")]
fn chosen_jwt() -> Result<Auth, InvalidSetting> {
    let ids = list("TOOLS_JWT_SECRET_IDS", "TOOLS_JWT_SECRET")?;
    let audiences = list("TOOLS_JWT_AUDIENCES", "")?.into_iter();
    let auth = audiences.fold(Auth::jwt_secret_ids(ids), Auth::audience);
    Ok(match yes_or_no("TOOLS_JWT_SUBJECT_IS_USER")? {
        None | Some(false) => auth,
        Some(true) => auth.subject_is_user(),
    })
}

#[cfg(not(feature = "jwt"))]
fn chosen_jwt() -> Result<Auth, InvalidSetting> {
    Err(without_feature("TOOLS_AUTH=jwt", "jwt"))
}

fn chosen_secrets(on_lambda: bool) -> Result<Secrets, InvalidSetting> {
    let choice = set("TOOLS_SECRETS")?;
    let choice = choice.as_deref().unwrap_or("environment");
    let mut secrets = match choice {
        "environment" => match set("TOOLS_SECRETS_FILE")? {
            Some(file) => Secrets::environment_and_file(PathBuf::from(file)),
            None if on_lambda => Secrets::environment(),
            None => Secrets::environment_and_file(".env"),
        },
        "secrets-manager" => secrets_manager()?,
        "none" => Secrets::none(),
        other => {
            return Err(InvalidSetting(format!(
                "TOOLS_SECRETS is '{other}', and has to be environment, secrets-manager or none"
            )));
        }
    };
    if let Some(time) = seconds("TOOLS_SECRETS_CACHE_SECONDS")? {
        secrets = secrets.cache_for(time);
    }
    Ok(match yes_or_no("TOOLS_SECRETS_FROM_CALLS")? {
        None | Some(true) => secrets,
        Some(false) => secrets.only_from_store(),
    })
}

#[cfg(feature = "secrets-manager")]
fn secrets_manager() -> Result<Secrets, InvalidSetting> {
    use crate::secrets::SecretsManager;

    let prefix = set("TOOLS_SECRETS_PREFIX")?;
    let store = match (prefix, set("TOOLS_SECRETS_JSON")?) {
        (None, None) => SecretsManager::new(),
        (Some(prefix), None) => SecretsManager::new().prefix(prefix),
        (None, Some(name)) => SecretsManager::new().json(name),
        (Some(_), Some(_)) => {
            let text = "TOOLS_SECRETS_PREFIX and TOOLS_SECRETS_JSON exclude each other: the \
                first is for one secret each, the second for one JSON secret with all";
            return Err(InvalidSetting(text.into()));
        }
    };
    Ok(Secrets::from_store(store))
}

#[cfg(not(feature = "secrets-manager"))]
fn secrets_manager() -> Result<Secrets, InvalidSetting> {
    Err(without_feature(
        "TOOLS_SECRETS=secrets-manager",
        "secrets-manager",
    ))
}

fn chosen_idempotency() -> Result<Idempotency, InvalidSetting> {
    let choice = set("TOOLS_IDEMPOTENCY")?;
    let mut idempotency = match choice.as_deref().unwrap_or("memory") {
        "memory" => Idempotency::in_memory(),
        "dynamodb" => in_dynamodb()?,
        "none" => Idempotency::none(),
        other => {
            return Err(InvalidSetting(format!(
                "TOOLS_IDEMPOTENCY is '{other}', and has to be memory, dynamodb or none"
            )));
        }
    };
    if let Some(time) = seconds("TOOLS_IDEMPOTENCY_SECONDS")? {
        idempotency = idempotency.expire_after(time);
    }
    if let Some(time) = seconds("TOOLS_IDEMPOTENCY_WAIT_SECONDS")? {
        idempotency = idempotency.wait_for(time);
    }
    Ok(match yes_or_no("TOOLS_IDEMPOTENCY_REQUIRED")? {
        None | Some(true) => idempotency,
        Some(false) => idempotency.best_effort(),
    })
}

fn chosen_metrics() -> Result<Option<Metrics>, InvalidSetting> {
    match set("TOOLS_METRICS")?.as_deref() {
        None | Some("none") => Ok(None),
        Some("cloudwatch") => {
            let namespace = set("TOOLS_METRICS_NAMESPACE")?;
            let namespace = namespace.unwrap_or_else(|| "lambda_tools".to_owned());
            Ok(Some(Metrics::in_namespace(namespace)))
        }
        Some(other) => Err(InvalidSetting(format!(
            "TOOLS_METRICS is '{other}', and has to be cloudwatch or none"
        ))),
    }
}

#[cfg(feature = "dynamodb")]
fn in_dynamodb() -> Result<Idempotency, InvalidSetting> {
    let Some(table) = set("TOOLS_IDEMPOTENCY_TABLE")? else {
        let text = "TOOLS_IDEMPOTENCY=dynamodb needs the name of a table in \
            TOOLS_IDEMPOTENCY_TABLE";
        return Err(InvalidSetting(text.into()));
    };
    Ok(Idempotency::in_store(crate::idempotency::DynamoDb::new(
        table,
    )))
}

#[cfg(not(feature = "dynamodb"))]
fn in_dynamodb() -> Result<Idempotency, InvalidSetting> {
    Err(without_feature("TOOLS_IDEMPOTENCY=dynamodb", "dynamodb"))
}

#[cfg(not(all(
    feature = "jwt",
    feature = "secrets-manager",
    feature = "dynamodb",
    feature = "oauth"
)))]
fn without_feature(choice: &str, feature: &str) -> InvalidSetting {
    InvalidSetting(format!(
        "{choice} needs lambda_tools' cargo feature '{feature}', which this program is built \
         without: lambda_tools = {{ …, features = [\"{feature}\"] }}"
    ))
}
