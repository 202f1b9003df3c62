//! The properties of a request that its response depends on.

use super::{error::ErrorResponse, revision::Revision};
use crate::protocol::jsonrpc::RpcId;

/// The key of the `call_id` in `_meta`; MCP does not define one.
pub(super) const CALL_ID: &str = "lambda-tools/call-id";

/// The properties of a request that its response depends on.
#[derive(Default)]
pub(crate) struct McpForm {
    pub(super) id: Option<Box<RpcId>>,
    pub(super) revision: Option<Revision>,
    /// The response to a request that cannot be served.
    pub(super) error: Option<ErrorResponse>,
    /// The requested page of the list.
    pub(super) page: usize,
    /// True if the tool's result is not an object, so that it has to be wrapped in one.
    pub(super) is_wrapped: bool,
    /// True if the client can send its user to a URL.
    pub(super) opens_urls: bool,
    /// True if the user declined to open a URL.
    pub(super) has_declined: bool,
}

impl McpForm {
    pub(super) fn is_modern(&self) -> bool {
        self.revision.is_some_and(Revision::is_modern)
    }
}
