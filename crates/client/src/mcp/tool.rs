//! Decoding of the list of tools.

use lambda_tools_core::{
    Requirements, ToolDefinition,
    wire::mcp::{REQUIREMENTS, TOOL_ID, TOOL_VERSION},
};
use rmcp::model::{Tool, ToolAnnotations};
use serde::Deserialize;
use serde_json::{Map, Value};

/// A tool in the list of an MCP server.
///
/// Most servers' tools have neither an id nor a version. Programs that also use other protocols can
/// convert it to a [`ToolDefinition`], whose `id` is then the name, because calls use the name, and
/// whose `version` is empty if the server names none.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct McpTool {
    /// The name that models see, and that calls use.
    pub name: String,
    /// A title for people.
    pub title: Option<String>,
    /// A description of what the tool does and when to use it.
    pub description: String,
    /// The JSON Schema of the input.
    pub input_schema: Value,
    /// The JSON Schema of `structuredContent`; `null` if the server does not publish one.
    pub output_schema: Value,
    /// How the tool behaves, according to its server.
    pub hints: McpToolHints,
    /// `Toolkit.Tool@x.y.z`, if the server was built with this library.
    pub id: Option<String>,
    /// `x.y.z`, if the server was built with this library.
    pub version: Option<String>,
    /// The requirements of a call besides the input, if the server was built with this library.
    pub requirements: Requirements,
}

/// A tool's annotations: 2026-07-28, Tools. A server may omit them, and they may be wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpToolHints {
    /// True if the tool changes nothing.
    pub read_only: Option<bool>,
    /// False if the tool only adds.
    pub destructive: Option<bool>,
    /// True if a repeated call has no further effect.
    pub idempotent: Option<bool>,
    /// False if the tool's world is closed, like a memory's.
    pub open_world: Option<bool>,
}

impl McpToolHints {
    fn of(annotations: &ToolAnnotations) -> Self {
        Self {
            read_only: annotations.read_only_hint,
            destructive: annotations.destructive_hint,
            idempotent: annotations.idempotent_hint,
            open_world: annotations.open_world_hint,
        }
    }
}

impl McpTool {
    pub(super) fn of(tool: Tool) -> Self {
        let meta = |key: &str| tool.meta.as_ref()?.0.get(key);
        let text = |key: &str| meta(key)?.as_str().map(str::to_owned);
        let requirements = meta(REQUIREMENTS);
        let requirements = requirements.and_then(|it| Requirements::deserialize(it).ok());
        let schema = |schema: &Map<String, Value>| Value::Object(schema.clone());
        Self {
            id: text(TOOL_ID),
            version: text(TOOL_VERSION),
            requirements: requirements.unwrap_or_default(),
            name: tool.name.into_owned(),
            title: tool.title,
            description: tool.description.unwrap_or_default().into_owned(),
            input_schema: schema(&tool.input_schema),
            output_schema: tool
                .output_schema
                .as_deref()
                .map(schema)
                .unwrap_or_default(),
            hints: tool
                .annotations
                .as_ref()
                .map(McpToolHints::of)
                .unwrap_or_default(),
        }
    }
}

impl From<McpTool> for ToolDefinition {
    fn from(tool: McpTool) -> Self {
        let mut definition = Self::named(tool.name);
        definition.description = tool.description;
        definition.version = tool.version.unwrap_or_default();
        definition.input_schema = tool.input_schema;
        definition.output_schema = tool.output_schema;
        definition.requirements = tool.requirements;
        definition
    }
}
