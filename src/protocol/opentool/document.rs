//! The catalogue as an OpenTool document.
//!
//! Functions have names but no versions: each is the newest version of a tool. OpenTool's schemas
//! have `type` with one of six values, `description`, `properties`, `items`, `enum` and `required`:
//! published clients reject anything else. Everything else becomes sentences.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    ToolDefinition,
    json::JsonObject,
    protocol::{encoded_list::EncodedList, listed_tools::ListedTools},
    tool::schema::{
        reduced::{self, SchemaFormat, described, take_description},
        vocabulary::{kinds_of, names, object_of},
    },
};

/// Encodes the document of the `OpenTool` specification.
pub(super) fn encode(tools: &ListedTools<'_>) -> Arc<EncodedList> {
    let functions: Vec<_> = tools
        .newest()
        .map(|entry| function_of(ToolDefinition::of(&entry.id, &entry.tool)))
        .collect();
    if functions.is_empty() {
        return EncodedList::new("{}");
    }
    EncodedList::of(&json!({"opentool": "1.0.0", "info": tools.info, "functions": functions}))
}

fn function_of(definition: ToolDefinition) -> Value {
    let mut input = definition.input_schema;
    // The tool's description replaces that of its input type.
    if let Some(input) = input.as_object_mut() {
        input.insert("description".into(), definition.description.into());
    }
    let mut input = reduced(input);
    json!({
        "name": definition.name,
        "description": take_description(&mut input),
        "parameters": parameters(input),
        "return": return_of(definition.output_schema),
    })
}

/// Describes `result`, which is an object whatever the tool returns.
fn return_of(output: Value) -> Value {
    let (description, schema) = if output.is_null() {
        let nothing = json!({"type": "object", "properties": {}});
        ("An empty object.".to_owned(), reduced(nothing))
    } else {
        let mut value = result_schema(output);
        match take_description(&mut value) {
            text if text.is_empty() => ("The result of the tool.".to_owned(), value),
            text => (text, value),
        }
    };
    json!({"name": "result", "description": description, "schema": schema})
}

/// Returns the schema reduced to OpenTool's keywords.
fn reduced(schema: Value) -> JsonObject {
    reduced::reduced(schema, SchemaFormat::OpenTool)
}

/// Returns the parameters in a reduced input schema.
fn parameters(mut input: JsonObject) -> Vec<Value> {
    let required = names(input.shift_remove("required"));
    let parameter = |(name, schema)| {
        let mut schema = object_of(schema);
        let description = take_description(&mut schema);
        let required = required.contains(&name);
        json!({"name": name, "description": description, "schema": schema, "required": required})
    };
    let properties = input.shift_remove("properties").map(object_of);
    properties.into_iter().flatten().map(parameter).collect()
}

/// Returns the schema of `result`: the object that a tool returns, or a wrapper for any other
/// value.
fn result_schema(output: Value) -> JsonObject {
    let kinds = kinds_of(&output);
    let mut value = reduced(output);
    let (may_be_object, may_be_null) = (kinds.contains(&"object"), kinds.contains(&"null"));
    if kinds.iter().all(|kind| ["object", "null"].contains(kind)) {
        if may_be_null {
            // `null` is sent as an empty object.
            value.shift_remove("required");
        }
        return value;
    }
    let unwrapped = "If the value is an object, it is returned as the result itself, not wrapped \
                     in `value`.";
    let sentences = Vec::from_iter(may_be_object.then(|| unwrapped.to_owned()));
    let mut result = described("object", take_description(&mut value.clone()), &sentences);
    result.insert("properties".into(), json!({"value": value}));
    if !may_be_null && !may_be_object {
        result.insert("required".into(), json!(["value"]));
    }
    result
}

#[cfg(test)]
mod tests;
