//! The settings of the stores of secrets and of calls.

use super::{InvalidSetting, get, invalid, without_feature, yes_or_no};
use crate::{idempotency::Idempotency, secrets::Secrets};

/// Reads `TOOLS_SECRETS`, and the variables of the store that it names.
pub(super) fn secrets(on_lambda: bool) -> Result<Secrets, InvalidSetting> {
    let (store, prefix) = (get("TOOLS_SECRETS")?, get("TOOLS_SECRETS_PREFIX")?);
    let (store, json) = (store.as_deref(), get("TOOLS_SECRETS_JSON")?);
    let has_prefix = store == Some("secrets-manager") && prefix.is_some();
    if json.is_some() && (has_prefix || store == Some("parameter-store")) {
        return invalid(
            "TOOLS_SECRETS_JSON is for TOOLS_SECRETS=secrets-manager without TOOLS_SECRETS_PREFIX: it \
             names one secret that has the values of all",
        );
    }
    let secrets = match store {
        None | Some("environment") => match get("TOOLS_SECRETS_FILE")? {
            Some(file) => Secrets::environment_and_file(file),
            None if on_lambda => Secrets::environment(),
            None => Secrets::environment_and_file(".env"),
        },
        #[cfg(feature = "parameter-store")]
        Some("parameter-store") => {
            let store = crate::secrets::ParameterStore::new();
            Secrets::from_store(store.prefix(prefix.unwrap_or_default()))
        }
        #[cfg(feature = "secrets-manager")]
        Some("secrets-manager") => {
            use crate::secrets::SecretsManager;
            let store = SecretsManager::new().prefix(prefix.unwrap_or_default());
            Secrets::from_store(json.into_iter().fold(store, SecretsManager::json))
        }
        Some("none") => Secrets::none(),
        Some(feature) => return without_feature(&format!("TOOLS_SECRETS={feature}"), feature),
    };
    Ok(match yes_or_no("TOOLS_SECRETS_FROM_CALLS")? {
        None | Some(true) => secrets,
        Some(false) => secrets.only_from_store(),
    })
}

/// Reads `TOOLS_IDEMPOTENCY`.
pub(super) fn calls() -> Result<Idempotency, InvalidSetting> {
    match get("TOOLS_IDEMPOTENCY")?.as_deref() {
        None | Some("memory") => Ok(Idempotency::in_memory()),
        Some("none") => Ok(Idempotency::none()),
        #[cfg(feature = "dynamodb")]
        Some(_) => match get("TOOLS_IDEMPOTENCY_TABLE")? {
            Some(table) => Ok(Idempotency::in_store(crate::store::DynamoDb::new(table))),
            None => invalid(
                "TOOLS_IDEMPOTENCY=dynamodb needs the name of a table in TOOLS_IDEMPOTENCY_TABLE",
            ),
        },
        #[cfg(not(feature = "dynamodb"))]
        Some(_) => without_feature("TOOLS_IDEMPOTENCY=dynamodb", "dynamodb"),
    }
}
