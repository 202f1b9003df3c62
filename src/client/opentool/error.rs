//! The five errors of OpenTool, Client and Server, part 6.

use std::fmt;

use serde_json::{Value, json};

use crate::client::ClientError;

/// What can go wrong with a request: the text's five exceptions, with their codes, messages and
/// JSON form.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenToolError {
    /// There is no response, or no result in it.
    ResponseNull {
        /// The HTTP status.
        code: i64,
    },
    /// The request failed, and the response has no error in it.
    ErrorNull {
        /// The HTTP status.
        code: i64,
    },
    /// The credentials are missing or not valid.
    Unauthorized,
    /// The server cannot be reached, or there is no OpenTool at this URL.
    NoAccess {
        /// What the network says about it; not in the text's message.
        cause: Option<String>,
    },
    /// The call failed.
    Call {
        /// The JSON-RPC error's code, where the server gave one; not in the text's JSON form.
        code: Option<i64>,
        /// What went wrong.
        message: String,
    },
}

impl OpenToolError {
    /// The error's code, where it has one.
    #[must_use]
    pub fn code(&self) -> Option<i64> {
        match self {
            Self::ResponseNull { code } | Self::ErrorNull { code } => Some(*code),
            Self::Unauthorized => Some(401),
            Self::NoAccess { .. } => Some(404),
            Self::Call { .. } => None,
        }
    }

    /// The error's message, as the text has it.
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

    /// The error in JSON: `{"code", "message"}`, and `{"message"}` of a call.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self.code() {
            Some(code) => json!({"code": code, "message": self.message()}),
            None => json!({"message": self.message()}),
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
