//! Checks a request's credentials against the secrets in the store.

#[cfg(feature = "jwt")]
use std::time::SystemTime;
use std::{sync::Arc, time::Duration};

use subtle::ConstantTimeEq;

#[cfg(feature = "jwt")]
use super::jwt::{JwtSigner, SigningKey, verify};
use super::{AuthError, rotation::SecretRotation};
#[cfg(feature = "jwt")]
use crate::Caller;
use crate::{Secret, secrets::ReadResult};

/// The check of a request's credentials, with the reason for a rejection.
#[derive(Default)]
pub(super) struct CredentialCheck {
    /// True if a secret that could have matched is temporarily unreadable.
    is_undecided: bool,
    pub(super) reason: Option<&'static str>,
}

impl CredentialCheck {
    /// The name of the caller whose key matches.
    ///
    /// All keys are compared, even after a match, and the time of a comparison does not depend on
    /// how much of a key matches.
    pub(super) fn api_key(
        &mut self,
        presented: &[u8],
        keys: &[SecretRotation],
        reads: impl Iterator<Item = ReadResult>,
    ) -> Option<Arc<str>> {
        let mut caller = None;
        let mut has_key = false;
        let ids = keys
            .iter()
            .flat_map(|one| one.ids().iter().map(move |id| (one.name(), id)));
        for ((name, id), read) in ids.zip(reads) {
            let Some(key) = self.secret(id, read) else {
                continue;
            };
            // Secrets pasted into a store often end with a line feed, which no header can carry.
            let key = key.expose().trim().as_bytes();
            // An empty value is an unset secret, not a key.
            has_key |= !key.is_empty();
            let is_match = bool::from(key.ct_eq(presented)) & !key.is_empty();
            if is_match & caller.is_none() {
                caller = Some(Arc::clone(name));
            }
        }
        self.reason = Some(if has_key {
            "the API key is not valid"
        } else {
            // Every call is rejected until the store has a key.
            "the server has no API key to compare with"
        });
        caller
    }

    #[cfg(feature = "jwt")]
    pub(super) fn token(
        &mut self,
        presented: &[u8],
        signers: &[JwtSigner],
        reads: impl Iterator<Item = ReadResult>,
        now: SystemTime,
    ) -> Option<Caller> {
        let ids = signers.iter().flat_map(|signer| {
            let ids = signer.secrets.ids().iter();
            ids.map(move |id| (signer, id))
        });
        let mut keys = Vec::new();
        for ((signer, id), read) in ids.zip(reads) {
            let secret = self.secret(id, read);
            keys.extend(secret.map(|value| SigningKey { signer, id, value }));
        }
        match verify(presented, keys, now) {
            Ok(caller) => Some(caller),
            Err(error) => {
                self.reason = Some(error.reason);
                // If a readable secret signed the token, unreadable secrets cannot change the
                // result.
                self.is_undecided &= !error.has_valid_signature;
                None
            }
        }
    }

    /// The value of a secret. If there is none, logs the reason.
    fn secret(&mut self, id: &Arc<str>, read: ReadResult) -> Option<Secret> {
        match read {
            Ok(Some(secret)) => return Some(secret),
            Ok(None) => tracing::error!(
                secret = &**id,
                "a secret for authentication is not in the store"
            ),
            Err(error) => {
                self.is_undecided |= error.is_temporary();
                let text = "a secret for authentication cannot be read";
                tracing::error!(secret = &**id, %error, "{text}");
            }
        }
        None
    }

    pub(super) fn into_error(self) -> AuthError {
        if self.is_undecided {
            return AuthError::Undecided(Duration::ZERO);
        }
        AuthError::invalid(self.reason.unwrap_or("the credentials are not valid"))
    }
}
