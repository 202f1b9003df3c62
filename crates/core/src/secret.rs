//! A secret: a value that tools may use and nothing may reveal.
//!
//! Secrets have their own type, so that a token or a key cannot be logged, printed in an error or
//! serialized by accident: revealing one requires an explicit call to `expose`.

pub mod redaction;
pub mod stored;

use std::{fmt, sync::Arc};

use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;

/// A secret's value, or a user's token. Erased from memory when its last clone is dropped.
///
/// The process itself keeps clones of the values that it read from the server's store. The encoded
/// values that logs and failures are searched for are not erased.
///
/// It implements neither `Display` nor `Serialize`; its `Debug` reveals nothing of the value.
///
/// ```
/// # use lambda_tools_core as lambda_tools;
/// let secret = lambda_tools::Secret::from("hunter2");
/// assert_eq!(secret.expose(), "hunter2");
/// assert_eq!(format!("{secret:?}"), "Secret(…)");
/// ```
#[derive(Clone)]
pub struct Secret(Arc<SecretString>);

impl Secret {
    /// Returns the value itself, to pass to the API it belongs to.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// Compares the values in constant time.
    pub fn is(&self, other: &Self) -> bool {
        let (value, other) = (self.expose().as_bytes(), other.expose().as_bytes());
        value.ct_eq(other).into()
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self(Arc::new(SecretString::from(value)))
    }
}

impl From<&str> for Secret {
    fn from(value: &str) -> Self {
        Self::from(value.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
