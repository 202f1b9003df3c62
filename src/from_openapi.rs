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

use crate::ServerInfo;

/// The title, the version and the description of an API as those of its server.
impl From<&ApiTools> for ServerInfo {
    fn from(api: &ApiTools) -> Self {
        let title = Some(api.title()).filter(|it| !it.is_empty());
        let info = Self::new(title.unwrap_or("Tools"), api.version());
        match api.description() {
            "" => info,
            text => info.description(text),
        }
    }
}
