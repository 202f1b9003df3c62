//! The five errors in part 6 of the specification of OpenTool's client and server.

use std::fmt;

use crate::ClientError;

/// The error of a request: the specification's five exceptions, with their codes and messages.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenToolError {
    /// The response is empty or has no result.
    ResponseNull {
        /// The HTTP status.
        code: i64,
    },
    /// The request failed, and the response has no error object.
    ErrorNull {
        /// The HTTP status.
        code: i64,
    },
    /// The credentials are missing or not valid.
    Unauthorized,
    /// The server cannot be reached, or there is no OpenTool server at this URL.
    NoAccess {
        /// The network error; not part of the specification's message.
        cause: Option<String>,
    },
    /// The call failed.
    Call {
        /// The code of the JSON-RPC error, if any; not part of the specification's error.
        code: Option<i64>,
        /// The reason.
        message: String,
    },
}

impl OpenToolError {
    /// Returns the error's code, if it has one.
    #[must_use]
    pub fn code(&self) -> Option<i64> {
        match self {
            Self::ResponseNull { code } | Self::ErrorNull { code } => Some(*code),
            Self::Unauthorized => Some(401),
            Self::NoAccess { .. } => Some(404),
            Self::Call { .. } => None,
        }
    }

    /// Returns the error's message, as the specification words it.
    #[must_use]
    pub fn message(&self) -> &str {
        match self {
            Self::ResponseNull { .. } => "Response is null",
            Self::ErrorNull { .. } => "Error is null",
            Self::Unauthorized => "Please check API Key is VALID or NOT",
            Self::NoAccess { .. } => "Please check OpenTool Server is RUNNING or NOT",
            Self::Call { message, .. } => message,
        }
    }

    pub(super) fn call(code: Option<i64>, message: impl Into<String>) -> Self {
        let message = message.into();
        Self::Call { code, message }
    }

    pub(super) fn of(error: ClientError) -> Self {
        match error {
            ClientError::Unauthorized { .. } => Self::Unauthorized,
            ClientError::Unreachable(cause) => Self::NoAccess { cause: Some(cause) },
            other => Self::call(None, other.to_string()),
        }
    }
}

impl fmt::Display for OpenToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for OpenToolError {}
