//! The accepted credentials in words, for the log.

use std::sync::Arc;

use super::{Auth, rotation::SecretRotation};
use crate::{secrets::SecretCache, text::alternatives};

impl Auth {
    /// The accepted kinds of credentials with the ids of their secrets or the URLs of their issuers,
    /// or `none`.
    pub(crate) fn summary(&self) -> String {
        let kinds = self.kinds().into_iter();
        let kinds = kinds.map(|(setting, _, rotations)| {
            let callers = rotations.iter().map(|one| one.ids().join("|"));
            format!("{setting} ({})", callers.collect::<Vec<_>>().join(", "))
        });
        #[cfg(feature = "oidc")]
        let kinds = {
            let urls: Vec<_> = self.issuer_urls().collect();
            let issuers = (!urls.is_empty()).then(|| format!("oidc ({})", urls.join(", ")));
            kinds.chain(issuers)
        };
        let gateway = self.accepts_gateway.then(|| "gateway".to_owned());
        let kinds: Vec<_> = kinds.chain(gateway).collect();
        if kinds.is_empty() {
            return "none".to_owned();
        }
        kinds.join(", ")
    }

    /// A warning that every call will be rejected, because the store has none of the secrets that
    /// callers are checked with. `None` if a secret exists, or may exist but cannot be read.
    pub(crate) async fn warning_without_secrets(
        &self,
        secrets: &Arc<SecretCache>,
    ) -> Option<String> {
        // Callers that need no secret may still be accepted.
        if self.is_open() || self.has_issuers() || self.accepts_gateway {
            return None;
        }
        let kinds = self.kinds();
        let names: Vec<_> = kinds.iter().map(|(_, name, _)| *name).collect();
        let kinds = alternatives(&names);
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

    /// The accepted kinds of credentials: the setting, the name of the secret, and the secrets.
    fn kinds(&self) -> Vec<(&'static str, &'static str, Vec<&SecretRotation>)> {
        let keys = self.keys.as_ref();
        let keys = keys.map(|keys| ("api-key", "API key", keys.iter().collect()));
        let kinds = keys.into_iter();
        #[cfg(feature = "jwt")]
        let kinds = {
            let jwt = self.jwt.is_some().then(|| self.jwt_secrets().collect());
            kinds.chain(jwt.map(|secrets| ("jwt", "JWT secret", secrets)))
        };
        kinds.collect()
    }
}
