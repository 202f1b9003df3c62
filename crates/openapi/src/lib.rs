//! Tools for AI agents, made from an API's OpenAPI document.
//!
//! [`OpenApi`] reduces the chosen operations of a document to [`ApiTools`]: ids, descriptions, one
//! flat schema each, and how a request is made from an input. They are written to a file that an
//! owner reads and commits and a deployed program serves, or served directly.
//!
//! `lambda_tools` serves them, and re-exports everything here.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod body;
mod choice;
mod document;
mod error;
mod input;
mod media_type;
mod names;
mod openapi;
mod operation;
mod parameters;
mod plan;
mod run;
mod security;
mod servers;
mod text;

pub use error::OpenApiError;
pub use openapi::{Note, OpenApi, OpenApiOptions, Reduction, Report};
pub use plan::{ApiTools, UserProvider};

/// Compiles the code in README.md.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
