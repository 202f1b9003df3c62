//! Tools for AI agents: plain async Rust functions, deployed as one AWS Lambda function.
//!
//! Every agent that speaks OXP (Open eXecution Protocol) 1.0, Open Tool Calling 1.0 or OpenTool 1.0
//! can discover and call them.
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
//! Six names carry most tools: [`Tool`], [`Toolkit`], [`Context`], [`Secret`], [`Failure`] and
//! [`serve`]. [`testing`] replays recorded events, [`Auth`] says who may call, [`secrets`] where
//! secrets come from. With the cargo feature `oauth` users allow tools to act for them, module
//! `authorization`; with `client` programs call tools, module `client`. [`protocols`] has a table of what
//! each protocol can say, [`operations`] what a function may do, logs and measures, [`security`] what
//! is promised to whom.

// A panic of one tool must not take the process, the other calls and the record of its own call with
// it. Without a word about it in the manifest, cargo-lambda chooses "abort" for release builds.
#[cfg(panic = "abort")]
compile_error!(
    "lambda_tools answers for tools that panic, which needs unwinding: write panic = \"unwind\" under \
     [profile.release] (or the profile that you build with) in the Cargo.toml of your workspace. `cargo lambda build` and `sam build` choose \
     \"abort\" where nothing is said."
);

mod auth;
#[cfg(feature = "oauth")]
pub mod authorization;
#[cfg(not(feature = "oauth"))]
#[path = "authorization/none.rs"]
mod authorization;
#[cfg(any(feature = "dynamodb", feature = "secrets-manager"))]
mod aws;
mod build_error;
mod call;
#[cfg(feature = "client")]
pub mod client;
mod context;
mod definition;
mod failure;
mod handler;
mod host;
mod id;
pub mod idempotency;
#[cfg(test)]
mod lines;
mod metrics;
mod output;
#[doc = include_str!("../docs/operations.md")]
pub mod operations {}
#[doc = include_str!("../docs/protocols.md")]
pub mod protocols {}
#[doc = include_str!("../docs/security.md")]
pub mod security {}
mod rejection;
mod requirement;
mod schema;
pub mod secrets;
mod serve;
mod server;
mod store_error;
pub mod testing;
mod text;
mod tool;
mod toolkit;
mod trace;
mod wire;

pub use auth::{Auth, Caller};
#[cfg(feature = "oauth")]
pub use authorization::Authorization;
pub use build_error::BuildError;
pub use call::DEFAULT_TIMEOUT;
pub use context::Context;
pub use definition::ToolDefinition;
pub use failure::Failure;
pub use handler::Handler;
pub use id::{IdError, ToolId};
pub use requirement::{
    AuthorizationRequirement, OAuth2Requirement, Requirements, SecretRequirement,
};
pub use secrets::Secret;
pub use serve::{Error, serve};
pub use server::Server;
pub use store_error::StoreError;
pub use tool::Tool;
pub use toolkit::Toolkit;

/// The code in README.md compiles, but for the test in it. It shows clients as well.
#[cfg(all(doctest, feature = "client"))]
#[doc = include_str!("../README.md")]
struct Readme;
