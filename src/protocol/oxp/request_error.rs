//! The reasons why a request is not one of OXP.

use crate::{
    protocol::{refusal::Refusal, wording::Wording},
    tool::reason::Reason,
};

/// The reason why a request is refused.
pub(super) struct RequestError {
    pub(super) reason: Reason,
    pub(super) wording: Wording,
}

impl From<RequestError> for Refusal {
    fn from(error: RequestError) -> Self {
        let Wording { message, detail } = error.wording;
        Self::Invalid {
            reason: error.reason,
            message,
            detail: detail.unwrap_or_default(),
        }
    }
}

impl RequestError {
    pub(super) fn malformed(message: &str, detail: impl Into<String>) -> Self {
        Self {
            reason: Reason::Malformed,
            wording: Wording::new(message, detail),
        }
    }

    pub(super) fn not_understood(detail: impl Into<String>) -> Self {
        Self::malformed("The request cannot be understood", detail)
    }

    pub(super) fn unsupported_version() -> Self {
        Self {
            reason: Reason::UnsupportedVersion,
            wording: Wording::new(
                "This version of the protocol is not supported",
                "The supported versions are OXP 1.0 (OXP-Version: 1.0 or urn:oxp:1.0) and Open Tool \
                 Calling 1.0 (otc://1.0).",
            ),
        }
    }
}
