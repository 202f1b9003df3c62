//! Decoding of the list of tools, in any form.

use serde::Deserialize;
use serde_json::Value;

use crate::{
    Requirements, ToolDefinition,
    client::{ClientError, response::decode},
};

#[derive(Deserialize)]
struct ToolListBody {
    items: Option<Vec<ListedTool>>,
    tools: Option<Vec<ListedTool>>,
}

#[derive(Deserialize)]
struct ListedTool {
    id: String,
    name: String,
    description: String,
    version: String,
    #[serde(default)]
    input_schema: Value,
    #[serde(default)]
    output_schema: Value,
    #[serde(default)]
    requirements: Option<Requirements>,
}

/// Reads OXP's `items` or OTC's `tools`; if a server sends both, they are the same list.
pub(super) fn tools_in(body: Value) -> Result<Vec<ToolDefinition>, ClientError> {
    let list: ToolListBody = decode(body)?;
    let missing = || ClientError::Unreadable("it has neither 'items' nor 'tools'".to_owned());
    let definitions = list.items.or(list.tools).ok_or_else(missing)?;
    Ok(definitions.into_iter().map(ToolDefinition::from).collect())
}

impl From<ListedTool> for ToolDefinition {
    fn from(definition: ListedTool) -> Self {
        Self {
            id: definition.id,
            name: definition.name,
            description: definition.description,
            version: definition.version,
            input_schema: unwrap_parameters(definition.input_schema),
            output_schema: definition.output_schema,
            requirements: definition.requirements.unwrap_or_default(),
        }
    }
}

/// Removes a wrapper: two of the dialects send the schema as `{"parameters": …}`, which is not a
/// JSON Schema keyword.
fn unwrap_parameters(mut schema: Value) -> Value {
    match schema.as_object_mut() {
        Some(object) if object.len() == 1 => match object.get_mut("parameters") {
            Some(parameters) => parameters.take(),
            None => schema,
        },
        _ => schema,
    }
}
