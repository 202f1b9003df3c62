//! The credentials of callers.

use super::{InvalidSetting, get, list};
use crate::{ApiKeys, Auth, Gateway};

/// Reads the setting `TOOLS_AUTH`, which is required on Lambda.
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
                Ok(auth.or(ApiKeys::with_ids(ids)))
            }
            "jwt" => Ok(auth.or(jwt_setting()?)),
            "oidc" => Ok(auth.or(oidc_setting()?)),
            "gateway" => Ok(auth.or(Gateway::new())),
            "none" => Err(invalid("none cannot be combined with another value".into())),
            other => Err(invalid(format!("the value '{other}' is unknown"))),
        })
}

#[cfg(feature = "jwt")]
fn jwt_setting() -> Result<crate::Jwt, InvalidSetting> {
    let ids = list("TOOLS_JWT_SECRET_IDS", "TOOLS_JWT_SECRET")?;
    let audiences = list("TOOLS_JWT_AUDIENCES", "")?.into_iter();
    let jwt = audiences.fold(crate::Jwt::with_secret_ids(ids), crate::Jwt::audience);
    Ok(match super::yes_or_no("TOOLS_JWT_SUBJECT_IS_USER")? {
        None | Some(false) => jwt,
        Some(true) => jwt.subject_is_user(),
    })
}

#[cfg(not(feature = "jwt"))]
fn jwt_setting() -> Result<Auth, InvalidSetting> {
    Err(super::without_feature("TOOLS_AUTH=jwt", "jwt"))
}

#[cfg(feature = "oidc")]
fn oidc_setting() -> Result<Auth, InvalidSetting> {
    use crate::Oidc;

    let issuers = list("TOOLS_OIDC_ISSUERS", "")?;
    if issuers.is_empty() {
        let text = "TOOLS_AUTH=oidc requires the URL of an identity provider in TOOLS_OIDC_ISSUERS";
        return Err(InvalidSetting(text.into()));
    }
    let audiences = list("TOOLS_OIDC_AUDIENCES", "")?;
    let clients = list("TOOLS_OIDC_CLIENT_IDS", "")?;
    let scopes = list("TOOLS_OIDC_SCOPES", "")?;
    let user_claim = get("TOOLS_OIDC_USER_CLAIM")?;
    let issuers = issuers.into_iter().map(|url| {
        let issuer = audiences.iter().fold(Oidc::issuer(url), Oidc::audience);
        let issuer = clients.iter().fold(issuer, Oidc::client_id);
        user_claim.iter().fold(issuer, Oidc::user_claim)
    });
    let auth = issuers.fold(Auth::none(), Auth::or);
    // RFC 6749, 3.3 separates scopes with spaces.
    let scopes = scopes.iter().flat_map(|it| it.split_whitespace());
    Ok(scopes.fold(auth, Auth::scope))
}

#[cfg(not(feature = "oidc"))]
fn oidc_setting() -> Result<Auth, InvalidSetting> {
    Err(super::without_feature("TOOLS_AUTH=oidc", "oidc"))
}
