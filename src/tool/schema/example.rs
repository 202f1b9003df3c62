//! The example of an input, from the values that the tool's author wrote into the schema.
//!
//! A value that is only guessed from a type teaches a reader nothing and may be invalid, so an input
//! with such a parameter has no example.

use serde_json::Value;

use crate::payload::JsonObject;

/// An input with all required properties, and with the optional ones that have an example.
pub(super) fn example_of(schema: &Value) -> Option<Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    if let Some(value) = authored_value(schema) {
        return Some(value.clone());
    }
    let properties = properties.filter(|_| !has_forms(schema))?;
    let required: Vec<_> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .collect();
    let mut example = JsonObject::new();
    for (name, property) in properties {
        match example_of(property) {
            Some(value) => _ = example.insert(name.clone(), value),
            None if required.iter().any(|it| *it == name) => return None,
            None => {}
        }
    }
    (!example.is_empty()).then_some(Value::Object(example))
}

fn authored_value(schema: &Value) -> Option<&Value> {
    let first = |keyword: &str| schema.get(keyword)?.get(0);
    first("examples")
        .or_else(|| schema.get("default"))
        .or_else(|| schema.get("const"))
        .or_else(|| first("enum"))
}

/// True if other schemas decide too, so that the properties alone do not make a valid value.
fn has_forms(schema: &Value) -> bool {
    let keywords = ["allOf", "anyOf", "oneOf", "not", "if", "minProperties"];
    keywords.iter().any(|keyword| schema.get(keyword).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_authors_values_are_used() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string", "examples": ["x", "y"]},
            "b": {"enum": ["one", "two"]},
            "c": {"type": "object", "required": ["d"], "properties": {"d": {"default": 5}}},
            "e": {"type": "string"},
        }});
        let example = json!({"a": "x", "b": "one", "c": {"d": 5}});
        assert_eq!(example_of(&schema), Some(example));
    }

    #[test]
    fn nothing_is_guessed() {
        let required =
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}});
        assert_eq!(example_of(&required), None);
        let forms = json!({"type": "object", "properties": {"a": {"default": 1}}, "oneOf": [{}]});
        assert_eq!(example_of(&forms), None);
        assert_eq!(
            example_of(&json!({"type": "object", "properties": {}})),
            None
        );
    }
}
