//! Gemini's `Schema`: a subset of OpenAPI 3.0's schemas.
//!
//! `parameters` is used instead of the newer `parametersJsonSchema`, which older SDKs do not have.

use lambda_tools_core::{
    json::JsonObject,
    tool::schema::reduced::{self, SchemaFormat, sentences},
};
use serde_json::{Value, json};

use super::{budget::CopyBudget, portable::InputSchema};

const FORMAT: SchemaFormat = SchemaFormat {
    has_keyword: |kind, keyword, value| match kind {
        // The Gemini API rejects other formats of texts.
        "string" => match keyword {
            "format" => value == "date-time",
            "pattern" => value.is_string(),
            _ => ["minLength", "maxLength"].contains(&keyword) && is_count(value),
        },
        "integer" | "number" => ["minimum", "maximum"].contains(&keyword) && value.is_number(),
        "array" => ["minItems", "maxItems"].contains(&keyword) && is_count(value),
        "object" => ["minProperties", "maxProperties"].contains(&keyword) && is_count(value),
        _ => false,
    },
    // The choices are texts, and the Gemini API rejects empty ones.
    has_choice: |kind, value| kind == "string" && value.as_str().is_some_and(|it| !it.is_empty()),
    is_openapi: true,
};

/// Returns true for a count: a 64-bit integer.
fn is_count(value: &Value) -> bool {
    value.as_i64().is_some_and(|it| it >= 0)
}

/// Returns the `parameters`, or `None` for a function without parameters, and notes for its
/// description.
pub(super) fn parameters(input: InputSchema, budget: &CopyBudget) -> (Option<Value>, Vec<String>) {
    let (schema, notes) = input.reduced(&FORMAT, budget);
    let has_properties = schema["properties"]
        .as_object()
        .is_some_and(|it| !it.is_empty());
    // The Gemini API rejects an object without properties here.
    let parameters = has_properties.then(|| encoded(schema));
    (parameters, notes)
}

/// Encodes a schema with the API's names of types.
fn encoded(mut schema: JsonObject) -> Value {
    if is_without_properties(&schema) {
        schema = as_text(schema);
    }
    if let Some(Value::String(kind)) = schema.get_mut("type") {
        *kind = kind.to_uppercase();
    }
    let properties = schema.shift_remove("properties");
    if let Some(Value::Object(properties)) = properties.filter(|it| *it != json!({})) {
        // Objects have no order in the API, but models fill in parameters in order.
        let names: Vec<_> = properties.keys().cloned().collect();
        let each = properties.into_iter();
        let each = each.map(|(name, property)| (name, encoded_part(property)));
        schema.insert("properties".into(), Value::Object(each.collect()));
        schema.insert("propertyOrdering".into(), names.into());
    }
    if let Some(items) = schema.get_mut("items") {
        *items = encoded_part(items.take());
    }
    if let Some(Value::Array(branches)) = schema.shift_remove("anyOf") {
        return union(branches);
    }
    schema.into()
}

/// Encodes a union. A tool that accepts any text gets the text unchanged, so a text cannot
/// represent an object there.
fn union(mut branches: Vec<Value>) -> Value {
    let is_any_text = |branch: &Value| branch["type"] == "string" && branch.get("enum").is_none();
    if branches.iter().any(is_any_text) {
        branches.retain(|branch| !branch.as_object().is_some_and(is_without_properties));
    }
    let mut branches: Vec<_> = branches.into_iter().map(encoded_part).collect();
    match branches.as_mut_slice() {
        [only] => only.take(),
        _ => json!({"anyOf": branches}),
    }
}

fn is_without_properties(schema: &JsonObject) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    schema.get("type").is_some_and(|it| it == "object")
        && properties.is_none_or(JsonObject::is_empty)
}

/// Replaces an object with a text for its JSON: "properties: should be non-empty for OBJECT type".
fn as_text(mut object: JsonObject) -> JsonObject {
    let text = reduced::take_description(&mut object);
    let nullable = object.shift_remove_entry("nullable");
    object.retain(|keyword, _| keyword != "type" && keyword != "properties");
    let mut sentences = Vec::new();
    sentences::add(object, &mut sentences);
    sentences.push("A JSON object, as text.".to_owned());
    let mut schema = reduced::described("string", text, &sentences);
    schema.extend(nullable);
    schema
}

fn encoded_part(schema: Value) -> Value {
    match schema {
        Value::Object(schema) => encoded(schema),
        other => other,
    }
}
