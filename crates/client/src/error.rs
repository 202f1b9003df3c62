//! Client errors.

use std::fmt;

use super::outcome::CallOutcome;

/// The reason why a request has no usable response.
///
/// A failure or rejection that the server reports is not an error but a
/// [`CallOutcome`].
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
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The call had an outcome other than a value. Only methods that return the value report this.
    NoValue(Box<CallOutcome>),
    /// The user did not answer the challenge in time.
    StillPending,
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
            Self::TooLarge { limit } => write!(f, "the response has more than {limit} bytes"),
            Self::NoValue(outcome) => {
                write!(f, "the call returned no value: {}", outcome.message())
            }
            Self::StillPending => f.write_str("the user did not answer the challenge in time"),
        }
    }
}

impl std::error::Error for ClientError {}
