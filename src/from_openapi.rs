//! Tools out of an API's OpenAPI document.
//!
//! Whoever has an HTTP API and its document has tools for agents, without writing one.
//!
#![doc = include_str!("pages.md")]
#![doc = include_str!("../docs/from-openapi.md")]

#[doc(inline)]
pub use lambda_tools_openapi::{
    ApiTools, Note, OpenApi, OpenApiError, Reduction, Report, UserProvider,
};
