//! The person who has signed in, and the owner's rules for who may.
//!
//! The provider identifies people in an ID token (OpenID Connect Core 1.0, 3.1.3.7), or at GitHub,
//! which issues none, in `GET /user`.

use std::sync::Arc;

use http::header::{ACCEPT, RETRY_AFTER, USER_AGENT};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    Secret,
    auth::{
        jwt::{check_times, texts},
        oidc::{ClaimRules, KeyCache, UnverifiedToken, groups_in},
    },
    clock::Clock,
    http_client::{TransportError, http_client, sent},
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
    IdToken(IdTokens),
    /// At this URL of GitHub's API.
    GitHub(String),
}

/// The ID tokens of an issuer for one client.
#[derive(Clone, Debug)]
pub(super) struct IdTokens {
    pub(super) keys: Arc<KeyCache>,
    pub(super) client_id: String,
    pub(super) addresses: Addresses,
}

/// What an issuer says about people's email addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Addresses {
    /// It verifies them, and the domain of one is that of a company.
    Verified,
    /// Google's: it verifies them, but only `hd` names a company, because anyone can have an account
    /// with an address of any domain.
    OfAnyDomain,
    /// Entra ID's: it does not verify them.
    Unverified,
}

impl IdTokens {
    /// Checks an ID token that the provider has sent, and returns the person that it names.
    pub(super) async fn identity(
        &self,
        token: Option<&str>,
        nonce: Option<&str>,
        names: &ClaimRules,
        clock: &Clock,
    ) -> Result<Identity, FlowError> {
        use FlowError::Denied;

        let token = token.ok_or(Denied("the provider has sent no ID token"))?;
        let token = UnverifiedToken::parse(token.as_bytes()).map_err(Denied)?;
        let keys = self.keys.get(token.key_id.as_deref(), clock, None).await;
        let unavailable = || FlowError::Unavailable("the issuer's keys are missing".to_owned());
        let keys = keys.ok_or_else(unavailable)?;
        let claims = keys.verify_from_issuer(&token).map_err(Denied)?;
        check_times(&claims, clock.now()).map_err(Denied)?;
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
        identity_in(&claims, names, self.addresses)
    }
}

/// Returns the person that the claims of an ID token or of a userinfo response name.
pub(super) fn identity_in(
    claims: &Map<String, Value>,
    names: &ClaimRules,
    addresses: Addresses,
) -> Result<Identity, FlowError> {
    let text = |name: &str| claims.get(name)?.as_str().filter(|it| !it.is_empty());

    // Cognito sends a text.
    let is_verified = |it: &Value| *it == Value::Bool(true) || it == "true";
    let is_verified = claims.get("email_verified").is_some_and(is_verified);
    let address = text("email").filter(|_| is_verified);
    let address = address.map(str::to_ascii_lowercase);
    // An address that nobody has verified may be another person's.
    let user = match names.user_claim.as_str() {
        "email" => address.as_deref(),
        name => text(name),
    };
    let (Some(subject), Some(user)) = (text("sub"), user) else {
        return Err(FlowError::Denied("the ID token does not name the user"));
    };
    let domain = if addresses == Addresses::OfAnyDomain {
        text("hd").map(str::to_ascii_lowercase)
    } else {
        let domain = address.as_deref().and_then(|it| it.rsplit_once('@'));
        domain.map(|(_, domain)| domain.to_owned())
    };
    Ok(Identity {
        user: user.to_owned(),
        subject: subject.to_owned(),
        groups: groups_in(claims, &names.group_claims),
        address,
        domain,
    })
}

/// Asks GitHub who the holder of a token is, and of which organizations in the rules they are a
/// member.
pub(super) async fn github_identity(
    api: &str,
    token: &Secret,
    user_field: &str,
    rules: &[SignInRule],
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
    for rule in rules {
        let SignInRule::Organization(name) = rule else {
            continue;
        };
        let url = format!("{api}/user/memberships/orgs/{name}");
        let membership = described(&url, token).await?;
        if membership.is_some_and(|it| it["state"] == "active") {
            groups.push(name.clone());
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
    let response = sent(request).await.map_err(unavailable)?;
    let (status, headers) = (response.status(), response.headers());
    let returned = || FlowError::Unavailable(format!("the provider returned {status}"));
    // GitHub limits with a 403, too.
    let left = headers.get("x-ratelimit-remaining");
    if status == 403 && (left.is_some_and(|it| it == "0") || headers.contains_key(RETRY_AFTER)) {
        return Err(returned());
    }
    if [401, 403, 404].contains(&status.as_u16()) {
        return Ok(None);
    }
    let read = serde_json::from_slice(response.body()).ok();
    let read = read.filter(|_| status.is_success());
    read.map(Some).ok_or_else(returned)
}

/// A rule for who may sign in: people to whom at least one rule applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SignInRule {
    Anyone,
    /// The user, as tools get it.
    User(String),
    /// An email address that the provider has verified.
    Address(String),
    /// The domain of a company, or of verified addresses.
    Domain(String),
    /// At GitHub, an organization in lower case.
    Organization(String),
    Group(String),
}

impl SignInRule {
    /// Parses `anyone` or `KIND:VALUE`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.trim() == "anyone" {
            return Some(Self::Anyone);
        }
        let (kind, value) = text.split_once(':')?;
        let value = Some(value.trim().to_owned()).filter(|it| !it.is_empty())?;
        Some(match kind.trim() {
            "user" => Self::User(value),
            "address" => Self::Address(value.to_ascii_lowercase()),
            "domain" => Self::Domain(value.to_ascii_lowercase()),
            "organization" => Self::Organization(value.to_ascii_lowercase()),
            "group" => Self::Group(value),
            _ => return None,
        })
    }

    fn allows(&self, person: &Identity) -> bool {
        match self {
            Self::Anyone => true,
            Self::User(user) => *user == person.user,
            Self::Address(address) => person.address.as_ref() == Some(address),
            Self::Domain(domain) => person.domain.as_ref() == Some(domain),
            Self::Organization(name) | Self::Group(name) => person.groups.contains(name),
        }
    }

    /// Returns true if a provider can say to whom the rule applies: GitHub has no groups but its
    /// organizations, and tells no addresses.
    pub(super) fn is_known_from(&self, source: &IdentitySource) -> bool {
        match (self, source) {
            (Self::Anyone | Self::User(_), _)
            | (Self::Organization(_), IdentitySource::GitHub(_))
            | (Self::Group(_), IdentitySource::IdToken(_)) => true,
            (Self::Address(_) | Self::Domain(_), IdentitySource::IdToken(tokens)) => {
                tokens.addresses != Addresses::Unverified
            }
            _ => false,
        }
    }
}

