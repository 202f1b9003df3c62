//! The kinds of credentials that a server accepts, for the document that describes it.

use super::Auth;

/// A kind of credentials.
pub(crate) enum AcceptedCredentials {
    /// An API key: `OXP-API-Key`, or `Authorization: Bearer`.
    ApiKey,
    /// A JWT that is signed with a shared secret.
    Jwt,
    /// An access token of the issuer with this URL.
    #[cfg(feature = "oidc")]
    AccessToken(String),
    /// The credentials that API Gateway or IAM checks.
    Platform,
}

impl Auth {
    /// The accepted kinds; empty if anyone may call.
    pub(crate) fn accepted(&self) -> Vec<AcceptedCredentials> {
        let mut accepted = Vec::new();
        if self.keys.is_some() {
            accepted.push(AcceptedCredentials::ApiKey);
        }
        if self.has_jwt() {
            accepted.push(AcceptedCredentials::Jwt);
        }
        #[cfg(feature = "oidc")]
        accepted.extend(
            self.issuer_urls()
                .map(|url| AcceptedCredentials::AccessToken(url.to_owned())),
        );
        if self.accepts_gateway {
            accepted.push(AcceptedCredentials::Platform);
        }
        accepted
    }
}
