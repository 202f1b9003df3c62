//! Authorization requests and their responses: RFC 6749, 4.1; RFC 7636, 4.3; RFC 8707, section 2.
//!
//! The errors that clients get are those of RFC 6749, 4.1.2.1 and 5.2; RFC 7009, 2.2.1; RFC 7591,
//! 3.2.2; RFC 8707, section 2.

use std::collections::BTreeSet;

use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::client::{Client, hash_of};
use crate::{
    StoreError,
    auth::oidc::{MCP, is_server},
    oauth::Parameters,
};

/// The length of a code challenge: SHA-256 in base64url.
const CHALLENGE_LENGTH: usize = 43;
/// The maximum length of a client's state, in bytes: it is part of a record that anyone can write.
const LONGEST_STATE: usize = 2048;

/// An error's code and its description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OAuthError {
    /// The code, such as `invalid_grant`: RFC 6749, 4.1.2.1 and 5.2; RFC 7591, 3.2.2.
    pub code: &'static str,
    /// A sentence for the developer of the client.
    pub description: &'static str,
}

impl OAuthError {
    pub(super) const fn new(code: &'static str, description: &'static str) -> Self {
        Self { code, description }
    }

    /// Creates the error of a request that cannot be read or has a wrong parameter.
    pub const fn request(description: &'static str) -> Self {
        Self::new("invalid_request", description)
    }

    pub(super) const fn grant(description: &'static str) -> Self {
        Self::new("invalid_grant", description)
    }
}

/// The error of an endpoint.
#[derive(Debug)]
pub enum EndpointError {
    /// The client has made a mistake, or may not have what it asks for.
    Rejected(OAuthError),
    /// The same request may succeed later.
    Unavailable(String),
}

impl From<OAuthError> for EndpointError {
    fn from(error: OAuthError) -> Self {
        Self::Rejected(error)
    }
}

impl From<StoreError> for EndpointError {
    fn from(error: StoreError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// An authorization request of a known client with one of its redirect URIs.
#[derive(Clone, Deserialize, Serialize)]
pub(super) struct AuthorizationRequest {
    /// The hash of the client's id.
    pub(super) client_hash: String,
    /// The client in a few words, for logs.
    pub(super) client: String,
    pub(super) redirect_uri: String,
    pub(super) state: Option<String>,
    pub(super) challenge: String,
    /// The resource that tokens are for.
    pub(super) resource: String,
    pub(super) scopes: Vec<String>,
}

/// The scopes of a server.
pub(super) struct ServerScopes {
    /// Those that every call requires.
    pub(super) required: Vec<String>,
    /// Those that any call requires.
    pub(super) known: BTreeSet<String>,
}

impl ServerScopes {
    /// Returns the scopes of a token: those that every call requires, and of the requested ones those
    /// that mean something here (RFC 6749, 3.3).
    fn granted(&self, requested: Option<&str>) -> Vec<String> {
        let requested = requested.unwrap_or_default().split(' ');
        let known = requested.filter(|scope| self.known.contains(*scope));
        let all = self.required.iter().map(String::as_str).chain(known);
        let all: BTreeSet<_> = all.collect();
        all.into_iter().map(str::to_owned).collect()
    }
}

impl AuthorizationRequest {
    /// Checks the parameters of a request.
    pub(super) fn check(
        parameters: &Parameters,
        client: &Client,
        redirect_uri: &str,
        base: &str,
        scopes: &ServerScopes,
    ) -> Result<Self, OAuthError> {
        let invalid = OAuthError::request;
        match parameters.get("response_type") {
            Some("code") => {}
            None => return Err(invalid("response_type is missing")),
            Some(_) => {
                let code = "unsupported_response_type";
                return Err(OAuthError::new(code, "response_type must be code"));
            }
        }
        if parameters.get("response_mode").unwrap_or("query") != "query" {
            return Err(invalid("response_mode must be query"));
        }
        if parameters.get("code_challenge_method") != Some("S256") {
            return Err(invalid("code_challenge_method must be S256"));
        }
        let is_encoded = |it: &&str| {
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            it.len() == CHALLENGE_LENGTH && it.bytes().all(is_allowed)
        };
        let challenge = parameters.get("code_challenge").filter(is_encoded);
        let challenge =
            challenge.ok_or(invalid("code_challenge must be a SHA-256 in base64url"))?;
        let resource = match parameters.get("resource") {
            None => format!("{base}{MCP}"),
            Some(resource) if is_server(resource, base) => resource.to_owned(),
            Some(_) => {
                let text = "resource is not the URL of this server";
                return Err(OAuthError::new("invalid_target", text));
            }
        };
        let state = parameters.get("state");
        if state.is_some_and(|it| it.len() > LONGEST_STATE) {
            return Err(invalid("state is longer than 2048 bytes"));
        }
        Ok(Self {
            client_hash: hash_of(&client.id),
            client: client.label().to_owned(),
            redirect_uri: redirect_uri.to_owned(),
            state: state.map(str::to_owned),
            challenge: challenge.to_owned(),
            resource,
            scopes: scopes.granted(parameters.get("scope")),
        })
    }

    /// Returns the URL that sends the browser back to the client with a code or an error.
    pub(super) fn response_url(&self, result: Result<&str, &OAuthError>, issuer: &str) -> String {
        response_url(&self.redirect_uri, self.state.as_deref(), result, issuer)
    }
}

/// Returns the URL of an authorization response, which names its issuer: RFC 9207, section 2.
pub(super) fn response_url(
    redirect_uri: &str,
    state: Option<&str>,
    result: Result<&str, &OAuthError>,
    issuer: &str,
) -> String {
    let mut url = Url::parse(redirect_uri).expect("requests name redirect URIs that are valid");
    let fields = match result {
        Ok(code) => vec![("code", code)],
        Err(error) => vec![
            ("error", error.code),
            ("error_description", error.description),
        ],
    };
    let state = state.map(|state| ("state", state));
    let all = fields.into_iter().chain(state).chain([("iss", issuer)]);
    url.query_pairs_mut().extend_pairs(all);
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_the_required_scopes_and_the_requested_ones_that_exist() {
        let list = |all: &[&str]| all.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
        let scopes = ServerScopes {
            required: list(&["call"]),
            known: list(&["call", "mail"]).into_iter().collect(),
        };
        assert_eq!(scopes.granted(None), ["call"]);
        let granted = scopes.granted(Some("mail openid offline_access"));
        assert_eq!(granted, ["call", "mail"]);
        assert_eq!(scopes.granted(Some("admin")), ["call"]);
    }

    #[test]
    fn a_response_keeps_the_query_of_the_redirect_uri() {
        let uri = "https://a.example/cb?x=1";
        let url = response_url(uri, Some("s&t"), Ok("c"), "https://i");
        let expected = "https://a.example/cb?x=1&code=c&state=s%26t&iss=https%3A%2F%2Fi";
        assert_eq!(url, expected);
    }
}
