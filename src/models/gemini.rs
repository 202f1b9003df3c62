//! Gemini's `Schema`: a subset of OpenAPI 3.0's schemas.
//!
//! `parameters` is used instead of `parametersJsonSchema`, because all versions of the Gemini API,
//! of Vertex AI and of their SDKs have it.

use serde_json::{Value, json};

use super::{portable::InputSchema, references};
use crate::{
    payload::JsonObject,
    tool::schema::reduced::{self, SchemaFormat, sentences},
};

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

/// The counts are 64-bit integers.
fn is_count(value: &Value) -> bool {
    value.as_i64().is_some_and(|it| it >= 0)
}

/// The `parameters`, or `None` for a function without parameters, and notes for its description.
pub(super) fn parameters(input: InputSchema) -> (Option<Value>, Vec<String>) {
    let InputSchema { schema, mut notes } = input;
    let schema = references::inlined(schema);
    let mut schema = reduced::merged(schema.into(), &FORMAT);
    let text = reduced::take_description(&mut schema);
    notes.extend(Some(text).filter(|text| !text.is_empty()));
    let has_properties = schema["properties"]
        .as_object()
        .is_some_and(|it| !it.is_empty());
    // The Gemini API rejects an object without properties here.
    let parameters = has_properties.then(|| encoded(schema));
    (parameters, notes)
}

/// The schema with the API's names of types.
fn encoded(mut schema: JsonObject) -> Value {
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
    if let Some(Value::Array(forms)) = schema.get_mut("anyOf") {
        for form in forms {
            *form = encoded_part(form.take());
        }
    }
    schema.into()
}

fn encoded_part(schema: Value) -> Value {
    match schema {
        Value::Object(schema) => encoded(schema),
        other => other,
    }
}

/// The description of a function with its notes.
pub(super) fn described(description: &str, notes: &[String]) -> String {
    sentences::appended(description.trim().to_owned(), notes)
}
