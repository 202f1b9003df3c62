//! The check of a request's credentials, and the reason for a rejection.

use std::{sync::Arc, time::Duration};

use super::AuthError;
use crate::{Secret, secrets::ReadResult};

/// The check of a request's credentials, with the reason for a rejection.
#[derive(Default)]
pub(super) struct CredentialCheck {
    /// True if a secret that could have matched is temporarily unreadable.
    pub(super) is_undecided: bool,
    pub(super) reason: Option<&'static str>,
}

impl CredentialCheck {
    /// Returns the value of a secret. If there is none, logs the reason.
    pub(super) fn secret(&mut self, id: &Arc<str>, read: ReadResult) -> Option<Secret> {
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
