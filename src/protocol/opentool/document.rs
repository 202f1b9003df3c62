//! The catalogue as an OpenTool document.
//!
//! Functions have names but no versions: each is the newest version of a tool.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::schema;
use crate::{
    ServerInfo, ToolDefinition,
    protocol::{encoded_list::EncodedList, listed_tools::ListedTools},
    tool::schema::reduced::take_description,
};

/// The document of the OpenTool specification.
#[derive(Serialize)]
struct DocumentBody<'a> {
    opentool: &'static str,
    info: &'a ServerInfo,
    functions: Vec<DocumentFunction>,
}

#[derive(Serialize)]
struct DocumentFunction {
    name: String,
    description: String,
    parameters: Vec<Value>,
    #[serde(rename = "return")]
    returns: DocumentReturn,
}

#[derive(Serialize)]
struct DocumentReturn {
    name: &'static str,
    description: String,
    schema: Map<String, Value>,
}

pub(super) fn encode(info: &ServerInfo, tools: &ListedTools<'_>) -> Arc<EncodedList> {
    let functions: Vec<_> = tools
        .newest()
        .map(|entry| function_of(ToolDefinition::of(&entry.id, &entry.tool)))
        .collect();
    if functions.is_empty() {
        return EncodedList::new("{}");
    }
    EncodedList::of(&DocumentBody {
        opentool: "1.0.0",
        info,
        functions,
    })
}

fn function_of(definition: ToolDefinition) -> DocumentFunction {
    let mut input = definition.input_schema;
    // The tool's description replaces that of its input type.
    if let Some(input) = input.as_object_mut() {
        input.insert("description".into(), definition.description.into());
    }
    let mut input = schema::reduced(input);
    DocumentFunction {
        name: definition.name,
        description: take_description(&mut input),
        parameters: schema::parameters(input),
        returns: DocumentReturn::of(definition.output_schema),
    }
}

impl DocumentReturn {
    /// Describes `result`, which is an object whatever the tool returns.
    fn of(output: Value) -> Self {
        if output.is_null() {
            return Self {
                name: "result",
                description: "An empty object.".into(),
                schema: schema::reduced(json!({"type": "object", "properties": {}})),
            };
        }
        let mut value = schema::result(output);
        Self {
            name: "result",
            description: Some(take_description(&mut value))
                .filter(|text| !text.is_empty())
                .unwrap_or_else(|| "The result of the tool.".to_owned()),
            schema: value,
        }
    }
}
