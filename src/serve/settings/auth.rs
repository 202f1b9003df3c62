//! The credentials of callers, and the providers at which users let tools act for them.

use super::{InvalidSetting, get, invalid, list, without_feature, yes_or_no};
use crate::{ApiKeys, Auth, Gateway};

const HELP: &str = "TOOLS_AUTH=api-key requires an API key, which is the secret TOOLS_API_KEY (or \
    one of those in TOOLS_API_KEY_IDS); TOOLS_AUTH=jwt requires a JWT, signed with the secret \
    TOOLS_JWT_SECRET (or one of those in TOOLS_JWT_SECRET_IDS); TOOLS_AUTH=oidc requires an access \
    token of one of the identity providers in TOOLS_OIDC_ISSUERS; TOOLS_AUTH=sign-in lets people \
    sign in at the identity provider in TOOLS_SIGN_IN_PROVIDER; TOOLS_AUTH=api-key,oidc accepts \
    either; TOOLS_AUTH=gateway requires a caller that IAM or an API Gateway authorizer has \
    authenticated; TOOLS_AUTH=none lets anyone call. In the program: Server::auth";

/// Returns the error of a server that others can reach, if nothing says who may call it.
pub(in crate::serve) fn undecided(server: &str) -> InvalidSetting {
    InvalidSetting(format!("no setting says who may call {server}. {HELP}"))
}

/// Reads the setting `TOOLS_AUTH`, which is required on Lambda.
pub(super) fn setting(on_lambda: bool) -> Result<Option<Auth>, InvalidSetting> {
    // Even where nothing uses them.
    yes_or_no("TOOLS_JWT_SUBJECT_IS_USER")?;
    get("TOOLS_SIGN_IN_PROVIDER")?;
    let setting = match get("TOOLS_AUTH")? {
        Some(setting) => setting,
        None if on_lambda => return Err(undecided("this function")),
        None => return Ok(None),
    };
    let wrong = |reason: &str| invalid(format!("TOOLS_AUTH is '{setting}': {reason}. {HELP}"));
    let key_ids = || list("TOOLS_API_KEY_IDS", "TOOLS_API_KEY");
    let mut kinds = setting.split(',').map(str::trim);
    let auth = kinds.try_fold(Auth::none(), |auth, kind| {
        Ok(match kind {
            "api-key" => auth.or(ApiKeys::with_ids(key_ids()?)),
            #[cfg(feature = "jwt")]
            "jwt" => auth.or(jwt_setting()?),
            #[cfg(feature = "oidc")]
            "oidc" => auth.or(oidc_setting()?),
            #[cfg(feature = "sign-in")]
            "sign-in" => auth.or(sign_in_setting()?),
            "gateway" => auth.or(Gateway),
            "none" if setting.trim() == "none" => auth,
            "none" => return wrong("none cannot be combined with another value"),
            // These are also the names of the features.
            feature if ["jwt", "oidc", "sign-in"].contains(&feature) => {
                return without_feature(&format!("TOOLS_AUTH={feature}"), feature);
            }
            other => return wrong(&format!("the value '{other}' is unknown")),
        })
    });
    auth.map(Some)
}

#[cfg(feature = "jwt")]
fn jwt_setting() -> Result<crate::Jwt, InvalidSetting> {
    let ids = list("TOOLS_JWT_SECRET_IDS", "TOOLS_JWT_SECRET")?;
    let audiences = list("TOOLS_JWT_AUDIENCES", "")?.into_iter();
    let jwt = audiences.fold(crate::Jwt::with_secret_ids(ids), crate::Jwt::audience);
    let is_user = yes_or_no("TOOLS_JWT_SUBJECT_IS_USER")?.unwrap_or_default();
    Ok(if is_user { jwt.subject_is_user() } else { jwt })
}

#[cfg(feature = "oidc")]
fn oidc_setting() -> Result<Auth, InvalidSetting> {
    use crate::Oidc;

    let issuers = list("TOOLS_OIDC_ISSUERS", "")?;
    if issuers.is_empty() {
        let text = "TOOLS_AUTH=oidc requires the URL of an identity provider in TOOLS_OIDC_ISSUERS";
        return invalid(text);
    }
    let audiences = list("TOOLS_OIDC_AUDIENCES", "")?;
    let oidc = |url: String| audiences.iter().fold(Oidc::issuer(url), Oidc::audience);
    let auth = issuers.into_iter().map(oidc).fold(Auth::none(), Auth::or);
    let scopes = list("TOOLS_OIDC_SCOPES", "")?.into_iter();
    Ok(scopes.fold(auth, Auth::scope))
}

#[cfg(feature = "sign-in")]
fn sign_in_setting() -> Result<Auth, InvalidSetting> {
    use crate::SignIn;

    const SECRET: &str = "TOOLS_SIGN_IN_CLIENT_SECRET";
    let needed = |name: &str, what: &str| {
        let missing = || InvalidSetting(format!("TOOLS_AUTH=sign-in requires {what} in {name}"));
        get(name)?.ok_or_else(missing)
    };
    let providers = "an identity provider (cognito, entra, github, google or openid)";
    let provider = needed("TOOLS_SIGN_IN_PROVIDER", providers)?;
    let id = needed("TOOLS_SIGN_IN_CLIENT_ID", "a client id at the provider")?;
    let issuer = get("TOOLS_SIGN_IN_ISSUER")?.into_iter();
    let named = || needed("TOOLS_SIGN_IN_ISSUER", "the URL of the provider");
    let sign_in = match &*provider {
        "github" => issuer.fold(SignIn::github(id, SECRET), SignIn::at),
        "google" => issuer.fold(SignIn::google(id, SECRET), SignIn::at),
        "cognito" => SignIn::cognito(named()?, id, SECRET),
        "entra" => SignIn::entra(named()?, id, SECRET),
        _ => SignIn::openid(named()?, id, SECRET),
    };
    let rules = list("TOOLS_SIGN_IN_ALLOW", "")?.into_iter();
    let sign_in = rules.fold(sign_in, SignIn::allow);
    let clients = list("TOOLS_SIGN_IN_CLIENTS", "")?.into_iter();
    let sign_in = clients.fold(sign_in, SignIn::client);
    let scopes = list("TOOLS_SIGN_IN_SCOPES", "")?.into_iter();
    Ok(scopes.fold(sign_in.into(), Auth::scope))
}

/// Reads the settings of OAuth providers, and of the store of users' grants. `None` if there are no
/// providers, and nobody signs in.
#[cfg(feature = "oauth")]
pub(super) fn oauth(auth: Option<&Auth>) -> Result<Option<crate::OAuth>, InvalidSetting> {
    use crate::{OAuth, oauth::Provider};

    let mut providers = Vec::new();
    for name in super::variables::PROVIDERS {
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
    if providers.is_empty() && auth.and_then(Auth::sign_in).is_none() {
        return Ok(None);
    }
    let keys = list("TOOLS_OAUTH_KEY_IDS", "TOOLS_OAUTH_KEY")?;
    let oauth = OAuth::with(providers).key_ids(keys);
    match get("TOOLS_OAUTH_TABLE")? {
        None => Ok(Some(oauth)),
        #[cfg(feature = "dynamodb")]
        Some(table) => Ok(Some(oauth.in_dynamodb(table))),
        #[cfg(not(feature = "dynamodb"))]
        Some(_) => without_feature("TOOLS_OAUTH_TABLE", "dynamodb"),
    }
}
