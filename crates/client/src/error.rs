//! Client errors.

use std::fmt;

use super::options::MAX_RESPONSE_SIZE;

/// The reason why a request has no usable response.
///
/// A failure or rejection that an OXP server reports is not an error but a
/// [`CallOutcome`](super::CallOutcome).
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// The client is misconfigured: the URL is invalid, or the key is not a valid header value.
    Setup(String),
    /// The credentials are missing or not valid (401).
    Unauthorized {
        /// The server's message.
        message: String,
    },
    /// The server cannot be reached, or does not respond in time.
    Unreachable(String),
    /// The response has a status that says nothing about the call.
    Status {
        /// The HTTP status.
        status: u16,
        /// The server's message, or the meaning of the status.
        message: String,
    },
    /// The response does not follow the protocol.
    Unreadable(String),
    /// The response exceeds the client's limit.
    TooLarge,
    /// An OpenTool server reports the error of a call.
    Call {
        /// The code of the JSON-RPC error, if it has one.
        code: Option<i64>,
        /// The server's message.
        message: String,
    },
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setup(text) => write!(f, "the client is misconfigured: {text}"),
            Self::Unauthorized { message } => write!(f, "not authorized: {message}"),
            Self::Unreachable(text) => write!(f, "the server cannot be reached: {text}"),
            Self::Status { status, message } => {
                write!(f, "the server responded with {status}: {message}")
            }
            Self::Unreadable(text) => write!(f, "the response cannot be read: {text}"),
            Self::TooLarge => write!(f, "the response has more than {MAX_RESPONSE_SIZE} bytes"),
            Self::Call { message, .. } => f.write_str(message),
        }
    }
}

impl std::error::Error for ClientError {}
