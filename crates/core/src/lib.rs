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
//! Hidden modules are for `lambda_tools` itself, in exactly this version, and may change in any other.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![expect(
    clippy::must_use_candidate,
    clippy::return_self_not_must_use,
    reason = "of hidden functions; the others have the attribute"
)]

#[cfg(feature = "addresses")]
#[doc(hidden)]
pub mod addresses;
#[doc(hidden)]
pub mod clock;
#[doc(hidden)]
pub mod json;
#[doc(hidden)]
pub mod secret;
pub mod testing;
#[doc(hidden)]
pub mod text;
#[doc(hidden)]
pub mod tool;
#[doc(hidden)]
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
    toolkit::{BuildError, Toolkit},
};

// The crates whose types are part of this crate's interface.
pub use {schemars, serde_json};

/// Compiles the code in README.md.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
