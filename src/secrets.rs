//! Secrets: values that tools may use and nothing may show.
//!
//! A type of their own, so that a token or a key cannot be logged, printed in an error or
//! serialized by accident: showing one takes the word `expose`.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

/// A secret's value, or a user's token. Erased from memory when dropped.
///
/// It has no `Display` and no `Serialize`; its `Debug` shows nothing of the value.
///
/// ```
/// let secret = lambda_tools::Secret::from("hunter2");
/// assert_eq!(secret.expose(), "hunter2");
/// assert_eq!(format!("{secret:?}"), "Secret(…)");
/// ```
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// The value itself, to hand to the API it belongs to.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self(SecretString::from(value))
    }
}

impl From<&str> for Secret {
    fn from(value: &str) -> Self {
        Self(SecretString::from(value))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
