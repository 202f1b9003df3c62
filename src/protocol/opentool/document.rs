//! The catalogue as an OpenTool document.
//!
//! Functions have names but no versions: each is the newest version of a tool.

use std::sync::Arc;

use serde_json::{Value, json};

use super::schema;
use crate::{
    ServerInfo, ToolDefinition,
    protocol::{encoded_list::EncodedList, listed_tools::ListedTools},
    tool::schema::reduced::take_description,
};

/// Encodes the document of the `OpenTool` specification.
pub(super) fn encode(info: &ServerInfo, tools: &ListedTools<'_>) -> Arc<EncodedList> {
    let functions: Vec<_> = tools
        .newest()
        .map(|entry| function_of(ToolDefinition::of(&entry.id, &entry.tool)))
        .collect();
    if functions.is_empty() {
        return EncodedList::new("{}");
    }
    EncodedList::of(&json!({"opentool": "1.0.0", "info": info, "functions": functions}))
}

fn function_of(definition: ToolDefinition) -> Value {
    let mut input = definition.input_schema;
    // The tool's description replaces that of its input type.
    if let Some(input) = input.as_object_mut() {
        input.insert("description".into(), definition.description.into());
    }
    let mut input = schema::reduced(input);
    json!({
        "name": definition.name,
        "description": take_description(&mut input),
        "parameters": schema::parameters(input),
        "return": return_of(definition.output_schema),
    })
}

/// Describes `result`, which is an object whatever the tool returns.
fn return_of(output: Value) -> Value {
    let (description, schema) = if output.is_null() {
        let nothing = json!({"type": "object", "properties": {}});
        ("An empty object.".to_owned(), schema::reduced(nothing))
    } else {
        let mut value = schema::result(output);
        match take_description(&mut value) {
            text if text.is_empty() => ("The result of the tool.".to_owned(), value),
            text => (text, value),
        }
    };
    json!({"name": "result", "description": description, "schema": schema})
}
