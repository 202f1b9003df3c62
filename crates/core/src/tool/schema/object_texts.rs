//! Objects that a model sends as text, because its API cannot describe them.
//!
//! Only the tool's schema tells such a text from one that the tool takes as it is.

use serde_json::Value;

use super::resolved::Resolved;
use crate::json::JsonObject;

/// Replaces each text that `schema` forbids with the object whose JSON it is, if `schema` allows an
/// object there.
pub fn parse_object_texts(schema: &Value, value: &mut Value) {
    Resolved::new(schema).walk(value, &parse);
}

fn parse(resolved: &Resolved<'_>, schemas: &[&Value], value: &mut Value) {
    let forbid = |value: &Value| schemas.iter().any(|it| resolved.forbids(it, value));
    if let Value::String(text) = &*value
        && forbid(value)
        && let Ok(object) = serde_json::from_str::<JsonObject>(text)
    {
        let object = Value::from(object);
        if !forbid(&object) {
            *value = object;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_become_objects_only_where_the_schema_expects_objects() {
        let map = json!({"type": "object", "additionalProperties": {"type": "object"}});
        let schema = json!({
            "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
            "properties": {
                "map": map, "maybe": {"type": ["object", "null"]}, "node": {"$ref": "#/$defs/Node"},
                "list": {"type": "array", "items": map}, "text": {"type": "string"}, "any": {},
                "either": {"anyOf": [{"type": "string"}, map]},
                "auto": {"anyOf": [{"const": "auto"}, map]}, "number": {"type": "integer"},
                "wrong": map, "array": map,
            },
        });
        let text = r#"{"a":{}}"#;
        let mut value = json!({
            "map": r#"{"a":"{\"b\":1}"}"#, "maybe": text, "node": {"next": r#"{"next":{}}"#},
            "list": [text, {"a": "{}"}], "text": text, "any": text, "either": text, "auto": text,
            "number": text, "wrong": "{\"a\":", "array": "[{}]", "undeclared": text,
        });
        parse_object_texts(&schema, &mut value);
        let object = json!({"a": {}});
        let expected = json!({
            "map": {"a": {"b": 1}}, "maybe": object, "node": {"next": {"next": {}}},
            "list": [object, object], "text": text, "any": text, "either": text, "auto": object,
            "number": text, "wrong": "{\"a\":", "array": "[{}]", "undeclared": text,
        });
        assert_eq!(value, expected);
        let mut auto = json!({"auto": "auto"});
        parse_object_texts(&schema, &mut auto);
        assert_eq!(auto, json!({"auto": "auto"}));
    }
}
