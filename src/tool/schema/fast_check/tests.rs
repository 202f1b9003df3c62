use jsonschema::Draft;
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::json;

use super::*;

/// The verdict, which is that of `jsonschema`, if the check knows the schema.
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
    for valid in [
        json!({"to": "äöü", "count": 255, "weight": 0.5, "labels": ["a", "b"], "kind": "B"}),
        json!({"to": "Ada", "count": 1.0, "weight": u64::MAX, "note": null, "size": "L"}),
        json!({"to": "Ada", "shape": {"kind": "circle", "radius": 1}, "size": 1}),
        json!({"to": "Ada", "shape": {"kind": "point"}}),
    ] {
        assert_eq!(verdict(&message, &valid), Some(true), "{valid}");
    }
    for (name, value) in [
        ("to", json!("Adam")),
        ("to", json!("")),
        ("cc", json!("Bob")),
        ("count", json!(256)),
        ("count", json!(-1)),
        ("count", json!(0.5)),
        ("weight", json!(0)),
        ("labels", json!(["a", "b", "c"])),
        ("labels", json!(["a", 1])),
        ("kind", json!("C")),
        ("note", json!(1)),
        ("shape", json!({"kind": "point", "radius": 1})),
        ("shape", json!({"kind": "circle"})),
        ("size", json!(true)),
    ] {
        let mut invalid = json!({"to": "Ada"});
        invalid[name] = value;
        assert_eq!(verdict(&message, &invalid), Some(false), "{invalid}");
    }
    for invalid in [json!({}), json!([])] {
        assert_eq!(verdict(&message, &invalid), Some(false), "{invalid}");
    }
    // A value must not match two forms.
    let both = json!({"oneOf": [{"type": "string"}, {"minLength": 2}]});
    assert_eq!(verdict(&both, &json!("ab")), Some(false));
    assert_eq!(verdict(&both, &json!("a")), Some(true));
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

/// Numbers that are equal in one type and not in another, or that one type cannot represent.
fn number() -> impl Strategy<Value = Value> {
    let numbers = [
        json!(0),
        json!(0.0),
        json!(-0.0),
        json!(1),
        json!(1.0),
        json!(1.5),
        json!(-1),
        json!(2),
        json!(255),
        json!(256),
        json!(1_u64 << 53),
        json!((1_u64 << 53) + 1),
        json!(i64::MIN),
        json!(i64::MAX),
        json!(u64::MAX),
        json!(9_007_199_254_740_992.0),
        json!(1e19),
        json!(1e300),
        json!(-9.3e18),
        json!(5e-324),
    ];
    prop_oneof![4 => select(numbers.to_vec()), 1 => any::<i64>().prop_map(Value::from), 1 => any::<f64>().prop_map(Value::from)]
}

/// One to four bytes for each character, and up to one character more than the limits of lengths.
fn text() -> impl Strategy<Value = String> {
    let characters = select(vec!['a', 'ä', '€', '\u{1F600}', '\u{301}']);
    vec(characters, 0..5).prop_map(String::from_iter)
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number(),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((name(), inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn name() -> impl Strategy<Value = String> {
    select(
        ["a", "b", "c", "ab", "type", ""]
            .map(str::to_owned)
            .to_vec(),
    )
}

/// A keyword and its value, which is sometimes invalid.
fn keyword(
    inner: impl Strategy<Value = Value> + Clone + 'static,
) -> impl Strategy<Value = (String, Value)> {
    let types = [
        "null", "boolean", "string", "integer", "number", "array", "object",
    ];
    let type_name = select(types.map(Value::from).to_vec());
    let types =
        prop_oneof![3 => type_name.clone(), 1 => vec(type_name, 0..3).prop_map(Value::from)];
    let fields = |strategy| {
        vec((name(), strategy), 0..4)
            .prop_map(|it: Vec<(String, Value)>| Value::Object(it.into_iter().collect()))
    };
    let schemas = vec(inner.clone(), 0..4).prop_map(Value::from);
    let named = |name: &'static str, strategy: BoxedStrategy<Value>| {
        strategy.prop_map(move |value| (name.to_owned(), value))
    };
    let count = prop_oneof![8 => (0..4_u64).prop_map(Value::from), 1 => value()].boxed();
    let limit = prop_oneof![8 => number(), 1 => value()].boxed();
    prop_oneof![
        4 => named("type", types.boxed()),
        1 => named("enum", vec(value(), 0..4).prop_map(Value::from).boxed()),
        1 => named("enum", vec(text().prop_map(Value::from), 0..4).prop_map(Value::from).boxed()),
        1 => named("const", value().boxed()),
        3 => named("properties", fields(inner.clone().boxed()).boxed()),
        2 => named("required", vec(name(), 0..3).prop_map(Value::from).boxed()),
        2 => named("additionalProperties", prop_oneof![Just(json!(false)), inner.clone()].boxed()),
        2 => named("items", inner.clone().boxed()),
        1 => named("minItems", count.clone()),
        1 => named("maxItems", count.clone()),
        3 => named("minLength", count.clone()),
        3 => named("maxLength", count.clone()),
        1 => named("minimum", limit.clone()),
        1 => named("maximum", limit.clone()),
        1 => named("exclusiveMinimum", limit.clone()),
        1 => named("exclusiveMaximum", limit),
        1 => named("allOf", schemas.clone().boxed()),
        1 => named("anyOf", schemas.clone().boxed()),
        1 => named("oneOf", schemas.boxed()),
        1 => named("description", prop_oneof![Just(json!("A.")), value()].boxed()),
        1 => named("default", value().boxed()),
        1 => named("uniqueItems", any::<bool>().prop_map(Value::from).boxed()),
        1 => named("not", inner.boxed()),
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(json!({})),
        3 => vec(keyword(Just(json!({"type": "string"}))), 0..3)
            .prop_map(|keywords| Value::Object(keywords.into_iter().collect())),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        vec(keyword(inner), 0..5).prop_map(|keywords| Value::Object(keywords.into_iter().collect()))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    /// A value that matches the type of a schema more often than by chance would make most cases
    /// deeper, but the fuzz target `schema` does that.
    #[test]
    fn a_check_agrees_with_jsonschema(schema in schema(), values in vec(value(), 1..8)) {
        for value in &values {
            verdict(&schema, value);
        }
    }
}
