use serde_json::json;

use super::*;
use crate::tool::schema::{Schema, reduced::keywords::kinds_of, vocabulary};

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
            let is_of_kind = kinds_of(&json!({"const": value})) == [kind];
            let is_about = is_of_kind || (kind == "number" && value.is_number());
            let is_valid = compiled.check(value, "input").unwrap().is_ok();
            assert!(is_valid || is_about, "{schema} {value}");
        }
    }
}
