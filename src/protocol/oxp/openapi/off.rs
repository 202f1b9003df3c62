//! In place of the `OpenAPI` document, without the Cargo feature `openapi`.

use serde_json::Value;

use crate::{ServerInfo, protocol::listed_tools::ListedTools};

/// Returns no document. Never called: it has no route.
pub(in crate::protocol::oxp) fn document_of(_: &ServerInfo, _: &ListedTools<'_>) -> Value {
    Value::Null
}
