use serde_json::json;

use super::*;
use crate::{Schema, vocabulary};

#[test]
fn the_draft_is_the_oldest_that_can_express_the_schema() {
    let tuple = json!({"properties": {"pair": {"prefixItems": [{"type": "string"}]}}});
    assert_eq!(draft_for(&tuple), Draft::Draft202012);
    let plain = json!({"properties": {"prefixItems": {"type": "string"}}});
    assert_eq!(draft_for(&plain), Draft::Draft7);
}

#[test]
fn definitions_count_like_the_rest_of_a_schema() {
    for keyword in ["$defs", "definitions"] {
        let reference = format!("#/{keyword}/pair");
        let mut schema = json!({"properties": {"pair": {"$ref": reference}}});
        schema[keyword]["pair"] = json!({"prefixItems": [{"type": "integer"}]});
        assert_eq!(draft_for(&schema), Draft::Draft202012, "{keyword}");
        let schema = Schema::from_value(schema);
        let mut value = json!({"pair": [1.0]});
        schema.normalize(&mut value);
        assert_eq!(value, json!({"pair": [1]}), "{keyword}");
        let invalid = json!({"pair": ["1"]});
        assert!(schema.check(&invalid, "input").unwrap().is_err());
    }
}

#[test]
fn an_invalid_schema_is_an_error_and_no_panic() {
    let schema = Schema::from_value(json!({"type": "nonsense"}));
    assert!(schema.compile().is_err());
    assert!(schema.check(&json!(1), "input").is_err());
}

/// The verdict is that of `jsonschema`, in the draft that the table chooses.
#[test]
fn each_keyword_decides_about_values_of_its_type() {
    for (kind, schema, rejected) in vocabulary::tests::deciding() {
        let compiled = Schema::from_value(schema.clone());
        assert!(
            compiled.check(&rejected, "input").unwrap().is_err(),
            "{schema}"
        );
        let values = json!([null, true, 7, 0.5, "text", [], {}]);
        let of_any_kind = kind == vocabulary::ANY;
        for value in values.as_array().unwrap().iter().filter(|_| !of_any_kind) {
            let is_of_kind = vocabulary::kinds_of(&json!({"const": value})) == [kind];
            let is_about = is_of_kind || (kind == "number" && value.is_number());
            let is_valid = compiled.check(value, "input").unwrap().is_ok();
            assert!(is_valid || is_about, "{schema} {value}");
        }
    }
}

#[test]
fn every_invalid_value_has_an_error() {
    let named = json!({"properties": {"additionalProperties": false}});
    // The value has the first branch, and a property that only the other one declares.
    let branches = json!({
        "oneOf": [
            {"properties": {"a": true}, "required": ["a"]},
            {"properties": {"b": {"type": "string"}}, "required": ["b"]},
        ],
        "unevaluatedProperties": false,
    });
    let not_allowed = ("additionalProperties", "Is not allowed");
    let named_value = |value: Value| json!({"additionalProperties": value});
    for (schema, value, (name, message)) in [
        (&named, named_value(json!(1)), not_allowed),
        (&named, named_value(json!({"a": 1})), not_allowed),
        (
            &branches,
            json!({"a": 1, "b": 2}),
            ("input", message::NO_FORM),
        ),
    ] {
        assert_eq!(errors_of(schema, &value), json!({name: message}));
    }
}

/// Schemas of an object with a list of 2000 numbers and a text, and the errors of the object.
const LARGE: &str = r##"
{"additionalProperties": {"items": {"type": ["integer", "string"]}}} => null
{"properties": {"list": {"items": {"type": "integer"}}}} => {"list[1500]": "Must be an integer"}
{"$defs": {"n": {"type": "number"}}, "properties": {"list": {"items": {"$ref": "#/$defs/n"}}}} => {"list[1500]": "Must be a number"}
{"properties": {"list": {"prefixItems": [{"type": "string"}]}}} => {"list[0]": "Must be a string"}
{"properties": {"list": {"maxItems": 10}}} => {"list": "Must have at most 10 items"}
{"properties": {"list": {}}, "required": ["other"]} => {"other": "Is required"}
{"additionalProperties": {"items": {"anyOf": [{"type": "integer"}]}}} => {"input": "Does not satisfy the tool's definition"}
{"oneOf": [{"required": ["other"]}]} => {"input": "Must be one of the forms that the tool's definition describes"}
"##;

#[test]
fn a_large_value_gets_its_first_error_or_one_of_the_whole() {
    let mut list = vec![json!(7); 2000];
    list[1500] = json!("7x");
    let value = json!({"list": list});
    for row in LARGE.lines().skip(1) {
        let (schema, errors) = row.split_once(" => ").unwrap();
        let [schema, errors] = [schema, errors].map(|json| json.parse::<Value>().unwrap());
        assert_eq!(errors_of(&schema, &value), errors, "{schema}");
        let places = Schema::from_value(schema.clone());
        let places = places.rejecting_keywords(&value).unwrap();
        let is_whole = places == Some(vec!["the schema as a whole".to_owned()]);
        assert_eq!(is_whole, errors.get("input").is_some(), "{schema}");
    }
}

/// Returns the errors of a value; `null` if it is valid.
fn errors_of(schema: &Value, value: &Value) -> Value {
    let schema = Schema::from_value(schema.clone());
    json!(schema.check(value, "input").unwrap().err())
}
