//! Schemas that every client accepts.
//!
//! A client that rejects one schema rejects the whole list: Anthropic's API accepts no union at the
//! root of an input, and every client reads a schema without `$schema` as draft 2020-12.

use serde_json::{Map, Value, json};

use crate::payload::JsonObject;

const DRAFT_7: &str = "http://json-schema.org/draft-07/schema#";
const UNIONS: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// The input schema to publish, and a note for the tool's description if this schema is less
/// specific than the tool's own.
pub(super) fn input(schema: Value, is_draft_7: bool) -> (Value, Option<String>) {
    let mut schema = object_of(schema);
    // A schema with an explicit dialect was written for clients that support that dialect.
    if schema.contains_key("$schema") {
        return (schema.into(), None);
    }
    let unions: Vec<_> = UNIONS
        .into_iter()
        .filter_map(|keyword| Some((keyword, schema.shift_remove(keyword)?)))
        .collect();
    let note = (!unions.is_empty()).then(|| fold(&mut schema, unions));
    schema.entry("type").or_insert_with(|| "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    (with_draft(schema, is_draft_7), note)
}

/// The output schema to publish, which always describes an object.
pub(super) fn output(schema: Value, is_draft_7: bool) -> Value {
    if is_object(&schema) {
        return with_draft(object_of(schema), is_draft_7);
    }
    let mut inner = schema;
    let mut outer = JsonObject::new();
    // References start at the root, so definitions must stay there.
    for keyword in ["$schema", "$defs", "definitions"] {
        let value = inner
            .as_object_mut()
            .and_then(|it| it.shift_remove(keyword));
        outer.extend(value.map(|value| (keyword.to_owned(), value)));
    }
    outer.insert("type".into(), "object".into());
    outer.insert("properties".into(), json!({"result": inner}));
    outer.insert("required".into(), json!(["result"]));
    with_draft(outer, is_draft_7)
}

/// True if a schema describes objects only.
pub(super) fn is_object(schema: &Value) -> bool {
    schema["type"] == "object"
}

fn object_of(schema: Value) -> JsonObject {
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

fn with_draft(mut schema: JsonObject, is_draft_7: bool) -> Value {
    if is_draft_7 && !schema.contains_key("$schema") {
        schema.shift_insert(0, "$schema".into(), DRAFT_7.into());
    }
    schema.into()
}

/// Merges the properties of the forms into the schema. The server still checks the forms; the note
/// describes them to the model.
fn fold(schema: &mut JsonObject, unions: Vec<(&'static str, Value)>) -> String {
    let mut notes = Vec::new();
    let mut properties = schema
        .shift_remove("properties")
        .map(object_of)
        .unwrap_or_default();
    for (keyword, forms) in unions {
        let forms = forms.as_array().cloned().unwrap_or_default();
        for form in &forms {
            for (name, property) in form["properties"].as_object().into_iter().flatten() {
                match properties.get(name) {
                    None => {
                        properties.insert(name.clone(), property.clone());
                    }
                    Some(known) if known == property => {}
                    // Different in two forms.
                    Some(_) => {
                        let description = property["description"].as_str();
                        let any = description.map_or(json!({}), |it| json!({"description": it}));
                        properties.insert(name.clone(), any);
                    }
                }
            }
        }
        let which = match keyword {
            "allOf" => "all",
            "oneOf" => "exactly one",
            _ => "at least one",
        };
        let forms = Value::Array(forms);
        notes.push(format!(
            "The input must match {which} of these JSON Schemas: {forms}"
        ));
    }
    schema.insert("properties".into(), properties.into());
    // It would forbid the properties of the forms.
    schema.shift_remove("unevaluatedProperties");
    notes.join("\n")
}
