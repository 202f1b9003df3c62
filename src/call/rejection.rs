//! Rejections: the reasons why a call did not reach its tool, or why its user must first authorize
//! it again.
//!
//! One enum covers all steps from the request to the tool; only [protocols](crate::protocol) know
//! how each rejection is represented. An error reported by the tool itself is a
//! [`Failure`](crate::Failure).

use std::{sync::Arc, time::Duration};

use semver::Version;

use crate::{
    IdError, Requirements, StoreError,
    auth::{AuthError, Unauthenticated},
    tool::{reason::Reason, requirement::Challenge, schema::ParameterErrors},
};

/// OXP 1.0, Call Tool, Server Errors and Input Validation Errors.
#[derive(Debug)]
pub(crate) enum Rejection {
    /// The credentials are missing or invalid.
    Unauthenticated(Unauthenticated, Option<SignIn>),
    /// The credentials cannot be checked, because the secrets to compare them with, or the keys of
    /// the token's issuer, are unreadable, and cannot be read again before this time has passed.
    Undecided(Duration),
    /// The caller's token lacks scopes.
    InsufficientScope(Box<InsufficientScope>),
    /// The request violates the protocol, or names a user for whom the caller may not call.
    Malformed { message: String, detail: String },
    /// The body exceeds the server's limit, in bytes.
    TooLarge { largest: usize },
    /// A web page sent the request, and its origin is not allowed.
    ForbiddenOrigin,
    /// The client uses a version of the protocol that is not supported.
    UnsupportedVersion,
    /// The text in `tool_id` is not a tool id.
    InvalidToolId {
        error: IdError,
        closest: Option<String>,
    },
    /// No tool has this id.
    UnknownTool {
        qualified: Arc<str>,
        closest: Option<String>,
    },
    /// The tool exists, but only in other versions.
    UnknownVersion {
        qualified: Arc<str>,
        version: Version,
        available: Vec<Version>,
    },
    /// The input does not satisfy the tool's schema.
    InvalidInput(ParameterErrors),
    /// Checking the input took longer than the call may take.
    CheckTimedOut { limit: Duration },
    /// Other large requests are being processed.
    Busy,
    /// Some of the tool's requirements are not met.
    Missing(Box<UnmetRequirements>),
    /// The tool's own definition is wrong; calling it again will not help.
    Misdefined { tool: String, detail: String },
    /// The `call_id` belongs to a different call.
    CallIdReused,
    /// The user's grants cannot be read, or no challenge can be issued.
    #[cfg_attr(
        not(feature = "oauth"),
        expect(dead_code, reason = "only the feature reads grants")
    )]
    Unauthorizable(StoreError),
    /// It is unknown whether the call has run before.
    Unprotected(StoreError),
    /// The server is not accepting calls.
    Unavailable,
}

/// The scopes that a call requires.
#[derive(Debug)]
pub(crate) struct InsufficientScope {
    pub(crate) tool: String,
    /// All scopes to ask the user for at once.
    pub(crate) scopes: Vec<String>,
    pub(crate) sign_in: Option<SignIn>,
}

/// The way for a client to obtain a token: RFC 9728, section 5.1.
#[derive(Clone, Debug)]
pub(crate) struct SignIn {
    /// The URL of the server's metadata, if its own URL is known.
    pub(crate) metadata_url: Option<String>,
    /// The scopes that every call requires, separated by spaces.
    pub(crate) scope: String,
}

/// The requirements of a tool that neither the call nor the server meets.
#[derive(Debug)]
pub(crate) struct UnmetRequirements {
    pub(crate) tool: String,
    pub(crate) requirements: Requirements,
    /// One challenge for each provider whose token is missing, if users can be challenged.
    pub(crate) challenges: Vec<Challenge>,
    /// True if calls may carry secrets.
    pub(crate) from_calls: bool,
    /// For each missing secret, the place where the server looked for it.
    pub(crate) locations: Vec<Option<String>>,
    /// The secrets that could not be read from the store; they may or may not exist.
    pub(crate) unreadable: Vec<(String, StoreError)>,
}

impl From<IdError> for Rejection {
    fn from(error: IdError) -> Self {
        Self::InvalidToolId {
            error,
            closest: None,
        }
    }
}

impl From<AuthError> for Rejection {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::Unauthenticated(why) => Self::Unauthenticated(why, None),
            AuthError::Undecided(pause) => Self::Undecided(pause),
        }
    }
}

impl Rejection {
    pub(crate) fn malformed(message: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::Malformed {
            message: message.into(),
            detail: detail.into(),
        }
    }

    /// The word for this rejection in logs and metrics.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::Unauthenticated(..) => Reason::Unauthenticated,
            Self::InsufficientScope(_) => Reason::InsufficientScope,
            Self::Undecided(_) => Reason::Undecided,
            Self::Malformed { .. } | Self::TooLarge { .. } => Reason::Malformed,
            Self::ForbiddenOrigin => Reason::ForbiddenOrigin,
            Self::UnsupportedVersion => Reason::UnsupportedVersion,
            Self::InvalidToolId { .. } => Reason::InvalidToolId,
            Self::UnknownTool { .. } => Reason::UnknownTool,
            Self::UnknownVersion { .. } => Reason::UnknownVersion,
            Self::InvalidInput(_) => Reason::InvalidInput,
            Self::CheckTimedOut { .. } => Reason::CheckTimedOut,
            Self::Busy => Reason::Busy,
            Self::Missing(missing) if missing.unreadable.is_empty() => Reason::MissingRequirements,
            Self::Missing(_) => Reason::UnreadableSecrets,
            Self::Misdefined { .. } => Reason::MisdefinedTool,
            Self::CallIdReused => Reason::CallIdReused,
            Self::Unauthorizable(_) => Reason::Unauthorizable,
            Self::Unprotected(_) => Reason::Unprotected,
            Self::Unavailable => Reason::Unavailable,
        }
    }

    /// True if other credentials may help.
    pub(crate) fn is_about_credentials(&self) -> bool {
        matches!(self, Self::Unauthenticated(..) | Self::InsufficientScope(_))
    }

    /// True if the same call may soon be accepted.
    pub(crate) fn is_temporary(&self) -> bool {
        match self {
            Self::Busy | Self::Undecided(_) | Self::Unavailable => true,
            Self::Unprotected(error) | Self::Unauthorizable(error) => error.is_temporary(),
            Self::Missing(missing) => {
                let mut errors = missing.unreadable.iter().map(|(_, error)| error);
                missing.requirements.is_empty()
                    && !missing.unreadable.is_empty()
                    && errors.all(StoreError::is_temporary)
            }
            _ => false,
        }
    }
}
