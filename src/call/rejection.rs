//! Rejections: why a call never reached its tool.
//!
//! One enum for the whole way from the request to the tool; only [protocols](crate::protocol) know what
//! each looks like. What a tool itself says went wrong is a
//! [`Failure`](crate::Failure).

use std::{sync::Arc, time::Duration};

use semver::Version;

use crate::{
    IdError, Requirements, StoreError,
    auth::AuthError,
    tool::{reason::Reason, requirement::Challenge, schema::ParameterErrors},
};

/// OXP 1.0, Call Tool, Server Errors and Input Validation Errors.
#[derive(Debug)]
pub(crate) enum Rejection {
    /// The caller is nobody who may call; why is for the log only.
    Unauthenticated(&'static str),
    /// Whether the caller may call cannot be told: what it takes to tell cannot be read.
    Undecided,
    /// The body is not what the protocol asks for.
    Malformed { message: String, detail: String },
    /// The client speaks a version of the protocol that is not served.
    UnsupportedVersion,
    /// The text in `tool_id` is not a tool id.
    InvalidToolId(IdError),
    /// No tool has this id.
    UnknownTool {
        qualified: Arc<str>,
        closest: Option<String>,
    },
    /// The tool exists, in other versions.
    UnknownVersion {
        qualified: Arc<str>,
        version: Version,
        available: Vec<Version>,
    },
    /// The input does not satisfy the tool's schema.
    InvalidInput(ParameterErrors),
    /// Checking the input took longer than the call may take.
    CheckTimedOut { limit: Duration },
    /// Other large requests are worked on.
    Busy,
    /// The tool needs what the call does not bring.
    Missing(Box<UnmetRequirements>),
    /// The tool's own definition is wrong; calling it again will not help.
    Misdefined { tool: String, detail: String },
    /// The same `call_id` belongs to a call that asks for something else.
    CallIdReused,
    /// It cannot be told what the user has allowed, or the user not be asked.
    #[cfg_attr(
        not(feature = "oauth"),
        expect(dead_code, reason = "without the feature nobody is asked")
    )]
    Unauthorizable(StoreError),
    /// It cannot be told whether the call has run before.
    Unprotected(StoreError),
    /// The server takes no calls now.
    Unavailable,
}

/// What a tool needs and neither the call nor the server has.
#[derive(Debug)]
pub(crate) struct UnmetRequirements {
    pub(crate) tool: String,
    pub(crate) requirements: Requirements,
    /// One for each provider whose token is missing, where users can be asked.
    pub(crate) challenges: Vec<Challenge>,
    /// Whether calls may bring secrets.
    pub(crate) from_calls: bool,
    /// For each missing secret, where the server has looked for it.
    pub(crate) locations: Vec<Option<String>>,
    /// The secrets of which the server cannot tell whether it has them.
    pub(crate) unreadable: Vec<(String, StoreError)>,
}

impl From<AuthError> for Rejection {
    fn from(refused: AuthError) -> Self {
        match refused {
            AuthError::Unauthenticated(why) => Self::Unauthenticated(why),
            AuthError::Undecided => Self::Undecided,
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

    /// A word for logs.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::Unauthenticated(_) => Reason::Unauthenticated,
            Self::Undecided => Reason::Undecided,
            Self::Malformed { .. } => Reason::Malformed,
            Self::UnsupportedVersion => Reason::UnsupportedVersion,
            Self::InvalidToolId(_) => Reason::InvalidToolId,
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

    /// Whether the same call may be taken in a moment.
    pub(crate) fn is_temporary(&self) -> bool {
        match self {
            Self::Busy | Self::Undecided | Self::Unavailable => true,
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
