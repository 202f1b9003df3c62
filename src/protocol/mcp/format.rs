//! The format of a response, as its request determines it.

use std::sync::Arc;

use http::HeaderMap;
use serde_json::value::RawValue;

use super::{elicitation::Elicitation, progress::ProgressStream, transport::Revision};
use crate::{
    protocol::jsonrpc::RpcId,
    tool::{parts::ToolParts, schema::portable},
};

/// The format of a response, as its request determines it.
#[derive(Default)]
pub(crate) struct McpFormat {
    pub(super) id: Option<Box<RpcId>>,
    pub(super) revision: Option<Revision>,
    /// The server, if each result names it.
    pub(super) server_info: Option<Arc<RawValue>>,
    /// The headers of W3C Trace Context in `_meta`.
    pub(super) trace: Option<Box<HeaderMap>>,
    /// The field of the requested list in its result, unless it is `tools`.
    pub(super) list: Option<&'static str>,
    /// The requested page of the list.
    pub(super) page: usize,
    /// The URI of the resource that is read.
    pub(super) uri: Box<str>,
    /// The kind of the tool's output.
    pub(super) output: OutputKind,
    pub(super) elicitation: Elicitation,
    /// True if the client takes a task instead of an outcome.
    pub(super) takes_tasks: bool,
    /// The stream of a call whose client asks for progress.
    pub(super) progress: Option<Box<ProgressStream>>,
    /// True for an answer that is a result alone, without JSON-RPC and `_meta`.
    pub(super) is_bare: bool,
}

/// The kinds of output, which differ in what a result contains.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum OutputKind {
    /// An object, which is the structured content.
    #[default]
    Object,
    /// Another value, which has to be wrapped in an object.
    Other,
    /// Content blocks.
    Content,
    /// The contents of a resource.
    Resource,
    /// The messages of a prompt.
    Prompt,
}

impl OutputKind {
    /// Derives the schema of this tool alone: a first call must not take longer with more tools.
    pub(super) fn of(tool: &ToolParts) -> Self {
        if tool.returns_content {
            Self::Content
        } else if portable::is_object(tool.output.value()) {
            Self::Object
        } else {
            Self::Other
        }
    }
}

impl McpFormat {
    /// Returns true for a call that is not one of a tool: its result cannot be an error.
    pub(super) fn is_read(&self) -> bool {
        matches!(self.output, OutputKind::Resource | OutputKind::Prompt)
    }

    pub(super) fn is_modern(&self) -> bool {
        self.revision.is_some_and(Revision::is_modern)
    }
}
