//! Tools for AI agents out of an API's OpenAPI document.
//!
//! [`OpenApi`] reduces the chosen operations of a document to [`ApiTools`]: ids, descriptions, one
//! flat schema each, and how a request is made of an input. They are a file that an owner reads and
//! commits, and that a deployed program serves; or they are served right away.
//!
//! `lambda_tools` serves them, and re-exports everything here.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod answer;
mod body;
mod choice;
mod describe;
mod document;
mod error;
mod input;
mod names;
mod openapi;
mod operation;
mod parameters;
mod plan;
mod report;
mod run;
mod schema;
mod security;
mod servers;
mod text;

pub use error::OpenApiError;
pub use openapi::{OpenApi, Reduction};
pub use plan::{ApiTools, UserProvider};
pub use report::{Note, Report};
