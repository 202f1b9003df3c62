//! The rules for the claims of an access token.

use std::{sync::Arc, time::SystemTime};

use serde_json::Value;

use crate::{
    AccessToken,
    auth::jwt::{Claims, check_times, name_in, scopes_in, texts},
};

/// The claims that name a client. The first one is RFC 9068's; the others are Azure's and Okta's.
const CLIENT_CLAIMS: [&str; 4] = ["client_id", "azp", "appid", "cid"];

/// The owner's rules for the claims of an issuer's tokens.
#[derive(Clone, Debug)]
pub struct ClaimRules {
    /// The audiences besides the server's own URLs.
    pub audiences: Vec<String>,
    /// The clients whose tokens are accepted without an audience.
    pub client_ids: Vec<String>,
    /// The claim that names the user.
    pub user_claim: String,
    /// The claims that name the user's groups.
    pub group_claims: Vec<String>,
}

impl Default for ClaimRules {
    fn default() -> Self {
        Self {
            audiences: Vec::new(),
            client_ids: Vec::new(),
            user_claim: "sub".to_owned(),
            group_claims: vec!["groups".to_owned(), "cognito:groups".to_owned()],
        }
    }
}

impl ClaimRules {
    /// Checks the time, the recipient and the kind of the token.
    pub(super) fn check(
        &self,
        claims: &Claims,
        now: SystemTime,
        server_url: Option<&str>,
    ) -> Result<(), &'static str> {
        check_times(claims, now)?;
        check_kind(claims)?;
        // Only a URL names this server beyond doubt: the audience of an ID token is a client.
        let is_marked = claims.keys().any(|it| is_of_access_token(it));
        if self.names_server(claims, server_url)? || is_marked {
            return Ok(());
        }
        Err("nothing says that the JWT is an access token")
    }

    /// Checks that the token is for this server. Returns true if its audience is a URL.
    fn names_server(
        &self,
        claims: &Claims,
        server_url: Option<&str>,
    ) -> Result<bool, &'static str> {
        let Some(audience) = claims.get("aud") else {
            let client = claims.get("client_id").and_then(Value::as_str);
            return match client {
                Some(client) if self.client_ids.iter().any(|it| it == client) => Ok(false),
                _ => Err(
                    "the JWT has no aud claim, and its client_id is not one of the server's \
                     client ids",
                ),
            };
        };
        let audiences = texts(audience).ok_or("the JWT's aud claim is not valid")?;
        let accepted = audiences.into_iter();
        let accepted: Vec<_> = accepted
            .filter(|it| self.accepts_audience(it, server_url))
            .collect();
        if accepted.is_empty() {
            return Err("the JWT's aud claim names none of the server's audiences");
        }
        Ok(accepted.iter().any(|it| it.contains("://")))
    }

    fn accepts_audience(&self, audience: &str, server_url: Option<&str>) -> bool {
        let audience = audience.trim_end_matches('/');
        let mut configured = self.audiences.iter().map(|it| it.trim_end_matches('/'));
        let is_server = server_url.is_some_and(|url| is_server(audience, url));
        !audience.is_empty() && (is_server || configured.any(|it| it == audience))
    }

    /// Returns the facts about the holder, whom the token must name.
    pub(super) fn token_of(
        &self,
        issuer: Arc<str>,
        claims: &Claims,
    ) -> Result<AccessToken, &'static str> {
        let client = |name: &str| claims.get(name)?.as_str().filter(|it| !it.is_empty());
        let client = CLIENT_CLAIMS.into_iter().find_map(client);
        let mut token = AccessToken::of(issuer);
        token.user = name_in(claims, &self.user_claim)?.filter(|it| !it.is_empty());
        token.subject = name_in(claims, "sub")?.filter(|it| !it.is_empty());
        token.client_id = client.map(str::to_owned);
        token.scopes = scopes_in(claims);
        token.groups = groups_in(claims, &self.group_claims);
        if token.user.is_none() && token.subject.is_none() && token.client_id.is_none() {
            return Err("the JWT names neither a user nor a client");
        }
        Ok(token)
    }
}

/// The path of MCP below the server's URL.
pub(in crate::auth) const MCP: &str = "/mcp";

/// Returns true if a resource is the server with this URL, or its MCP. Clients and issuers add or
/// remove a trailing slash when they parse a URL.
pub(in crate::auth) fn is_server(resource: &str, url: &str) -> bool {
    let resource = resource.trim_end_matches('/');
    matches!(
        resource.strip_prefix(url.trim_end_matches('/')),
        Some("" | MCP)
    )
}

pub(in crate::auth) fn groups_in(claims: &Claims, names: &[String]) -> Vec<String> {
    let values = names.iter().filter_map(|name| claims.get(name));
    let groups = values.filter_map(texts).flatten();
    groups.map(str::to_owned).collect()
}

/// Rejects tokens that say that they are ID tokens, refresh tokens or others.
fn check_kind(claims: &Claims) -> Result<(), &'static str> {
    let is_other = |name: &str, access: &str| {
        let kind = claims.get(name).map(|it| it.as_str().unwrap_or_default());
        kind.is_some_and(|it| !it.eq_ignore_ascii_case(access))
    };
    // Cognito's claim, and Keycloak's.
    let is_marked = is_other("token_use", "access") || is_other("typ", "Bearer");
    // OpenID Connect Core 1.0, 2. Keycloak's access tokens may have a nonce.
    let has_nonce = claims.contains_key("nonce") && !claims.contains_key("typ");
    let is_other_kind = claims.keys().any(|it| is_of_other_kind(it));
    if is_marked || has_nonce || is_other_kind {
        return Err("the JWT is not an access token");
    }
    Ok(())
}

/// Returns true for the claims that only other tokens of an issuer have: ID tokens (OpenID Connect
/// Core 1.0, 3.3.2.11; Financial-grade API 1.0, part 2, 5.1), logout tokens and security events (RFC
/// 8417, 2.2), and request objects (RFC 9101, 4).
fn is_of_other_kind(claim: &str) -> bool {
    let is_in_id_token = matches!(claim, "at_hash" | "c_hash" | "s_hash");
    is_in_id_token || matches!(claim, "events" | "redirect_uri" | "response_type")
}

/// Returns true for a claim that only access tokens have.
fn is_of_access_token(claim: &str) -> bool {
    let is_of_client = matches!(claim, "appid" | "azpacr" | "cid" | "client_id");
    is_of_client || matches!(claim, "scope" | "scp" | "token_use" | "typ")
}
