//! The person who has signed in, as the provider identifies them: in an ID token (OpenID Connect
//! Core 1.0, 3.1.3.7), or at GitHub, which issues none, in `GET /user`.

use std::sync::Arc;

use http::header::{ACCEPT, RETRY_AFTER, USER_AGENT};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    Secret,
    auth::{
        jwt::validity::check_validity,
        oidc::{KeyCache, UnverifiedToken, groups_in, texts},
    },
    clock::Clock,
    http_client::{TransportError, body_of, http_client},
    oauth::FlowError,
};

/// A person at the provider.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct Identity {
    /// The user, as tools get it.
    pub(super) user: String,
    /// The provider's own id of the user, which never changes.
    pub(super) subject: String,
    /// At GitHub, the organizations in the rules, in lower case.
    pub(super) groups: Vec<String>,
    /// The email address in lower case, if the provider has verified it.
    pub(super) address: Option<String>,
    pub(super) domain: Option<String>,
}

/// The place where the provider says who a person is.
#[derive(Clone, Debug)]
pub(super) enum IdentitySource {
    /// In ID tokens, which the issuer has signed.
    IdToken(Arc<IdTokens>),
    /// At this URL of GitHub's API.
    GitHub(String),
}

/// The ID tokens of an issuer for one client.
#[derive(Debug)]
pub(super) struct IdTokens {
    pub(super) keys: Arc<KeyCache>,
    pub(super) client_id: String,
    /// True for Google, where only `hd` names a company: anyone can have an account with an address
    /// of any domain there.
    pub(super) has_hosted_domain: bool,
}

/// The claims that the user and the groups are taken from.
#[derive(Clone, Debug)]
pub(super) struct IdentityClaims {
    pub(super) user: String,
    pub(super) groups: Vec<String>,
}

impl IdTokens {
    /// Checks an ID token that the provider has sent, and returns the person that it names.
    pub(super) async fn identity(
        &self,
        token: &str,
        nonce: Option<&str>,
        names: &IdentityClaims,
        clock: &Clock,
    ) -> Result<Identity, FlowError> {
        use FlowError::Denied;

        let token = UnverifiedToken::parse(token.as_bytes()).map_err(Denied)?;
        let keys = self.keys.get(token.key_id(), clock, None).await;
        let unavailable = || FlowError::Unavailable("the issuer's keys are missing".to_owned());
        let keys = keys.ok_or_else(unavailable)?;
        let claims = keys.verify_from_issuer(&token).map_err(Denied)?;
        let exp = claims.get("exp").and_then(Value::as_f64);
        check_validity(exp, None, clock.now()).map_err(Denied)?;
        let audiences = claims.get("aud").and_then(texts).unwrap_or_default();
        let is_authorized = match claims.get("azp") {
            Some(party) => party == &*self.client_id,
            None => audiences.len() == 1,
        };
        if !is_authorized || !audiences.contains(&&*self.client_id) {
            return Err(Denied("the ID token is for another client"));
        }
        if nonce.is_some_and(|nonce| claims.get("nonce").is_none_or(|it| it != nonce)) {
            return Err(Denied("the ID token has another nonce"));
        }
        identity_in(&claims, names, self.has_hosted_domain)
    }
}

/// Returns the person that the claims of an ID token or of a userinfo response name.
pub(super) fn identity_in(
    claims: &Map<String, Value>,
    names: &IdentityClaims,
    has_hosted_domain: bool,
) -> Result<Identity, FlowError> {
    let text = |name: &str| claims.get(name)?.as_str().filter(|it| !it.is_empty());

    // Cognito sends a text.
    let is_verified = |it: &Value| *it == Value::Bool(true) || it == "true";
    let is_verified = claims.get("email_verified").is_some_and(is_verified);
    let address = text("email").filter(|_| is_verified);
    let address = address.map(str::to_ascii_lowercase);
    // An address that nobody has verified may be another person's.
    let user = match names.user.as_str() {
        "email" => address.as_deref(),
        name => text(name),
    };
    let (Some(subject), Some(user)) = (text("sub"), user) else {
        return Err(FlowError::Denied("the ID token does not name the user"));
    };
    let domain = if has_hosted_domain {
        text("hd").map(str::to_ascii_lowercase)
    } else {
        let domain = address.as_deref().and_then(|it| it.rsplit_once('@'));
        domain.map(|(_, domain)| domain.to_owned())
    };
    Ok(Identity {
        user: user.to_owned(),
        subject: subject.to_owned(),
        groups: groups_in(claims, &names.groups),
        address,
        domain,
    })
}

