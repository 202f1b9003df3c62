//! Lists of tools for the APIs of chat models, and models' calls of them.
//!
//! Each API of a model takes tools in a format of its own, with limits of its own; one tool that
//! exceeds them may make the API reject the whole list. `lambda_tools` re-exports all of this in its
//! module `models`.

mod agentcore;
mod api;
mod budget;
mod call;
mod gemini;
mod names;
mod portable;
mod references;
mod result;
mod strict;
mod tools;

pub use api::ModelApi;
pub use call::{ModelCall, ToolRequest};
pub use tools::ModelTools;

/// Compiles the code in README.md.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
