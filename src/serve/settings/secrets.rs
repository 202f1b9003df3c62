//! The setting `TOOLS_SECRETS`.

use std::path::PathBuf;

use super::{InvalidSetting, choice, get, seconds, yes_or_no};
use crate::secrets::Secrets;

pub(super) fn secrets_setting(on_lambda: bool) -> Result<Secrets, InvalidSetting> {
    type Source = fn(bool) -> Result<Secrets, InvalidSetting>;
    let sources: [(&str, Source); 4] = [
        ("environment", environment),
        ("parameter-store", |_| parameter_store()),
        ("secrets-manager", |_| secrets_manager()),
        ("none", |_| Ok(Secrets::none())),
    ];
    let source = choice("TOOLS_SECRETS", &sources)?.unwrap_or(environment);
    let mut secrets = source(on_lambda)?;
    if let Some(time) = seconds("TOOLS_SECRETS_CACHE_SECONDS")? {
        secrets = secrets.cache_for(time);
    }
    Ok(match yes_or_no("TOOLS_SECRETS_FROM_CALLS")? {
        None | Some(true) => secrets,
        Some(false) => secrets.only_from_store(),
    })
}

fn environment(on_lambda: bool) -> Result<Secrets, InvalidSetting> {
    Ok(match get("TOOLS_SECRETS_FILE")? {
        Some(file) => Secrets::environment_and_file(PathBuf::from(file)),
        None if on_lambda => Secrets::environment(),
        None => Secrets::environment_and_file(".env"),
    })
}

#[cfg(feature = "parameter-store")]
fn parameter_store() -> Result<Secrets, InvalidSetting> {
    super::check(get("TOOLS_SECRETS_JSON")?.is_none(), || {
        "TOOLS_SECRETS_JSON is for TOOLS_SECRETS=secrets-manager: Parameter Store has one \
         parameter for each secret"
            .into()
    })?;
    let prefix = get("TOOLS_SECRETS_PREFIX")?.unwrap_or_default();
    let store = crate::secrets::ParameterStore::new().prefix(prefix);
    Ok(Secrets::from_store(store))
}

#[cfg(not(feature = "parameter-store"))]
fn parameter_store() -> Result<Secrets, InvalidSetting> {
    Err(super::without_feature(
        "TOOLS_SECRETS=parameter-store",
        "parameter-store",
    ))
}

#[cfg(feature = "secrets-manager")]
fn secrets_manager() -> Result<Secrets, InvalidSetting> {
    use crate::secrets::SecretsManager;

    let prefix = get("TOOLS_SECRETS_PREFIX")?;
    let store = match (prefix, get("TOOLS_SECRETS_JSON")?) {
        (None, None) => SecretsManager::new(),
        (Some(prefix), None) => SecretsManager::new().prefix(prefix),
        (None, Some(name)) => SecretsManager::new().json(name),
        (Some(_), Some(_)) => {
            let text = "TOOLS_SECRETS_PREFIX and TOOLS_SECRETS_JSON are mutually exclusive: the \
                first is for separate secrets, the second for one JSON secret with all of them";
            return Err(InvalidSetting(text.into()));
        }
    };
    Ok(Secrets::from_store(store))
}

#[cfg(not(feature = "secrets-manager"))]
fn secrets_manager() -> Result<Secrets, InvalidSetting> {
    Err(super::without_feature(
        "TOOLS_SECRETS=secrets-manager",
        "secrets-manager",
    ))
}
