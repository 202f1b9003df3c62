//! The owner's settings for OAuth providers in the environment.

use std::collections::HashSet;

use super::{InvalidSetting, check_length, get, invalid, list, variables::PROVIDERS};
use crate::{Auth, OAuth, Server, oauth::Provider};

/// Fills in what the program has not set on `server`, and checks the result.
pub(super) fn apply(server: &mut Server, on_lambda: bool) -> Result<(), InvalidSetting> {
    if server.oauth.is_none() {
        let sign_in = server.auth.as_ref().and_then(Auth::sign_in);
        server.oauth = oauth_setting(sign_in.is_some())?;
    }
    #[cfg(feature = "sign-in")]
    server.join_sign_in();
    let Some(oauth) = &server.oauth else {
        return Ok(());
    };
    if on_lambda && oauth.is_in_memory {
        return invalid(
            "on Lambda, users' grants need a table in DynamoDB, because instances do not share \
             memory: set TOOLS_OAUTH_TABLE, or call OAuth::in_dynamodb in the program",
        );
    }
    if oauth.keys.is_empty() {
        return invalid("no secret is configured to encrypt users' tokens (TOOLS_OAUTH_KEY_IDS)");
    }
    for id in &oauth.keys {
        check_length(server, id, crate::oauth::SHORTEST)?;
    }
    let mut ids = HashSet::new();
    for provider in &oauth.providers {
        if let Some(mistake) = provider.config_error() {
            return invalid(mistake);
        }
        let id = provider.id();
        if !ids.insert(id) {
            return invalid(format!(
                "there are two providers with the id '{id}'; one that users sign in at is also one \
                 for tools"
            ));
        }
    }
    Ok(())
}

/// Reads the settings. `None` if there are no providers, and nobody signs in.
fn oauth_setting(is_needed: bool) -> Result<Option<OAuth>, InvalidSetting> {
    let mut providers = Vec::new();
    for name in PROVIDERS {
        let Some(id) = get(&format!("TOOLS_{name}_CLIENT_ID"))? else {
            continue;
        };
        let secret = format!("TOOLS_{name}_CLIENT_SECRET");
        let provider = match name {
            "GITHUB" => Provider::github(id, secret),
            "GOOGLE" => Provider::google(id, secret),
            "MICROSOFT" => Provider::microsoft(id, secret),
            _ => Provider::slack(id, secret),
        };
        let issuer = get(&format!("TOOLS_{name}_ISSUER"))?.into_iter();
        providers.push(issuer.fold(provider, Provider::issuer));
    }
    if providers.is_empty() && !is_needed {
        return Ok(None);
    }
    let keys = list("TOOLS_OAUTH_KEY_IDS", "TOOLS_OAUTH_KEY")?;
    let oauth = OAuth::with(providers).key_ids(keys);
    Ok(Some(match get("TOOLS_OAUTH_TABLE")? {
        None => oauth,
        #[cfg(feature = "dynamodb")]
        Some(table) => oauth.in_dynamodb(table),
        #[cfg(not(feature = "dynamodb"))]
        Some(_) => return Err(super::without_feature("TOOLS_OAUTH_TABLE", "dynamodb")),
    }))
}
