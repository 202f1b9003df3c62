//! Tools for AI agents: plain async Rust functions, deployed as one AWS Lambda function.
//!
//! Every agent that speaks MCP (Model Context Protocol), OXP (Open eXecution Protocol) 1.0, Open
//! Tool Calling 1.0 or OpenTool 1.0 can discover and call them.
//!
//! ```no_run
//! use lambda_tools::{Failure, Tool, Toolkit, serve};
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//!
//! /// Adds two numbers together.
//! #[derive(Deserialize, JsonSchema)]
//! struct Add {
//!     /// The first number to add.
//!     a: f64,
//!     /// The second number to add.
//!     b: f64,
//! }
//!
//! async fn add(input: Add) -> Result<f64, Failure> {
//!     Ok(input.a + input.b)
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), lambda_tools::Error> {
//!     serve(Toolkit::new([Tool::new("Calculator.Add@1.0.0", add)])?).await
//! }
//! ```
//!
//! Most tools need six names: [`Tool`], [`Toolkit`], [`Context`], [`Secret`], [`Failure`] and
//! [`serve`]. [`testing`] replays recorded events, [`Auth`] sets who may call, and [`secrets`] sets
//! where secrets come from. With the cargo feature `oauth`, users authorize tools to act for them
//! (module `oauth`); with `client`, programs call tools (module `client`). [`protocols`] compares
//! the features of the protocols, [`operations`] lists permissions, logs and metrics, and
//! [`security`] states the guarantees for each party.

// A panic in a tool must not abort the process: that would end the other calls and lose the record
// of the tool's own call. Unless the manifest sets `panic`, cargo-lambda uses "abort" for release
// builds.
#[cfg(panic = "abort")]
compile_error!(
    "lambda_tools catches panics in tools, which requires unwinding: set panic = \"unwind\" under \
     [profile.release] (or the profile that you build with) in the Cargo.toml of your workspace. \
     Without it, `cargo lambda build` and `sam build` use \"abort\"."
);

#[doc = include_str!("../docs/architecture.md")]
pub mod architecture {}
mod arrival;
mod assemble;
mod auth;
#[cfg(any(feature = "dynamodb", feature = "secrets-manager"))]
mod aws;
mod call;
#[cfg(feature = "client")]
pub mod client;
mod clock;
mod error;
mod event;
pub mod idempotency;
#[cfg(feature = "oauth")]
pub mod oauth;
mod observe;
#[doc = include_str!("../docs/mcp.md")]
pub mod mcp {}
#[doc = include_str!("../docs/operations.md")]
pub mod operations {}
#[doc = include_str!("../docs/protocols.md")]
pub mod protocols {}
#[doc = include_str!("../docs/security.md")]
pub mod security {}
mod payload;
mod protocol;
pub mod secrets;
mod serve;
mod server;
mod server_info;
pub mod store;
pub mod testing;
mod text;
mod tool;

pub use auth::Auth;
pub use call::DEFAULT_TIMEOUT;
pub use error::{Error, StoreError};
#[cfg(feature = "oauth")]
pub use oauth::OAuth;
pub use protocol::Protocol;
pub use secrets::Secret;
pub use serve::serve;
pub use server::Server;
pub use server_info::ServerInfo;
pub use tool::{
    Tool,
    build_error::BuildError,
    caller::Caller,
    content::Content,
    context::Context,
    definition::ToolDefinition,
    failure::Failure,
    handler::{Handler, IntoFailure, StatefulHandler, ToolInput, ToolOutput},
    id::{IdError, ToolId},
    requirement::{AuthorizationRequirement, OAuth2Requirement, Requirements, SecretRequirement},
    toolkit::Toolkit,
};

/// Compiles the code in README.md, except for its test. Some of it uses the `client` feature.
#[cfg(all(doctest, feature = "client"))]
#[doc = include_str!("../README.md")]
struct Readme;
