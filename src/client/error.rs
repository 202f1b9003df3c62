//! Why a client has no answer.

use std::fmt;

use super::oxp::CallOutcome;

/// Why a client has no answer, or not the one that was asked for.
///
/// What a server says about a call, good or bad, is an answer: see
/// [`CallOutcome`](super::oxp::CallOutcome).
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// The client cannot ask like this: a URL that is none, a key that no header can carry.
    Setup(String),
    /// The credentials are missing or not valid (401).
    Unauthorized {
        /// What the server says about it.
        message: String,
    },
    /// The server cannot be reached, or does not answer in time.
    Unreachable(String),
    /// The server answered with a status that says nothing about the call.
    Status {
        /// The HTTP status.
        status: u16,
        /// What the server says about it, or what the status means.
        message: String,
    },
    /// The answer is not what the protocol asks for.
    Unreadable(String),
    /// The answer is larger than the client reads.
    TooLarge {
        /// How many bytes the client reads.
        limit: usize,
    },
    /// The call has no value: what came of it instead. Only of calls that ask for a value.
    NoValue(Box<CallOutcome>),
    /// The user has not answered a challenge in time.
    StillPending,
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setup(text) => write!(f, "the client cannot ask: {text}"),
            Self::Unauthorized { message } => write!(f, "not authorized: {message}"),
            Self::Unreachable(text) => write!(f, "the server cannot be reached: {text}"),
            Self::Status { status, message } => {
                write!(f, "the server answered {status}: {message}")
            }
            Self::Unreadable(text) => write!(f, "the answer cannot be read: {text}"),
            Self::TooLarge { limit } => write!(f, "the answer has more than {limit} bytes"),
            Self::NoValue(outcome) => write!(f, "the call has no value: {}", outcome.message()),
            Self::StillPending => f.write_str("the user has not answered the challenge in time"),
        }
    }
}

impl std::error::Error for ClientError {}
