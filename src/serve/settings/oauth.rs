//! The owner's settings for OAuth providers in the environment.

use std::collections::HashSet;

use super::{
    InvalidSetting, check, check_length, dynamodb, get, list,
    variables::{PROVIDERS, choice},
};
use crate::{OAuth, Server, oauth::Provider};

type Preset = fn(String, String) -> Provider;

/// The presets, in the order of [`PROVIDERS`].
const PRESETS: [Preset; PROVIDERS.len()] = [
    |id, secret| Provider::github(id, secret),
    |id, secret| Provider::google(id, secret),
    |id, secret| Provider::microsoft(id, secret),
    |id, secret| Provider::slack(id, secret),
];

/// Fills in what the program has not set on `server`, and checks the result.
pub(super) fn apply(server: &mut Server, on_lambda: bool) -> Result<(), InvalidSetting> {
    if server.oauth.is_none() {
        let is_needed = server
            .auth
            .as_ref()
            .is_some_and(|auth| auth.sign_in().is_some());
        server.oauth = oauth_setting(is_needed)?;
    }
    #[cfg(feature = "sign-in")]
    server.join_sign_in();
    let Some(oauth) = &server.oauth else {
        return Ok(());
    };
    check(!on_lambda || !oauth.is_in_memory, || {
        "on Lambda, users' grants need a table in DynamoDB, because instances do not share memory: \
         set TOOLS_OAUTH_TABLE, or call OAuth::in_dynamodb in the program"
            .into()
    })?;
    check(!oauth.keys.is_empty(), || {
        "no secret is configured to encrypt users' tokens (TOOLS_OAUTH_KEY_IDS)".into()
    })?;
    for id in &oauth.keys {
        check_length(server, id, crate::oauth::SHORTEST)?;
    }
    let mut ids = HashSet::new();
    for provider in &oauth.providers {
        let mistake = provider.config_error();
        check(mistake.is_none(), || mistake.unwrap_or_default())?;
        let id = provider.id();
        check(ids.insert(id), || {
            format!(
                "there are two providers with the id '{id}'; one that users sign in at is also one \
                 for tools"
            )
        })?;
    }
    Ok(())
}

/// Reads the settings. `None` if there are no providers, and nobody signs in.
fn oauth_setting(is_needed: bool) -> Result<Option<OAuth>, InvalidSetting> {
    let choices = [("open", false), ("authenticated", true)];
    let authenticates = choice("TOOLS_OAUTH_CHECKS", &choices)?;
    let mut providers = Vec::new();
    for (name, preset) in PROVIDERS.into_iter().zip(PRESETS) {
        let Some(client_id) = get(&format!("TOOLS_{name}_CLIENT_ID"))? else {
            continue;
        };
        let provider = preset(client_id, format!("TOOLS_{name}_CLIENT_SECRET"));
        providers.push(match get(&format!("TOOLS_{name}_ISSUER"))? {
            Some(issuer) => provider.issuer(issuer),
            None => provider,
        });
    }
    if providers.is_empty() && !is_needed {
        return Ok(None);
    }
    let keys = list("TOOLS_OAUTH_KEY_IDS", "TOOLS_OAUTH_KEY")?;
    let mut oauth = OAuth::with(providers).key_ids(keys);
    if let Some(table) = get("TOOLS_OAUTH_TABLE")? {
        oauth = oauth.in_store(dynamodb("TOOLS_OAUTH_TABLE")?(table));
    }
    Ok(Some(match authenticates {
        Some(true) => oauth.authenticate_checks(),
        None | Some(false) => oauth,
    }))
}
