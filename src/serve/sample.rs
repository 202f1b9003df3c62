//! A call to paste: made up from a tool's own schema, so that the first try succeeds.

use serde_json::{Value, json};

use crate::{ToolDefinition, Toolkit};

/// The body of a call of the first tool that needs nothing but its input.
pub(super) fn call_of(toolkit: &Toolkit) -> Option<String> {
    let definitions = toolkit.definitions();
    let needs_nothing = |tool: &&ToolDefinition| tool.requirements.is_empty();
    let tool = definitions.iter().find(needs_nothing)?;
    let body = json!({"tool_id": tool.id, "input": value_of(&tool.input_schema)});
    // The line stands in single quotes.
    Some(body.to_string().replace('\'', "'\\''"))
}

fn value_of(schema: &Value) -> Value {
    if let Some(value) = given_in(schema) {
        return value.clone();
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.first().and_then(Value::as_str),
        kind => kind.as_str(),
    };
    match kind {
        Some("string") => json!("text"),
        Some("number" | "integer") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => object_of(schema),
        _ => Value::Null,
    }
}

/// A value that the schema itself names.
fn given_in(schema: &Value) -> Option<&Value> {
    let first = |keyword: &str| schema.get(keyword)?.as_array()?.first();
    schema
        .get("const")
        .or_else(|| schema.get("default"))
        .or_else(|| first("examples"))
        .or_else(|| first("enum"))
}

fn object_of(schema: &Value) -> Value {
    let names = schema["required"].as_array().into_iter().flatten();
    let names = names.filter_map(Value::as_str);
    names
        .map(|name| (name.to_owned(), value_of(&schema["properties"][name])))
        .collect()
}
