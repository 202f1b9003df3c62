//! Rejections: the reasons why a call did not reach its tool, or why its user must first authorize
//! it again.
//!
//! One enum covers all steps from the call to the tool; only [protocols](crate::protocol) know how
//! each rejection is represented. An error reported by the tool itself is a
//! [`Failure`](crate::Failure).

use std::{sync::Arc, time::Duration};

use http::HeaderName;
use semver::Version;

use crate::{
    Challenge, Requirements, StoreError,
    quotas::ExceededQuota,
    tool::{reason::Reason, schema::ParameterErrors},
};

/// The time after which a temporarily rejected call may be repeated.
const SOON: Duration = Duration::from_secs(1);

/// OXP 1.0, Call Tool, Server Errors and Input Validation Errors.
#[derive(Debug)]
pub(crate) enum Rejection {
    /// The caller may not call for the user, for this reason.
    WrongUser(&'static str),
    /// The caller's token lacks scopes that the tool requires.
    InsufficientScope {
        tool: String,
        /// All scopes to ask the user for at once.
        scopes: Vec<String>,
    },
    /// The tool's rules, or those of the server, keep the caller out.
    NotAllowed { tool: String },
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
        expect(dead_code, reason = "there are no grants")
    )]
    Unauthorizable(StoreError),
    /// It is unknown whether the call has run before.
    Unprotected(StoreError),
    /// As many calls have run as may run for now.
    QuotaExceeded(Box<ExceededQuota>),
    /// It is unknown how many calls have run.
    Uncounted(StoreError),
    /// The tool only works in the background, and the client takes no tasks.
    RequiresTask,
    /// The server is not accepting calls.
    Unavailable,
}

/// The requirements of a tool that neither the call nor the server meets.
#[derive(Debug, Default)]
pub(crate) struct UnmetRequirements {
    pub(crate) tool: String,
    pub(crate) requirements: Requirements,
    /// One challenge for each provider whose token is missing, if users can be challenged.
    pub(crate) challenges: Vec<Challenge>,
    /// True if calls may carry secrets.
    pub(crate) from_calls: bool,
    /// For each missing secret, the place where the server looked for it.
    pub(crate) places: Vec<SecretPlace>,
    /// The secrets that could not be read from the store; they may or may not exist.
    pub(crate) unreadable: Vec<(String, StoreError)>,
}

/// The place of a secret.
#[derive(Debug)]
pub(crate) enum SecretPlace {
    /// A header of the request.
    Header(HeaderName),
    /// The store, if there is one.
    Store(Option<String>),
}

impl Rejection {
    /// Returns the word for this rejection in logs and metrics.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::WrongUser(_) => Reason::Malformed,
            Self::InsufficientScope { .. } => Reason::InsufficientScope,
            Self::NotAllowed { .. } => Reason::NotAllowed,
            Self::UnknownTool { .. } => Reason::UnknownTool,
            Self::UnknownVersion { .. } => Reason::UnknownVersion,
            Self::InvalidInput(_) => Reason::InvalidInput,
            Self::Busy => Reason::Busy,
            Self::Missing(missing) if missing.unreadable.is_empty() => Reason::MissingRequirements,
            Self::Missing(_) => Reason::UnreadableSecrets,
            Self::Misdefined { .. } => Reason::MisdefinedTool,
            Self::CallIdReused => Reason::CallIdReused,
            Self::Unauthorizable(_) => Reason::Unauthorizable,
            Self::Unprotected(_) => Reason::Unprotected,
            Self::QuotaExceeded(_) => Reason::QuotaExceeded,
            Self::Uncounted(_) => Reason::Uncounted,
            Self::RequiresTask => Reason::RequiresTask,
            Self::Unavailable => Reason::Unavailable,
        }
    }

    /// Returns the time after which the same call may be accepted, if it may.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::QuotaExceeded(quota) => Some(quota.wait),
            _ => self.is_temporary().then_some(SOON),
        }
    }

    /// Returns true if the same call may soon be accepted.
    pub(crate) fn is_temporary(&self) -> bool {
        match self {
            Self::Busy | Self::Unavailable => true,
            Self::Unprotected(error) | Self::Unauthorizable(error) | Self::Uncounted(error) => {
                error.is_temporary()
            }
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
