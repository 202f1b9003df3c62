//! Decoding of the list of tools.

use serde::Deserialize;
use serde_json::{Value, json};

use super::header::{self, ArgumentHeader};
use crate::{
    Requirements, ToolDefinition,
    client::{ClientError, http::decode},
    payload::JsonObject,
    tool::requirement::null_is_default,
};

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct McpToolHints {
    /// True if the tool changes nothing.
    #[serde(rename = "readOnlyHint")]
    pub read_only: Option<bool>,
    /// False if the tool only adds.
    #[serde(rename = "destructiveHint")]
    pub destructive: Option<bool>,
    /// True if a repeated call has no further effect.
    #[serde(rename = "idempotentHint")]
    pub idempotent: Option<bool>,
    /// False if the tool's world is closed, like a memory's.
    #[serde(rename = "openWorldHint")]
    pub open_world: Option<bool>,
}

/// The properties of a listed tool that calls depend on.
#[derive(Clone, Debug)]
pub(super) struct ListedTool {
    /// True if a repeated call has no further effect.
    pub(super) is_repeatable: bool,
    pub(super) headers: Vec<ArgumentHeader>,
}

/// One page of the list.
pub(super) struct ToolPage {
    pub(super) tools: Vec<(McpTool, ListedTool)>,
    pub(super) next_cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageBody {
    tools: Vec<ToolBody>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolBody {
    name: String,
    title: Option<String>,
    #[serde(default, deserialize_with = "null_is_default")]
    description: String,
    #[serde(default)]
    input_schema: Value,
    #[serde(default)]
    output_schema: Value,
    #[serde(default, deserialize_with = "null_is_default")]
    annotations: McpToolHints,
    #[serde(rename = "_meta", default, deserialize_with = "null_is_default")]
    meta: JsonObject,
}

/// Reads a page. In modern revisions, a tool whose headers are invalid must be left out.
pub(super) fn page_in(result: JsonObject, is_modern: bool) -> Result<ToolPage, ClientError> {
    let page: PageBody = decode(Value::Object(result))?;
    let mut tools = Vec::with_capacity(page.tools.len());
    for (index, body) in page.tools.into_iter().enumerate() {
        let headers = match header::annotated(&body.input_schema) {
            _ if !is_modern => Vec::new(),
            Ok(headers) => headers,
            Err(_) => {
                // Its name may contain the client's credentials.
                tracing::warn!(
                    "left out the tool at index {index} of a page: its x-mcp-header is invalid"
                );
                continue;
            }
        };
        let tool = McpTool::from(body);
        let McpToolHints {
            read_only,
            idempotent,
            ..
        } = tool.hints;
        let is_repeatable = read_only == Some(true) || idempotent == Some(true);
        let listed = ListedTool {
            is_repeatable,
            headers,
        };
        tools.push((tool, listed));
    }
    Ok(ToolPage {
        tools,
        next_cursor: page.next_cursor,
    })
}

impl From<ToolBody> for McpTool {
    fn from(body: ToolBody) -> Self {
        let text = |key: &str| {
            body.meta
                .get(key)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let requirements = body.meta.get("lambda-tools/requirements");
        let requirements = requirements.and_then(|it| Requirements::deserialize(it).ok());
        Self {
            id: text("lambda-tools/id"),
            version: text("lambda-tools/version"),
            requirements: requirements.unwrap_or_default(),
            name: body.name,
            title: body.title,
            description: body.description,
            input_schema: match body.input_schema {
                Value::Null => json!({"type": "object", "properties": {}}),
                schema => schema,
            },
            output_schema: body.output_schema,
            hints: body.annotations,
        }
    }
}

impl From<McpTool> for ToolDefinition {
    fn from(tool: McpTool) -> Self {
        Self {
            id: tool.name.clone(),
            name: tool.name,
            description: tool.description,
            version: tool.version.unwrap_or_default(),
            input_schema: tool.input_schema,
            output_schema: tool.output_schema,
            requirements: tool.requirements,
        }
    }
}
