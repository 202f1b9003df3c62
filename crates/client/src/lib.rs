//! Clients for OXP, Open Tool Calling and OpenTool servers.
//!
//! All clients time out, limit the size of responses, follow no redirects, and never print their
//! credentials. `lambda_tools` re-exports them as its module `client`.

mod error;
mod http;
pub mod opentool;
mod options;
pub mod oxp;

pub use error::ClientError;
pub use options::{ClientOptions, JwtSigner};
pub use oxp::{
    AuthorizationChallenge, CallOutcome, CallReply, CallRequest, InvalidInput, MissingRequirements,
    ServerError, ToolError,
};

/// Compiles the code in README.md.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
