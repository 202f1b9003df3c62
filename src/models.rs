//! Lists of tools for chat models, and models' calls of them.
//!
//! Each API of a model takes tools in a format of its own, with limits of its own; one tool that
//! exceeds them may make the API reject the whole list.
//!
#![doc = include_str!("pages.md")]
#![cfg_attr(any(not(doctest), feature = "client"), doc = include_str!("../docs/models.md"))]

#[doc(inline)]
pub use lambda_tools_models::{ModelApi, ModelCall, ModelTools, ToolRequest};
