//! Tools for agents, made from an API's OpenAPI document.
//!
//! An HTTP API that has such a document becomes tools without any code.
//!
#![doc = include_str!("pages.md")]
#![doc = include_str!("../docs/from-openapi.md")]

#[doc(inline)]
pub use lambda_tools_openapi::{
    ApiTools, Note, OpenApi, OpenApiError, Reduction, Report, UserProvider,
};
