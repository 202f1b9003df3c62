//! The caller of a request, after authentication.

use std::{fmt, sync::Arc};

/// The caller of a request, identified by its credentials or by the platform that checked them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Caller {
    /// Any caller: no credentials are required.
    Anyone,
    /// The holder of an API key.
    ApiKey {
        /// The id of the secret that holds the key; the first id if the caller has several.
        id: Arc<str>,
    },
    /// The holder of a JWT.
    Jwt {
        /// The id of the secret that signed it; the first id if the signer has several.
        id: Arc<str>,
        /// Its `sub` claim.
        subject: Option<String>,
    },
    /// An AWS principal authenticated by IAM, for a server that requires no credentials itself.
    Iam {
        /// Its ARN, followed by a space and the id of its Cognito identity, if it has one.
        principal: Arc<str>,
    },
    /// A principal that IAM allows to invoke the function itself, with an event that is a call.
    /// Lambda does not say which.
    Invoker,
    /// A caller authenticated by an API Gateway authorizer, for a server that requires no
    /// credentials itself.
    Authorizer {
        /// `jwt ISSUER SUBJECT`, `client ISSUER CLIENT_ID`, `lambda PRINCIPAL`, or `hash …` of an
        /// authorizer's result that names no principal. Spaces in the parts become `%20`.
        principal: Arc<str>,
    },
}

impl Caller {
    /// The namespace of the caller's users, challenges and grants, which callers do not share. The
    /// users of one JWT signer share one namespace, in which each has a different `sub`. Empty if
    /// callers are not distinguished.
    pub(crate) fn namespace(&self) -> String {
        match self {
            Self::Anyone => String::new(),
            Self::Jwt { id, .. } => format!("jwt {id}"),
            named => named.to_string(),
        }
    }
}

/// For logs: `anyone`, `key ID`, `jwt ID SUBJECT`, `iam ARN`, `invoker`, `authorizer PRINCIPAL`.
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
            Self::Invoker => f.write_str("invoker"),
            Self::Iam { principal } => write!(f, "iam {principal}"),
            Self::Authorizer { principal } => write!(f, "authorizer {principal}"),
        }
    }
}
