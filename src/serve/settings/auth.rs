//! The credentials of callers.

#[cfg(not(all(feature = "jwt", feature = "oidc")))]
use super::without_feature;
#[cfg(feature = "jwt")]
use super::yes_or_no;
use super::{InvalidSetting, get, list};
use crate::Auth;

/// The setting `TOOLS_AUTH`, which is required on Lambda.
pub(super) fn auth_setting(on_lambda: bool) -> Result<Auth, InvalidSetting> {
    const HELP: &str = "TOOLS_AUTH=api-key requires an API key, which is the secret \
        TOOLS_API_KEY (or one of those in TOOLS_API_KEY_IDS); TOOLS_AUTH=jwt requires a JWT, \
        signed with the secret TOOLS_JWT_SECRET (or one of those in TOOLS_JWT_SECRET_IDS); \
        TOOLS_AUTH=oidc requires an access token of one of the identity providers in \
        TOOLS_OIDC_ISSUERS; TOOLS_AUTH=api-key,oidc accepts either; TOOLS_AUTH=gateway requires a \
        caller that IAM or an API Gateway authorizer has authenticated; TOOLS_AUTH=none lets \
        anyone call. In the program: Server::auth";
    let Some(setting) = get("TOOLS_AUTH")? else {
        if on_lambda {
            let text = format!("no setting says who may call this function. {HELP}");
            return Err(InvalidSetting(text));
        }
        return Ok(Auth::none());
    };
    let invalid =
        |reason: String| InvalidSetting(format!("TOOLS_AUTH is '{setting}': {reason}. {HELP}"));
    let kinds: Vec<_> = setting.split(',').map(str::trim).collect();
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
            "jwt" => Ok(auth.or(jwt_setting()?)),
            "oidc" => Ok(auth.or(oidc_setting()?)),
            "gateway" => Ok(auth.or(Auth::gateway())),
            "none" => Err(invalid("none cannot be combined with another value".into())),
            other => Err(invalid(format!("the value '{other}' is unknown"))),
        })
}

#[cfg(feature = "jwt")]
fn jwt_setting() -> Result<Auth, InvalidSetting> {
    let ids = list("TOOLS_JWT_SECRET_IDS", "TOOLS_JWT_SECRET")?;
    let audiences = list("TOOLS_JWT_AUDIENCES", "")?.into_iter();
    let auth = audiences.fold(Auth::jwt_secret_ids(ids), Auth::audience);
    Ok(match yes_or_no("TOOLS_JWT_SUBJECT_IS_USER")? {
        None | Some(false) => auth,
        Some(true) => auth.subject_is_user(),
    })
}

#[cfg(not(feature = "jwt"))]
fn jwt_setting() -> Result<Auth, InvalidSetting> {
    Err(without_feature("TOOLS_AUTH=jwt", "jwt"))
}

#[cfg(feature = "oidc")]
fn oidc_setting() -> Result<Auth, InvalidSetting> {
    let issuers = list("TOOLS_OIDC_ISSUERS", "")?;
    if issuers.is_empty() {
        let text = "TOOLS_AUTH=oidc requires the URL of an identity provider in TOOLS_OIDC_ISSUERS";
        return Err(InvalidSetting(text.into()));
    }
    let issuers = issuers.into_iter();
    let auth = issuers.fold(Auth::none(), |auth, url| auth.or(Auth::issuer(url)));
    let audiences = list("TOOLS_OIDC_AUDIENCES", "")?.into_iter();
    let auth = audiences.fold(auth, Auth::audience);
    let clients = list("TOOLS_OIDC_CLIENT_IDS", "")?.into_iter();
    let auth = clients.fold(auth, Auth::client_id);
    let scopes = list("TOOLS_OIDC_SCOPES", "")?;
    // RFC 6749, 3.3 separates scopes with spaces.
    let scopes = scopes.iter().flat_map(|it| it.split_whitespace());
    let auth = scopes.fold(auth, Auth::scope);
    Ok(match get("TOOLS_OIDC_USER_CLAIM")? {
        None => auth,
        Some(claim) => auth.user_claim(claim),
    })
}

#[cfg(not(feature = "oidc"))]
fn oidc_setting() -> Result<Auth, InvalidSetting> {
    Err(without_feature("TOOLS_AUTH=oidc", "oidc"))
}
