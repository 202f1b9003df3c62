//! Lists of tools for chat models, and models' calls of them.
//!
//! Each API of a model takes tools in a format of its own, with limits of its own; one tool that
//! exceeds them may make the API reject the whole list.
//!
#![doc = include_str!("pages.md")]
#![cfg_attr(any(not(doctest), feature = "client"), doc = include_str!("../docs/models.md"))]

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
