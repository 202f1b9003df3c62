//! The reasons why a request gets no outcome: the driver's, and the engine's rejections.

use std::time::Duration;

use crate::{
    auth::{AuthError, Unauthenticated},
    call::rejection::Rejection,
    tool::reason::Reason,
};

/// The longest time, in seconds, that clients which retry by themselves should wait.
pub(super) const LONGEST_RETRY: u64 = 60;

/// The reason why a request gets no outcome.
pub(crate) enum Refusal {
    /// The credentials are missing or invalid.
    Unauthenticated(Unauthenticated, Option<Box<SignInHint>>),
    /// The credentials cannot be checked, because the secrets to compare them with, or the keys of
    /// the token's issuer, are unreadable, and cannot be read again before this time has passed.
    Undecided(Duration),
    /// The token names a key that its issuer is not known to have, and cannot be asked about before
    /// this time has passed.
    UnknownKey(Duration),
    /// A web page sent the request, and its origin is not allowed.
    ForbiddenOrigin,
    /// The body exceeds the server's limit, in bytes.
    TooLarge { largest: usize },
    /// The body has a `Content-Encoding`.
    Encoded,
    /// The request is not a valid one. The detail is for developers.
    Invalid {
        reason: Reason,
        message: String,
        detail: String,
    },
    /// The engine has rejected the call.
    Rejected(Rejection, Option<Box<SignInHint>>),
}

/// The way for a client to obtain a token: RFC 9728, section 5.1.
pub(crate) struct SignInHint {
    /// The URL of the server's metadata, if its own URL is known.
    pub(super) metadata_url: Option<String>,
    /// The scopes that every call requires, separated by spaces.
    pub(super) scope: String,
}

impl From<AuthError> for Refusal {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::Unauthenticated(why) => Self::Unauthenticated(why, None),
            AuthError::Undecided(pause) => Self::Undecided(pause),
            AuthError::UnknownKey(pause) => Self::UnknownKey(pause),
        }
    }
}

impl From<Rejection> for Refusal {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection, None)
    }
}

impl Refusal {
    /// Refuses a request that is not a valid one.
    pub(super) fn malformed(message: &str, detail: impl Into<String>) -> Self {
        Self::Invalid {
            reason: Reason::Malformed,
            message: message.to_owned(),
            detail: detail.into(),
        }
    }

    /// Returns the word for this refusal in logs and metrics.
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::Unauthenticated(..) | Self::UnknownKey(_) => Reason::Unauthenticated,
            Self::Undecided(_) => Reason::Undecided,
            Self::ForbiddenOrigin => Reason::ForbiddenOrigin,
            Self::TooLarge { .. } | Self::Encoded => Reason::Malformed,
            Self::Invalid { reason, .. } => *reason,
            Self::Rejected(rejection, _) => rejection.reason(),
        }
    }

    /// Returns true if the request has no credentials at all.
    pub(super) fn lacks_credentials(&self) -> bool {
        matches!(self, Self::Unauthenticated(why, _) if !why.is_invalid)
    }

    /// Returns the number of seconds after which the same request may be accepted, if it may.
    pub(super) fn retry_after(&self) -> Option<u64> {
        let wait = match self {
            Self::Undecided(pause) | Self::UnknownKey(pause) => *pause,
            Self::Rejected(rejection, _) => rejection.retry_after()?,
            _ => return None,
        };
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Some(seconds.max(1))
    }
}
