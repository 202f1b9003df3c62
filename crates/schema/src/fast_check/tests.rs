use jsonschema::Draft;
use serde_json::json;

use super::*;

/// Returns the verdict, which is that of `jsonschema`, if the check knows the schema.
fn verdict(schema: &Value, value: &Value) -> Option<bool> {
    let options = jsonschema::options().should_validate_formats(true);
    knows(schema).then(|| {
        let validator = options.with_draft(Draft::Draft7).build(schema);
        let validator = validator.expect("the check knows valid schemas only");
        let is_valid = is_valid(schema, value);
        assert_eq!(is_valid, validator.is_valid(value), "{schema} {value}");
        is_valid
    })
}

const VALID: &str = r#"[
    {"to": "äöü", "count": 255, "weight": 0.5, "labels": ["a", "b"], "kind": "B"},
    {"to": "Ada", "count": 1.0, "weight": 18446744073709551615, "note": null, "size": "L"},
    {"to": "Ada", "shape": {"kind": "circle", "radius": 1}, "size": 1}
]"#;

const INVALID: &str = r#"[
    {"to": "Ada", "shape": {"kind": "point", "radius": 1}}, {"to": "Ada", "labels": ["a", 1]},
    {"to": "Ada", "kind": "C"}, {"to": "Ada", "cc": "Bob"}, {}
]"#;

#[test]
fn usual_schemas_need_no_jsonschema() {
    let message = json!({
        "type": "object",
        "description": "A message.",
        "properties": {
            "to": {"type": "string", "minLength": 1, "maxLength": 3},
            "count": {"type": "integer", "minimum": 0, "maximum": 255},
            "weight": {"type": "number", "exclusiveMinimum": 0},
            "labels": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
            "kind": {"type": "string", "enum": ["A", "B"]},
            "note": {"type": ["string", "null"]},
            "shape": {"oneOf": [
                {"type": "object", "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}},
                 "required": ["kind", "radius"], "additionalProperties": false},
                {"type": "object", "properties": {"kind": {"const": "point"}},
                 "required": ["kind"], "additionalProperties": false},
                {"type": "object", "required": ["x"]},
            ]},
            "size": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        },
        "required": ["to"],
        "additionalProperties": false,
    });
    for (messages, is_valid) in [(VALID, true), (INVALID, false)] {
        for value in list(messages) {
            assert_eq!(verdict(&message, &value), Some(is_valid), "{value}");
        }
    }
}

/// Schemas with what the check does not know; those from the fourth line on are invalid.
const OTHERS: &str = r##"[
    {"pattern": "a"}, {"not": {}}, {"$ref": "#"}, {"$schema": "http://json-schema.org/draft-04/schema#"},
    {"format": "date"}, {"uniqueItems": true}, {"items": [{}]}, {"unevaluatedProperties": false}, {"const": 1},
    {"enum": ["a", 1]}, {"maximum": 9007199254740992}, {"properties": {"a": {"contains": {}}}}, {"oneOf": [{"if": {}}]},
    {"type": "text"}, {"type": ["string", "string"]}, {"minLength": -1}, {"minimum": "1"}, {"anyOf": []},
    {"description": 1}, {"properties": {"a": {}}, "required": ["a", "a"]}, 1, null
]"##;

#[test]
fn other_schemas_are_left_to_jsonschema() {
    for schema in list(OTHERS) {
        assert!(!knows(&schema), "{schema}");
    }
}

/// Schemas with one keyword each.
const LEAVES: &str = r#"[
    true, false, {"type": "null"}, {"type": "boolean"}, {"type": "string"}, {"type": "integer"}, {"type": "number"},
    {"type": "array"}, {"type": "object"}, {"type": ["null", "integer"]}, {"enum": ["a", null]}, {"const": "ä"},
    {"minLength": 2}, {"maxLength": 2}, {"minItems": 1}, {"maxItems": 1}, {"required": ["a", "b"]}, {"minimum": 1},
    {"maximum": 1.5}, {"exclusiveMinimum": 0}, {"exclusiveMaximum": 9007199254740991}, {"uniqueItems": false}
]"#;

/// Numbers that are equal in one type and not in another, or that one type cannot represent, and
/// texts with one to four bytes for each character.
const VALUES: &str = r#"[
    null, true, false, 0, 0.0, -0.0, 1, 1.0, 1.5, -1, 2, 9007199254740991, 9007199254740992, 9007199254740993,
    9007199254740992.0, -9223372036854775808, 18446744073709551615, 1e19, 1e300, 5e-324, "", "a", "ä", "ab", "a€",
    "\ud83d\ude00", "e\u0301", "abc", [], {}
]"#;

fn list(json: &str) -> Vec<Value> {
    serde_json::from_str(json).unwrap()
}

/// Two keywords together, in each way in which a schema holds others; the fuzz targets search
/// further.
#[test]
fn a_check_agrees_with_jsonschema() {
    let leaves = list(LEAVES);
    let mut schemas = leaves.clone();
    for (one, other) in leaves.iter().zip(leaves.iter().cycle().skip(7)) {
        schemas.extend([
            json!({"allOf": [one, other]}),
            json!({"anyOf": [one, other]}),
            json!({"oneOf": [one, other]}),
            json!({"oneOf": [{"anyOf": [one, other]}, other]}),
            json!({"items": one}),
            json!({"properties": {"a": one}, "additionalProperties": other}),
            json!({"type": "object", "properties": {"b": other}, "required": ["a"]}),
        ]);
    }
    let mut values = list(VALUES);
    for value in list(VALUES) {
        values.extend([json!([value]), json!({"a": value, "b": value})]);
    }
    for schema in &schemas {
        for value in &values {
            assert!(verdict(schema, value).is_some(), "{schema}");
        }
    }
}
