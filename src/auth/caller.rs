//! Who calls, once that is known.

use std::{fmt, sync::Arc};

/// Who calls: what the credentials of a request say.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Caller {
    /// Somebody: the server asks for no credentials.
    Anyone,
    /// Who has this API key.
    ApiKey {
        /// The id of the secret that holds the key.
        id: Arc<str>,
    },
    /// Who was given a JWT.
    Jwt {
        /// Its `sub` claim.
        subject: Option<String>,
    },
}

/// For logs: `anyone`, `key ID`, `jwt SUBJECT`.
impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anyone => f.write_str("anyone"),
            Self::ApiKey { id } => write!(f, "key {id}"),
            Self::Jwt { subject: None } => f.write_str("jwt"),
            Self::Jwt {
                subject: Some(subject),
            } => write!(f, "jwt {subject}"),
        }
    }
}
