//! Who calls, once that is known.

use std::{fmt, sync::Arc};

/// Who calls: what the credentials of a request say, or the platform that has checked them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Caller {
    /// Somebody: nothing asks for credentials.
    Anyone,
    /// Who has this API key.
    ApiKey {
        /// The id of the secret that holds the key; of several that belong to one caller, the
        /// first.
        id: Arc<str>,
    },
    /// Who was given a JWT.
    Jwt {
        /// The id of the secret that signed it; of several that belong to one signer, the first.
        id: Arc<str>,
        /// Its `sub` claim.
        subject: Option<String>,
    },
    /// An AWS principal that IAM has let through, for a server that asks for nothing itself.
    Iam {
        /// Its ARN, and behind a space the id of its Cognito identity, if it has one.
        principal: Arc<str>,
    },
    /// Whom an authorizer of API Gateway has let through, for a server that asks for nothing
    /// itself.
    Authorizer {
        /// `jwt ISSUER SUBJECT`, `client ISSUER CLIENT_ID`, `lambda PRINCIPAL`, or `hash …` of what an
        /// authorizer says that names nobody. Blanks in the parts are `%20`.
        principal: Arc<str>,
    },
}

impl Caller {
    /// Whose users, challenges and grants are meant: those of different callers have nothing to
    /// do with each other. The users of one signer of JWTs share one namespace, in which each has
    /// its own `sub`. Empty where callers are not told apart.
    pub(crate) fn namespace(&self) -> String {
        match self {
            Self::Anyone => String::new(),
            Self::Jwt { id, .. } => format!("jwt {id}"),
            named => named.to_string(),
        }
    }
}

/// For logs: `anyone`, `key ID`, `jwt ID SUBJECT`, `iam ARN`, `authorizer PRINCIPAL`.
impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anyone => f.write_str("anyone"),
            Self::ApiKey { id } => write!(f, "key {id}"),
            Self::Jwt { id, subject: None } => write!(f, "jwt {id}"),
            Self::Jwt {
                id,
                subject: Some(subject),
            } => write!(f, "jwt {id} {subject}"),
            Self::Iam { principal } => write!(f, "iam {principal}"),
            Self::Authorizer { principal } => write!(f, "authorizer {principal}"),
        }
    }
}