/// Asks GitHub who the holder of a token is, and of which of these organizations they are a member.
pub(super) async fn github_identity(
    api: &str,
    token: &Secret,
    user_field: &str,
    organizations: &[&str],
) -> Result<Identity, FlowError> {
    let person = described(&format!("{api}/user"), token).await?;
    let person = person.ok_or(FlowError::Denied("GitHub does not know the user"))?;
    let text = |name: &str| match person.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => number.as_u64().map(|it| it.to_string()),
        _ => None,
    };
    let (Some(subject), Some(user)) = (text("id"), text(user_field)) else {
        return Err(FlowError::Denied("GitHub does not name the user"));
    };
    let mut groups = Vec::new();
    for name in organizations {
        let url = format!("{api}/user/memberships/orgs/{name}");
        let membership = described(&url, token).await?;
        if membership.is_some_and(|it| it["state"] == "active") {
            groups.push((*name).to_owned());
        }
    }
    Ok(Identity {
        user,
        subject,
        groups,
        address: None,
        domain: None,
    })
}

/// Asks a provider about the holder of a token. `None` if it refuses, or if there is no such thing.
pub(super) async fn described(url: &str, token: &Secret) -> Result<Option<Value>, FlowError> {
    let unavailable = |why: TransportError| FlowError::Unavailable(format!("the provider {why}"));
    let request = http_client().map_err(unavailable)?.get(url);
    let request = request
        // Without it, GitHub rejects requests.
        .header(USER_AGENT, "lambda_tools")
        .header(ACCEPT, "application/json")
        .bearer_auth(token.expose());
    let response = request.send().await;
    let response = response.map_err(|error| unavailable(error.into()))?;
    let (status, headers) = (response.status(), response.headers());
    let returned = || FlowError::Unavailable(format!("the provider returned {status}"));
    // GitHub limits with a 403, too.
    let is_used_up = headers
        .get("x-ratelimit-remaining")
        .is_some_and(|it| it == "0");
    if status == 403 && (is_used_up || headers.contains_key(RETRY_AFTER)) {
        return Err(returned());
    }
    if [401, 403, 404].contains(&status.as_u16()) {
        return Ok(None);
    }
    let body = body_of(response).await.map_err(unavailable)?;
    let read = serde_json::from_slice(&body)
        .ok()
        .filter(|_| status.is_success());
    read.map(Some).ok_or_else(returned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn addresses_count_once_they_are_verified_and_companies_by_their_claim() {
        let names = IdentityClaims {
            user: "sub".into(),
            groups: vec!["groups".into()],
        };
        let identity = |claims: Value, is_google| {
            identity_in(claims.as_object().unwrap(), &names, is_google).unwrap()
        };
        let verified = json!({"sub": "1", "email": "Ada@Acme.example", "email_verified": true});
        let person = identity(verified.clone(), false);
        assert_eq!(person.address.as_deref(), Some("ada@acme.example"));
        assert_eq!(person.domain.as_deref(), Some("acme.example"));
        assert_eq!(identity(verified, true).domain, None);
        let hosted = json!({"sub": "1", "hd": "Acme.example"});
        assert_eq!(
            identity(hosted, true).domain.as_deref(),
            Some("acme.example")
        );
        // The provider has verified this address, and not the one that it looks like.
        for (address, expected) in [
            ("mi\u{212a}e@Acme.example", "mi\u{212a}e@acme.example"),
            ("ada@\u{212a}elvin.example", "ada@\u{212a}elvin.example"),
        ] {
            let claims = json!({"sub": "1", "email": address, "email_verified": "true"});
            let person = identity(claims, false);
            assert_eq!(person.address.as_deref(), Some(expected));
            let (_, domain) = expected.split_once('@').unwrap();
            assert_eq!(person.domain.as_deref(), Some(domain));
        }
        let hosted = json!({"sub": "1", "hd": "\u{212a}elvin.example"});
        let person = identity(hosted, true);
        assert_eq!(person.domain.as_deref(), Some("\u{212a}elvin.example"));
        for unverified in [json!(false), json!(null), json!("false"), json!(1)] {
            let claims = json!({"sub": "1", "email": "a@b.c", "email_verified": unverified});
            let person = identity(claims, false);
            assert_eq!(
                (person.address, person.domain),
                (None, None),
                "{unverified}"
            );
        }
        for nobody in [json!({}), json!({"sub": ""}), json!({"sub": 1})] {
            assert!(identity_in(nobody.as_object().unwrap(), &names, false).is_err());
        }
    }
}
