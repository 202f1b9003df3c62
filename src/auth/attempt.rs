//! Comparing the credentials of a request with what the store says.

use std::sync::Arc;
#[cfg(feature = "jwt")]
use std::time::SystemTime;

use subtle::ConstantTimeEq;

#[cfg(feature = "jwt")]
use super::jwt::JwtVerifier;
#[cfg(feature = "jwt")]
use super::jwt::SigningKey;
use super::{
    AuthError,
    rotation::{SecretRotation, named},
};
#[cfg(feature = "jwt")]
use crate::Caller;
use crate::{Secret, secrets::ReadResult};

/// What came of comparing credentials.
#[derive(Default)]
pub(super) struct CredentialCheck {
    /// Whether something could not be read that might have fitted.
    is_undecided: bool,
    why: Option<&'static str>,
}

impl CredentialCheck {
    /// The name of the caller whose key fits.
    ///
    /// All keys are compared, whichever fits, and each in a time that does not depend on how much
    /// of it fits.
    pub(super) fn key(
        &mut self,
        given: &[u8],
        keys: &[SecretRotation],
        reads: Vec<ReadResult>,
    ) -> Option<Arc<str>> {
        let mut found = None;
        let mut is_any = false;
        for ((name, id), read) in named(keys).zip(reads) {
            let Some(key) = self.readable(id, read) else {
                continue;
            };
            // What is pasted into a store often ends with a line feed, which no header can carry.
            let key = key.expose().trim().as_bytes();
            // Empty is what is left when a value was not set, and no key.
            is_any |= !key.is_empty();
            let fits = bool::from(key.ct_eq(given)) & !key.is_empty();
            if fits & found.is_none() {
                found = Some(Arc::clone(name));
            }
        }
        self.why = Some(if is_any {
            "the API key is not valid"
        } else {
            // Nobody can call until somebody puts one there.
            "no API key is there to compare with"
        });
        found
    }

    #[cfg(feature = "jwt")]
    pub(super) fn token(
        &mut self,
        given: &[u8],
        jwt: &JwtVerifier,
        reads: Vec<ReadResult>,
        now: SystemTime,
    ) -> Option<Caller> {
        let mut secrets = Vec::new();
        for ((name, id), read) in named(&jwt.secrets).zip(reads) {
            let secret = self.readable(id, read);
            secrets.extend(secret.map(|value| SigningKey { name, id, value }));
        }
        match jwt.signed_by(given, secrets, now) {
            Ok((name, subject)) => Some(Caller::Jwt {
                id: Arc::clone(name),
                subject,
            }),
            Err(refusal) => {
                self.why = Some(refusal.why);
                // Nobody else's secret signed it.
                self.is_undecided &= !refusal.is_signed;
                None
            }
        }
    }

    fn readable(&mut self, id: &Arc<str>, read: ReadResult) -> Option<Secret> {
        match read {
            Ok(Some(secret)) => return Some(secret),
            Ok(None) => tracing::error!(
                secret = &**id,
                "a secret that callers need is not in the store"
            ),
            Err(error) => {
                self.is_undecided |= error.is_temporary();
                tracing::error!(secret = &**id, %error, "a secret that callers need cannot be read");
            }
        }
        None
    }

    pub(super) fn refused(self) -> AuthError {
        if self.is_undecided {
            return AuthError::Undecided;
        }
        AuthError::Unauthenticated(self.why.unwrap_or("there are no credentials"))
    }
}
