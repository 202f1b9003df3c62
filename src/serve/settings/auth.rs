//! The credentials of callers.

use super::{InvalidSetting, choice, get, list, yes_or_no};
use crate::{ApiKeys, Auth, Gateway};

const HELP: &str = "TOOLS_AUTH=api-key requires an API key, which is the secret \
    TOOLS_API_KEY (or one of those in TOOLS_API_KEY_IDS); TOOLS_AUTH=jwt requires a JWT, \
    signed with the secret TOOLS_JWT_SECRET (or one of those in TOOLS_JWT_SECRET_IDS); \
    TOOLS_AUTH=oidc requires an access token of one of the identity providers in \
    TOOLS_OIDC_ISSUERS; TOOLS_AUTH=sign-in lets people sign in at the identity provider in \
    TOOLS_SIGN_IN_PROVIDER; TOOLS_AUTH=api-key,oidc accepts either; TOOLS_AUTH=gateway requires a \
    caller that IAM or an API Gateway authorizer has authenticated; TOOLS_AUTH=none lets \
    anyone call. In the program: Server::auth";

/// Returns the error of a server that others can reach, if nothing says who may call it.
pub(in crate::serve) fn undecided(server: &str) -> InvalidSetting {
    InvalidSetting(format!("no setting says who may call {server}. {HELP}"))
}

/// Reads the setting `TOOLS_AUTH`, which is required on Lambda.
pub(super) fn auth_setting(on_lambda: bool) -> Result<Option<Auth>, InvalidSetting> {
    // Even where nothing uses them.
    yes_or_no("TOOLS_JWT_SUBJECT_IS_USER")?;
    sign_in_provider()?;
    let Some(setting) = get("TOOLS_AUTH")? else {
        if on_lambda {
            return Err(undecided("this function"));
        }
        return Ok(None);
    };
    let invalid =
        |reason: String| InvalidSetting(format!("TOOLS_AUTH is '{setting}': {reason}. {HELP}"));
    let kinds: Vec<_> = setting.split(',').map(str::trim).collect();
    if kinds == ["none"] {
        return Ok(Some(Auth::none()));
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
            "sign-in" => Ok(auth.or(sign_in_setting()?)),
            "gateway" => Ok(auth.or(Gateway::new())),
            "none" => Err(invalid("none cannot be combined with another value".into())),
            other => Err(invalid(format!("the value '{other}' is unknown"))),
        })
        .map(Some)
}

fn sign_in_provider() -> Result<Option<&'static str>, InvalidSetting> {
    let providers = ["cognito", "entra", "github", "google", "openid"].map(|it| (it, it));
    choice("TOOLS_SIGN_IN_PROVIDER", &providers)
}

#[cfg(feature = "jwt")]
fn jwt_setting() -> Result<crate::Jwt, InvalidSetting> {
    let ids = list("TOOLS_JWT_SECRET_IDS", "TOOLS_JWT_SECRET")?;
    let audiences = list("TOOLS_JWT_AUDIENCES", "")?.into_iter();
    let jwt = audiences.fold(crate::Jwt::with_secret_ids(ids), crate::Jwt::audience);
    Ok(match yes_or_no("TOOLS_JWT_SUBJECT_IS_USER")? {
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

#[cfg(feature = "sign-in")]
fn sign_in_setting() -> Result<Auth, InvalidSetting> {
    use crate::SignIn;

    const SECRET: &str = "TOOLS_SIGN_IN_CLIENT_SECRET";
    let needed = |name: &str, what: &str| {
        let missing = || InvalidSetting(format!("TOOLS_AUTH=sign-in requires {what} in {name}"));
        get(name)?.ok_or_else(missing)
    };
    let provider = sign_in_provider()?.ok_or_else(|| {
        let text = "TOOLS_AUTH=sign-in requires an identity provider in TOOLS_SIGN_IN_PROVIDER: \
            cognito, entra, github, google or openid";
        InvalidSetting(text.into())
    })?;
    let id = needed(
        "TOOLS_SIGN_IN_CLIENT_ID",
        "this server's client id at the provider",
    )?;
    let issuer = get("TOOLS_SIGN_IN_ISSUER")?;
    let named = || needed("TOOLS_SIGN_IN_ISSUER", "the URL of the provider");
    let sign_in = match (provider, issuer) {
        ("github", None) => SignIn::github(id, SECRET),
        ("github", Some(url)) => SignIn::github_at(&url, id, SECRET),
        ("google", None) => SignIn::google(id, SECRET),
        ("google", Some(issuer)) => SignIn::google_at(issuer, id, SECRET),
        ("cognito", _) => SignIn::cognito(named()?, id, SECRET),
        ("entra", _) => SignIn::entra(named()?, id, SECRET),
        _ => SignIn::openid(named()?, id, SECRET),
    };
    let sign_in = list("TOOLS_SIGN_IN_ALLOW", "")?
        .into_iter()
        .fold(sign_in, SignIn::allow);
    let clients = list("TOOLS_SIGN_IN_CLIENTS", "")?;
    let sign_in = clients.into_iter().fold(sign_in, SignIn::client);
    let claim = get("TOOLS_SIGN_IN_USER_CLAIM")?;
    let sign_in = claim.into_iter().fold(sign_in, SignIn::user_claim);
    let life = super::seconds("TOOLS_SIGN_IN_SESSION_SECONDS")?;
    let sign_in = life.into_iter().fold(sign_in, SignIn::sessions_end_after);
    let scopes = list("TOOLS_SIGN_IN_SCOPES", "")?;
    Ok(scopes.into_iter().fold(sign_in.into(), Auth::scope))
}

#[cfg(not(feature = "sign-in"))]
fn sign_in_setting() -> Result<Auth, InvalidSetting> {
    Err(super::without_feature("TOOLS_AUTH=sign-in", "sign-in"))
}
