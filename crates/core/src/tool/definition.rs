//! The published definition of a tool.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{parts::ToolParts, requirement::null_is_default, schema::reduced};
use crate::{Requirements, ToolId};

/// A tool as `GET /tools` describes it: OXP 1.0, Tool Definition.
///
/// Serialized, it is the definition in OXP's header dialect.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolDefinition {
    /// `Toolkit.Tool@x.y.z`.
    pub id: String,
    /// The name that models see.
    pub name: String,
    /// A description of what the tool does and when to use it.
    pub description: String,
    /// `x.y.z`.
    pub version: String,
    /// The JSON Schema of `input`.
    #[serde(default)]
    pub input_schema: Value,
    /// The JSON Schema of `value`; `null` for a tool that returns nothing.
    #[serde(default)]
    pub output_schema: Value,
    /// The requirements of a call besides the input.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Requirements::is_empty"
    )]
    pub requirements: Requirements,
}

impl ToolDefinition {
    /// Returns the definition of a tool.
    pub fn of(id: &ToolId, tool: &ToolParts) -> Self {
        let mut input_schema = tool.input.value().clone();
        // It is stated once, where models look for it.
        let from_type = input_schema.as_object_mut();
        let from_type = from_type.map(reduced::take_description);
        list_properties(&mut input_schema);
        Self {
            id: id.to_string(),
            name: name_of(id, tool),
            description: tool.description.clone().or(from_type).unwrap_or_default(),
            version: id.version().to_string(),
            input_schema,
            output_schema: tool.output.value().clone(),
            requirements: tool.requirements.clone(),
        }
    }
}

/// Adds the `properties` that an object lacks, after its type: OpenAI's API rejects the whole list
/// of tools for one object without them.
fn list_properties(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    let type_at = object.keys().position(|it| it == "type");
    if let Some(at) = type_at.filter(|_| object.get("type").is_some_and(|it| it == "object"))
        && !object.contains_key("properties")
    {
        object.shift_insert(at + 1, "properties".into(), json!({}));
    }
}

/// Returns the tool's own name, or else `Toolkit_Tool`.
pub fn name_of(id: &ToolId, tool: &ToolParts) -> String {
    let name = tool.name.clone();
    name.unwrap_or_else(|| id.qualified().replace('.', "_"))
}
