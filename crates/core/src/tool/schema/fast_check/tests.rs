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
    for (value, is_valid) in [
        (
            json!({"to": "äöü", "count": 255, "weight": 0.5, "labels": ["a", "b"], "kind": "B"}),
            true,
        ),
        (
            json!({"to": "Ada", "count": 1.0, "weight": u64::MAX, "note": null, "size": "L"}),
            true,
        ),
        (
            json!({"to": "Ada", "shape": {"kind": "circle", "radius": 1}, "size": 1}),
            true,
        ),
        (
            json!({"to": "Ada", "shape": {"kind": "point", "radius": 1}}),
            false,
        ),
        (json!({"to": "Ada", "labels": ["a", 1]}), false),
        (json!({"to": "Ada", "kind": "C"}), false),
        (json!({"to": "Ada", "cc": "Bob"}), false),
        (json!({}), false),
    ] {
        assert_eq!(verdict(&message, &value), Some(is_valid), "{value}");
    }
}

#[test]
fn other_schemas_are_left_to_jsonschema() {
    for schema in [
        json!({"pattern": "a"}),
        json!({"not": {}}),
        json!({"$ref": "#"}),
        json!({"$schema": "http://json-schema.org/draft-04/schema#"}),
        json!({"format": "date"}),
        json!({"uniqueItems": true}),
        json!({"items": [{}]}),
        json!({"unevaluatedProperties": false}),
        json!({"const": 1}),
        json!({"enum": ["a", 1]}),
        json!({"maximum": 9_007_199_254_740_992_u64}),
        json!({"properties": {"a": {"contains": {}}}}),
        json!({"oneOf": [{"if": {}}]}),
        // Invalid.
        json!({"type": "text"}),
        json!({"type": ["string", "string"]}),
        json!({"minLength": -1}),
        json!({"minimum": "1"}),
        json!({"anyOf": []}),
        json!({"description": 1}),
        json!({"properties": {"a": {}}, "required": ["a", "a"]}),
        json!(1),
        Value::Null,
    ] {
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
