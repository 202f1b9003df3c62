//! The accepted credentials in words, for the log.

use std::sync::Arc;

use super::{Auth, rotation::SecretRotation};
use crate::{secrets::SecretCache, text::alternatives};

impl Auth {
    /// Returns the accepted kinds of credentials with the ids of their secrets or the URLs of their
    /// issuers, or `none`.
    pub(crate) fn summary(&self) -> String {
        let mut kinds = Vec::new();
        if self.has_keys() {
            kinds.push(format!("api-key ({})", ids_of(self.key_secrets())));
        }
        if self.has_jwt() {
            kinds.push(format!("jwt ({})", ids_of(self.jwt_secrets())));
        }
        if let Some(sign_in) = self.sign_in() {
            kinds.push(format!("sign-in ({})", sign_in.provider_id()));
        }
        if self.issuer_urls().next().is_some() {
            let urls: Vec<_> = self.issuer_urls().collect();
            kinds.push(format!("oidc ({})", urls.join(", ")));
        }
        if self.accepts_gateway {
            kinds.push("gateway".to_owned());
        }
        if kinds.is_empty() {
            return "none".to_owned();
        }
        kinds.join(", ")
    }

    /// Returns a warning that every call will be rejected, because the store has none of the
    /// secrets that callers are checked with. `None` if a secret exists, or may exist but cannot be
    /// read.
    pub(crate) async fn warning_without_secrets(
        &self,
        secrets: &Arc<SecretCache>,
    ) -> Option<String> {
        // Callers that need no secret may still be accepted.
        if self.is_open() || self.has_issuers() || self.accepts_gateway {
            return None;
        }
        let kinds = [(self.has_keys(), "API key"), (self.has_jwt(), "JWT secret")];
        let kinds = kinds.iter().filter(|(is_accepted, _)| *is_accepted);
        let kinds: Vec<_> = kinds.map(|(_, name)| *name).collect();
        let kinds = alternatives(&kinds);
        let ids: Vec<_> = self.secrets().collect();
        let Some(first) = ids.first() else {
            return Some(format!(
                "no {kinds} is configured: every call is rejected (TOOLS_API_KEY_IDS, \
                 TOOLS_JWT_SECRET_IDS)"
            ));
        };
        let results = secrets.read(&ids, None).await;
        if results.iter().any(|result| !matches!(result, Ok(None))) {
            return None;
        }
        let (ids, advice) = (alternatives(&ids), secrets.advice(first));
        Some(format!(
            "no {kinds} is stored: every call is rejected until the secret {ids} exists; {advice}"
        ))
    }
}

fn ids_of<'a>(rotations: impl Iterator<Item = &'a SecretRotation>) -> String {
    let callers = rotations.map(|one| one.ids().join("|"));
    callers.collect::<Vec<_>>().join(", ")
}
