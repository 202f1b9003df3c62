//! The owner's choices of providers in the environment.

use super::{WrongChoice, list, set, variables::PROVIDERS};
use crate::{
    Authorization, Server,
    authorization::{Provider, is_base},
};

type Preset = fn(String, String) -> Provider;

/// In the order of [`PROVIDERS`].
const PRESETS: [Preset; PROVIDERS.len()] = [
    |id, secret| Provider::github(id, secret),
    |id, secret| Provider::google(id, secret),
    |id, secret| Provider::microsoft(id, secret),
    |id, secret| Provider::slack(id, secret),
];

/// Fills in what `server` has not chosen, and checks what it has.
pub(super) fn apply(server: &mut Server, on_lambda: bool) -> Result<(), WrongChoice> {
    if server.authorization.is_none() {
        server.authorization = chosen()?;
    }
    let Some(authorization) = &mut server.authorization else {
        return Ok(());
    };
    if authorization.public_url.is_none() {
        authorization.public_url = set("TOOLS_PUBLIC_URL")?;
    }
    if on_lambda && authorization.is_in_memory {
        let text = "users' grants need a table on Lambda, where no instance knows what another has \
                    been told: TOOLS_AUTHORIZATION_TABLE names one of DynamoDB, or in the program \
                    Authorization::in_dynamodb";
        return Err(WrongChoice(text.into()));
    }
    if authorization.keys.is_empty() {
        let text = "no secret is named that encrypts what is kept of users";
        return Err(WrongChoice(text.into()));
    }
    let providers = &authorization.providers;
    if let Some(mistake) = providers.iter().find_map(|it| it.mistake()) {
        return Err(WrongChoice(mistake));
    }
    let is_twice = |id: &str| providers.iter().filter(|it| it.id() == id).count() > 1;
    if let Some(twice) = providers.iter().find(|it| is_twice(it.id())) {
        let text = format!("there are two providers with the id '{}'", twice.id());
        return Err(WrongChoice(text));
    }
    match authorization.public_url.as_deref() {
        Some(url) if !is_base(url) => Err(WrongChoice(format!(
            "the public URL is '{url}', and has to be an https:// URL without query, \
             fragment and credentials (TOOLS_PUBLIC_URL)"
        ))),
        _ => Ok(()),
    }
}

fn chosen() -> Result<Option<Authorization>, WrongChoice> {
    let mut providers = Vec::new();
    for (name, preset) in PROVIDERS.into_iter().zip(PRESETS) {
        let Some(client_id) = set(&format!("TOOLS_{name}_CLIENT_ID"))? else {
            continue;
        };
        let provider = preset(client_id, format!("TOOLS_{name}_CLIENT_SECRET"));
        providers.push(match set(&format!("TOOLS_{name}_ISSUER"))? {
            Some(issuer) => provider.issuer(issuer),
            None => provider,
        });
    }
    if providers.is_empty() {
        return Ok(None);
    }
    let keys = list("TOOLS_AUTHORIZATION_KEY_IDS", "TOOLS_AUTHORIZATION_KEY")?;
    let mut authorization = Authorization::with(providers).key_ids(keys);
    if let Some(table) = set("TOOLS_AUTHORIZATION_TABLE")? {
        authorization = in_table(authorization, table)?;
    }
    match set("TOOLS_AUTHORIZATION_CHECKS")?.as_deref() {
        None | Some("open") => Ok(Some(authorization)),
        Some("authenticated") => Ok(Some(authorization.checks_ask_for_credentials())),
        Some(other) => Err(WrongChoice(format!(
            "TOOLS_AUTHORIZATION_CHECKS is '{other}', and has to be open or authenticated"
        ))),
    }
}

#[cfg(feature = "dynamodb")]
#[expect(
    clippy::unnecessary_wraps,
    reason = "the same with and without the feature"
)]
fn in_table(authorization: Authorization, table: String) -> Result<Authorization, WrongChoice> {
    Ok(authorization.in_dynamodb(table))
}

#[cfg(not(feature = "dynamodb"))]
fn in_table(_: Authorization, _: String) -> Result<Authorization, WrongChoice> {
    let choice = "TOOLS_AUTHORIZATION_TABLE";
    Err(super::without_feature(choice, "dynamodb"))
}
