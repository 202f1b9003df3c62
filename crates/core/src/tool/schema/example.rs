//! An example of a schema's values, from those that the tool's author wrote into the schema.

use serde_json::Value;

use crate::json::JsonObject;

/// The value of a required part whose author wrote none, if there is one.
pub type Guess = fn(&Value) -> Option<Value>;

/// Returns the author's value, or an object with all required properties, and with the optional
/// ones that have an example.
pub fn example_of(schema: &Value, guess: Guess) -> Option<Value> {
    let authored = authored_value(schema).cloned();
    let value = authored.or_else(|| object_of(schema, guess));
    value.or_else(|| guess(schema))
}

fn object_of(schema: &Value, guess: Guess) -> Option<Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.filter(|_| !has_branches(schema))?;
    let required = schema["required"].as_array();
    let mut example = JsonObject::new();
    for (name, property) in properties {
        if required.is_some_and(|names| names.iter().any(|it| it == name)) {
            example.insert(name.clone(), example_of(property, guess)?);
        } else if let Some(value) = example_of(property, |_| None) {
            example.insert(name.clone(), value);
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

/// Returns true if other schemas decide too, so that the properties alone do not make a valid
/// value.
fn has_branches(schema: &Value) -> bool {
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
        assert_eq!(example_of(&schema, |_| None), Some(example));
    }

    #[test]
    fn nothing_is_guessed() {
        let required =
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}});
        assert_eq!(example_of(&required, |_| None), None);
        let branches =
            json!({"type": "object", "properties": {"a": {"default": 1}}, "oneOf": [{}]});
        assert_eq!(example_of(&branches, |_| None), None);
        assert_eq!(
            example_of(&json!({"type": "object", "properties": {}}), |_| None),
            None
        );
    }
}