/// Returns true if a rule lets the person sign in.
pub(super) fn may_sign_in(rules: &[SignInRule], person: &Identity) -> bool {
    rules.iter().any(|rule| rule.allows(person))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn addresses_count_once_they_are_verified_and_companies_by_their_claim() {
        use Addresses::{OfAnyDomain, Verified};

        let names = ClaimRules::default();
        let seen = |mut claims: Value, addresses| {
            claims["sub"] = "1".into();
            let person = identity_in(claims.as_object().unwrap(), &names, addresses).unwrap();
            [person.address, person.domain].map(Option::unwrap_or_default)
        };
        // The address that the provider has verified, and not the one that it looks like.
        let address = json!("Mi\u{212a}e@Acme.\u{212a}");
        for mark in [json!(true), json!("true")] {
            let claims = json!({"email": address, "email_verified": mark});
            let expected = ["mi\u{212a}e@acme.\u{212a}", "acme.\u{212a}"];
            assert_eq!(seen(claims.clone(), Verified), expected);
            assert_eq!(seen(claims, OfAnyDomain), [expected[0], ""]);
        }
        let hosted = json!({"hd": "Acme.\u{212a}"});
        assert_eq!(seen(hosted, OfAnyDomain), ["", "acme.\u{212a}"]);
        for mark in [json!(false), json!(null), json!("false"), json!(1)] {
            let claims = json!({"email": address, "email_verified": mark});
            assert_eq!(seen(claims, Verified), ["", ""], "{mark}");
        }
        for nobody in [json!({}), json!({"sub": ""}), json!({"sub": 1})] {
            assert!(identity_in(nobody.as_object().unwrap(), &names, Verified).is_err());
        }
    }

    fn person([user, address, domain, group]: [&str; 4]) -> Identity {
        Identity {
            user: user.to_owned(),
            subject: user.to_owned(),
            groups: vec!["staff".to_owned(), group.to_owned()],
            address: Some(address.to_owned()),
            domain: Some(domain.to_owned()),
        }
    }

    #[test]
    fn one_rule_that_applies_is_enough() {
        let ada = person(["1", "ada@acme.example", "acme.example", "acme"]);
        let texts = "anyone,user:1,address:Ada@Acme.example,address:ADA@ACME.EXAMPLE,domain: acme.example,\
            domain:Acme.Example, domain : ACME.example ,organization:Acme,group:staff";
        for text in texts.split(',') {
            let rules = ["user:2", text].map(|it| SignInRule::parse(it).unwrap());
            assert!(may_sign_in(&rules, &ada), "{text}");
        }
        let texts = "user:ada address:ada@other.example address:ada@acme.example.evil \
            address:acme.example domain:ada@acme.example domain:example \
            domain:evil-acme.example organization:other group:Staff";
        for text in texts.split(' ') {
            let rule = SignInRule::parse(text).unwrap();
            assert!(!may_sign_in(&[rule], &ada), "{text}");
        }
        let texts = ",everyone,Anyone,anyone:,user:,user: ,team:x,Domain:acme.example,acme.example";
        for text in texts.split(',') {
            assert_eq!(SignInRule::parse(text), None, "{text}");
        }
    }

    /// Lower case joins letters of ASCII with others: that of KELVIN SIGN is `k`.
    #[test]
    fn only_the_case_of_ascii_does_not_count() {
        for (rule, identity) in [
            ("address:mike@acme.example", "mi\u{212a}e@acme.example"),
            ("address:mi\u{212a}e@acme.example", "mike@acme.example"),
            ("domain:kelvin.example", "\u{212a}elvin.example"),
            ("domain:\u{212a}elvin.example", "kelvin.example"),
            ("organization:kelvin", "\u{212a}elvin"),
            ("organization:\u{212a}elvin", "kelvin"),
            ("domain:\u{130}x.example", "i\u{307}x.example"),
            ("group:kelvin", "\u{212a}elvin"),
            ("user:kelvin", "\u{212a}elvin"),
        ] {
            let rules = [SignInRule::parse(rule).unwrap()];
            assert!(!may_sign_in(&rules, &person([identity; 4])), "{rule}");
        }
    }
}
