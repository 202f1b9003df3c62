//! The check of a request's credentials, and the reason for a rejection.

use std::time::Duration;

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
    /// Returns the value of a secret with at least this number of bytes. If there is none, logs the
    /// reason.
    pub(super) fn secret(&mut self, id: &str, least: usize, read: ReadResult) -> Option<Secret> {
        let why = match read {
            Ok(Some(secret)) if secret.expose().trim().len() >= least => return Some(secret),
            Ok(Some(_)) => {
                format!("has fewer than {least} bytes: `openssl rand -hex 32` makes one")
            }
            Ok(None) => "is not in the store".to_owned(),
            Err(error) => {
                self.is_undecided |= error.is_temporary();
                format!("cannot be read: {error}")
            }
        };
        tracing::error!(secret = id, "a secret for authentication {why}");
        None
    }

    pub(super) fn into_error(self) -> AuthError {
        if self.is_undecided {
            return AuthError::Undecided(Duration::ZERO);
        }
        AuthError::invalid(self.reason.unwrap_or("the credentials are not valid"))
    }
}
