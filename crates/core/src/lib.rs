//! What a tool for AI agents is: a function with schemas and requirements, the context of its calls,
//! and its failures.
//!
//! A crate of tools compiles and tests with this crate alone. `lambda_tools` serves them, and
//! re-exports everything here: a program needs only that.
//!
//! The examples are written for `lambda_tools`: with this crate alone, `lambda_tools::Tool` is
//! `lambda_tools_core::Tool`.
//!
//! # Cargo features
//!
//! None is needed to compile and test tools; `lambda_tools` enables `validation` when it serves them.
//!
//! | feature | what it adds |
//! | --- | --- |
//! | `validation` | [`Toolkit::check`] checks that schemas are valid JSON Schemas; an answer to [`Context::ask`] is checked against every keyword of its schema. Without it, an answer is not checked if its schema has keywords beyond types, ranges and fields |
//! | `http` | `Failure::from_response` |
//! | `chrono`, `jiff`, `url`, `uuid` | the types of these crates in inputs and outputs |
//!
//! # For servers
//!
//! The names at the root are for authors of tools. The modules are for programs that serve or call
//! tools, such as `lambda_tools` and `lambda_tools_client`:
//!
//! | module | its contents |
//! | --- | --- |
//! | [`tool`] | a tool's parts, the selection of one by its id, and what a server knows about a call |
//! | [`tool::schema`] | the crate `lambda_tools_schema` |
//! | [`secret`] | the redaction of secrets in texts |
//! | [`json`] | the reading of JSON within limits |
//! | [`clock`] | the source of time and ids, which a test can fix |
//! | [`text`] | texts in messages and logs |
//! | [`wire`] | names in headers and messages |
//! | `addresses` | the addresses that the internet reaches; with the Cargo feature of this name |

#![cfg_attr(docsrs, feature(doc_cfg))]
#![allow(
    clippy::must_use_candidate,
    reason = "most functions only compute a value; builders have the attribute"
)]

#[cfg(feature = "addresses")]
pub mod addresses;
pub mod clock;
pub mod json;
pub mod secret;
pub mod testing;
pub mod text;
pub mod tool;
pub mod wire;

pub use secret::Secret;
pub use tool::{
    DEFAULT_TIMEOUT, Tool,
    caller::{AccessToken, Caller},
    content::Content,
    context::Context,
    definition::ToolDefinition,
    failure::Failure,
    handler::{Handler, IntoFailure, StatefulHandler, ToolInput, ToolOutput},
    id::{IdError, ToolId},
    requirement::{AuthorizationRequirement, OAuth2Requirement, Requirements, SecretRequirement},
    resource::{Message, Prompt, Resource},
    toolkit::{BuildError, Toolkit},
};

// The crates whose types are part of this crate's interface.
pub use {schemars, serde_json};

/// Compiles the code in README.md.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
