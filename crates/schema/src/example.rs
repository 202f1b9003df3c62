//! An example of a schema's values, from those that the tool's author wrote into the schema.

use serde_json::Value;

use crate::{
    JsonObject,
    vocabulary::{Role, has_role},
};

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
    let mut keywords = schema.as_object().into_iter().flatten();
    keywords.any(|(it, _)| it == "minProperties" || has_role(it, &[Role::Branch, Role::Condition]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Schemas, and their examples, in which nothing is guessed.
    const SCHEMAS: &str = r#"
{"examples": ["x", "y"]} => "x"
{"enum": ["one", "two"]} => "one"
{"type": "object", "required": ["d"], "properties": {"d": {"default": 5}, "e": {"type": "string"}, "f": {"const": 1}}} => {"d": 5, "f": 1}
{"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}, "b": {"default": 1}}} => none
{"type": "object", "properties": {"a": {"default": 1}}, "oneOf": [{}]} => none
{"type": "object", "properties": {}} => none
"#;

    #[test]
    fn the_authors_values_are_used() {
        for row in SCHEMAS.lines().skip(1) {
            let (schema, example) = row.split_once(" => ").unwrap();
            let found = example_of(&schema.parse().unwrap(), |_| None);
            assert_eq!(found, example.parse().ok(), "{schema}");
        }
    }
}
