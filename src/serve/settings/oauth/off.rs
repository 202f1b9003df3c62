//! In place of the settings for OAuth providers, without the Cargo feature `oauth`.

use crate::{
    Server,
    serve::settings::{InvalidSetting, get, variables::PROVIDERS, without_feature},
};

/// Returns an error if a provider is set.
pub(super) fn apply(_: &mut Server, _: bool) -> Result<(), InvalidSetting> {
    for provider in PROVIDERS {
        let name = format!("TOOLS_{provider}_CLIENT_ID");
        if get(&name)?.is_some() {
            return Err(without_feature(&name, "oauth"));
        }
    }
    Ok(())
}
