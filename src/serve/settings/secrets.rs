//! The setting `TOOLS_SECRETS`.

use std::path::PathBuf;

use super::{InvalidSetting, get, without_feature, yes_or_no};
use crate::secrets::Secrets;

pub(super) fn secrets_setting(on_lambda: bool) -> Result<Secrets, InvalidSetting> {
    let secrets = match get("TOOLS_SECRETS")?.as_deref() {
        None | Some("environment") => environment(on_lambda)?,
        #[cfg(feature = "parameter-store")]
        Some("parameter-store") => parameter_store()?,
        #[cfg(feature = "secrets-manager")]
        Some("secrets-manager") => secrets_manager()?,
        Some("none") => Secrets::none(),
        Some(feature) => {
            let setting = format!("TOOLS_SECRETS={feature}");
            return Err(without_feature(&setting, feature));
        }
    };
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
    if get("TOOLS_SECRETS_JSON")?.is_some() {
        return super::invalid(
            "TOOLS_SECRETS_JSON is for TOOLS_SECRETS=secrets-manager: Parameter Store has one \
             parameter for each secret",
        );
    }
    let prefix = get("TOOLS_SECRETS_PREFIX")?.unwrap_or_default();
    let store = crate::secrets::ParameterStore::new().prefix(prefix);
    Ok(Secrets::from_store(store))
}

#[cfg(feature = "secrets-manager")]
fn secrets_manager() -> Result<Secrets, InvalidSetting> {
    use crate::secrets::SecretsManager;

    let (prefix, json) = (get("TOOLS_SECRETS_PREFIX")?, get("TOOLS_SECRETS_JSON")?);
    if prefix.is_some() && json.is_some() {
        return super::invalid(
            "TOOLS_SECRETS_PREFIX and TOOLS_SECRETS_JSON are mutually exclusive: the first is for \
             separate secrets, the second for one JSON secret with all of them",
        );
    }
    let store = SecretsManager::new().prefix(prefix.unwrap_or_default());
    let store = json.into_iter().fold(store, SecretsManager::json);
    Ok(Secrets::from_store(store))
}
