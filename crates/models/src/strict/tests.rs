use lambda_tools_core::tool::schema::drop_optional_nulls;
use proptest::{collection, prelude::*};
use serde_json::{Value, json};
use test_support::models::strict_violations;

use super::{CopyBudget, InputSchema};

fn strict(schema: &Value) -> Option<Value> {
    let budget = CopyBudget::new(usize::MAX);
    let strict = super::schema_of(&InputSchema::of(schema, &budget), &budget).map(Value::from);
    if let Some(strict) = &strict {
        let violations = strict_violations(strict);
        assert!(violations.is_empty(), "{schema}\n{strict}\n{violations:#?}");
    }
    strict
}

#[expect(clippy::needless_pass_by_value, reason = "easier to read")]
fn object(properties: Value, required: Value) -> Value {
    json!({"type": "object", "properties": properties, "required": required,
           "additionalProperties": false})
}

/// Returns the strict schema of a parameter that is required.
fn of_parameter(schema: &Value) -> Option<Value> {
    let strict = strict(&object(json!({"p": schema}), json!(["p"])))?;
    Some(strict["properties"]["p"].clone())
}

#[test]
fn optional_properties_are_required_and_nullable() {
    let schema = object(
        json!({
            "a": {"type": "string", "description": "A."},
            "b": {"type": "integer", "minimum": 1},
            "c": {"type": "string", "enum": ["x", "y"]},
            "d": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "e": {"type": ["string", "null"]},
            "f": object(json!({"g": {"type": "boolean"}}), json!([])),
        }),
        json!(["a"]),
    );
    let expected = object(
        json!({
            "a": {"type": "string", "description": "A."},
            "b": {"type": ["integer", "null"], "minimum": 1},
            "c": {"type": ["string", "null"], "enum": ["x", "y", null]},
            "d": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
            "e": {"type": ["string", "null"]},
            "f": {"type": ["object", "null"], "properties": {"g": {"type": ["boolean", "null"]}},
                  "required": ["g"], "additionalProperties": false},
        }),
        json!(["a", "b", "c", "d", "e", "f"]),
    );
    assert_eq!(strict(&schema), Some(expected));
}

/// Schemas of a parameter, each with its strict schema below it.
const SENTENCES: &str = r#"
{"type": "string", "minLength": 2, "default": "ab", "description": "A text."}
    {"type": "string", "description": "A text. Must have at least 2 characters. Default: \"ab\"."}
{"type": "string", "pattern": "^(?!a)", "format": "uri"}
    {"type": "string", "description": "Must match the pattern `^(?!a)`. Format: uri."}
{"type": "string", "pattern": "^(?:a)$", "format": "date"}
    {"type": "string", "format": "date", "pattern": "^(?:a)$"}
{"type": "array", "items": {"type": "number"}, "uniqueItems": true, "minItems": 1}
    {"type": "array", "description": "JSON Schema: {\"uniqueItems\":true}.", "items": {"type": "number"}, "minItems": 1}
{"const": "a"}
    {"type": "string", "enum": ["a"]}
{"enum": ["a", 1, null]}
    {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer", "enum": [1]}, {"type": "null"}]}
{"type": ["string", "integer"], "minLength": 1, "maximum": 3}
    {"anyOf": [{"type": "string", "description": "Must have at least 1 character."}, {"type": "integer", "maximum": 3}]}
{"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}], "minItems": 2, "maxItems": 2}
    {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
{"allOf": [{"type": "integer", "minimum": 1}, {"maximum": 9}]}
    {"type": "integer", "minimum": 1, "maximum": 9}
{"oneOf": [{"const": "a", "description": "First."}, {"const": "b"}]}
    {"type": "string", "description": "\"a\": First.", "enum": ["a", "b"]}
{"oneOf": [{"type": "number"}, {"type": "integer"}]}
    {"anyOf": [{"type": "number"}, {"type": "integer"}]}
"#;

#[test]
fn unsupported_keywords_become_sentences() {
    let lines: Vec<Value> = SENTENCES
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for pair in lines.chunks(2) {
        assert_eq!(
            of_parameter(&pair[0]).as_ref(),
            Some(&pair[1]),
            "{}",
            pair[0]
        );
    }
}

#[test]
fn a_tagged_union_has_the_properties_next_to_it_in_each_branch() {
    let branch = |tag: &str| {
        json!({"type": "object", "required": ["kind"],
               "properties": {"kind": {"type": "string", "const": tag}}})
    };
    let schema = json!({"type": "object", "properties": {"id": {"type": "integer"}},
        "required": ["id"], "unevaluatedProperties": false, "oneOf": [branch("a"), branch("b")]});
    let listed = |tag: &str| {
        let tag = json!({"type": "string", "enum": [tag]});
        object(
            json!({"id": {"type": "integer"}, "kind": tag}),
            json!(["id", "kind"]),
        )
    };
    let expected = json!({"anyOf": [listed("a"), listed("b")]});
    assert_eq!(of_parameter(&schema), Some(expected));
}

#[test]
fn schemas_that_the_subset_cannot_express_are_not_strict() {
    let text = json!({"type": "string"});
    let mut deep = text.clone();
    for _ in 0..10 {
        deep = json!({"type": "array", "items": deep});
    }
    for schema in [
        json!({}),
        json!(true),
        json!({"type": "object"}),
        json!({"type": "object", "additionalProperties": text}),
        json!({"type": "object", "properties": {"a": text}, "additionalProperties": true}),
        json!({"type": "object", "properties": {"a": text}, "patternProperties": {"b": text}}),
        json!({"type": "object", "properties": {"a": text}, "required": ["b"]}),
        json!({"type": "array"}),
        json!({"type": "array", "items": {}}),
        json!({"type": "array", "prefixItems": [text, {"type": "number"}]}),
        json!({"enum": [{"a": 1}]}),
        json!({"allOf": [{"type": "string"}, {"type": "number"}]}),
        json!({"allOf": [object(json!({"a": text}), json!([])), {"properties": {"b": text}}]}),
        deep,
    ] {
        assert_eq!(of_parameter(&schema), None, "{schema}");
    }
    assert_eq!(strict(&json!({"type": "object"})), None);
    assert!(strict(&object(json!({}), json!([]))).is_some());
}

#[test]
fn schemas_beyond_the_limits_are_not_strict() {
    let many = |count: usize, length: usize| -> Vec<String> {
        let name = |index| format!("{index:0length$}");
        (0..count).map(name).collect()
    };
    let values = |count, length| json!({"type": "string", "enum": many(count, length)});
    assert!(of_parameter(&values(1000, 8)).is_some());
    assert!(of_parameter(&values(1001, 8)).is_none());
    assert!(of_parameter(&values(250, 100)).is_some());
    assert!(of_parameter(&values(251, 100)).is_none());
    let properties = |count, length| {
        let names = many(count, length).into_iter();
        object(
            names.map(|name| (name, json!({"type": "null"}))).collect(),
            json!([]),
        )
    };
    assert!(strict(&properties(5000, 8)).is_some());
    assert!(strict(&properties(5001, 8)).is_none());
    assert!(strict(&properties(1200, 100)).is_some());
    assert!(strict(&properties(1201, 100)).is_none());
}

#[test]
fn a_recursive_schema_keeps_its_reference() {
    let pet = json!({"type": "object", "additionalProperties": false, "properties": {
        "name": {"type": "string"}, "child": {"$ref": "#/definitions/Pet", "description": "C."}}});
    let schema = json!({"type": "object", "additionalProperties": false,
        "properties": {"pet": {"$ref": "#/definitions/Pet"}}, "definitions": {"Pet": pet}});
    let strict = strict(&schema).unwrap();
    let reference = json!({"$ref": "#/$defs/Pet"});
    let child = &strict["$defs"]["Pet"]["properties"]["child"];
    assert_eq!(
        child,
        &json!({"description": "C.", "anyOf": [reference, {"type": "null"}]})
    );
    let pet = &strict["properties"]["pet"];
    assert_eq!(pet, &json!({"anyOf": [reference, {"type": "null"}]}));
}

/// Adds the definitions that [`expressible`] schemas refer to.
fn with_pets(mut schema: Value) -> Value {
    let text = json!({"type": "string"});
    let cat = json!({"name": text, "lives": {"type": "integer"}});
    let dog = json!({"name": text, "bark": {"type": "boolean"}});
    schema["$defs"] = json!({"Cat": object(cat, json!(["name"])), "Dog": object(dog, json!(["name", "bark"])),
        "Name": {"type": ["string", "null"]}});
    schema
}

#[test]
fn an_optional_union_of_references_is_nullable() {
    let pet = |name: &str| json!({"$ref": format!("#/$defs/{name}")});
    let union = json!({"anyOf": [pet("Cat"), pet("Dog")]});
    let strict = strict(&with_pets(object(json!({"p": union}), json!([])))).unwrap();
    let expected = json!({"anyOf": [pet("Cat"), pet("Dog"), {"type": "null"}]});
    assert_eq!(strict["properties"]["p"], expected);
}

/// Generates schemas of which the subset expresses everything.
fn expressible() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "string", "pattern": "^a"})),
        Just(json!({"type": "integer", "minimum": 1})),
        Just(json!({"type": "number", "exclusiveMaximum": 1})),
        Just(json!({"type": "boolean"})),
        Just(json!({"type": ["string", "null"]})),
        Just(json!({"type": ["string", "integer"]})),
        Just(json!({"type": "string", "enum": ["a", "b"]})),
        Just(json!({"enum": ["a", 1, null]})),
        Just(json!({"const": "a"})),
        Just(json!({"oneOf": [{"const": "a"}, {"const": "b"}]})),
        Just(json!({"allOf": [{"type": "integer"}, {"maximum": 2}]})),
        Just(json!({"$ref": "#/$defs/Cat"})),
        Just(json!({"$ref": "#/$defs/Name"})),
        Just(json!({"anyOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]})),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let properties = collection::btree_map("[a-c]", inner.clone(), 0..4);
        let closed = (properties, any::<[bool; 3]>()).prop_map(|(properties, required)| {
            let names = properties.keys().zip(required);
            let names: Vec<_> = names.filter(|(_, is)| *is).map(|(name, _)| name).collect();
            object(json!(properties), json!(names))
        });
        let tagged = (inner.clone(), inner.clone()).prop_map(|(one, other)| {
            let branch = |tag: &str, schema: Value| {
                object(json!({"tag": {"const": tag}, "p": schema}), json!(["tag"]))
            };
            json!({"oneOf": [branch("a", one), branch("b", other)]})
        });
        let flattened = (inner.clone(), inner.clone()).prop_map(|(one, other)| {
            let branch = |tag: &str, schema: Value| {
                json!({"type": "object", "required": ["tag"],
                       "properties": {"tag": {"const": tag}, "p": schema}})
            };
            json!({"type": "object", "properties": {"q": {"type": "string"}},
                   "unevaluatedProperties": false, "oneOf": [branch("a", one), branch("b", other)]})
        });
        prop_oneof![
            3 => closed,
            1 => tagged,
            1 => flattened,
            1 => (inner.clone(), 0..3_u8)
                .prop_map(|(items, least)| json!({"type": "array", "items": items, "minItems": least})),
            1 => inner.prop_map(|branch| json!({"anyOf": [branch, {"type": "null"}]})),
        ]
    })
}

/// Returns a value of a schema in a strict schema, chosen by `choices`.
fn value_of(root: &Value, schema: &Value, choices: &mut impl FnMut(usize) -> usize) -> Value {
    if let Some(target) = target(root, schema) {
        return value_of(root, target, choices);
    }
    if let Some(branches) = schema["anyOf"].as_array() {
        return value_of(root, &branches[choices(branches.len())], choices);
    }
    if let Some(values) = schema["enum"].as_array() {
        return values[choices(values.len())].clone();
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds[choices(kinds.len())].clone(),
        kind => kind.clone(),
    };
    match kind.as_str().unwrap() {
        "object" => {
            let properties = schema["properties"].as_object().unwrap().iter();
            let properties =
                properties.map(|(name, it)| (name.clone(), value_of(root, it, choices)));
            Value::Object(properties.collect())
        }
        "array" => {
            let count = schema["minItems"].as_u64().unwrap_or(0) + 1;
            (0..count)
                .map(|_| value_of(root, &schema["items"], choices))
                .collect()
        }
        "string" => ["a", "ab", "abc"][choices(3)].into(),
        "integer" => (choices(3) + 1).into(),
        "number" => json!([-1.5, 0.0, 0.5][choices(3)]),
        "boolean" => (choices(2) == 0).into(),
        _ => Value::Null,
    }
}

fn target<'a>(root: &'a Value, schema: &Value) -> Option<&'a Value> {
    root.pointer(schema["$ref"].as_str()?.strip_prefix('#')?)
}

fn is_valid(schema: &Value, value: &Value) -> bool {
    jsonschema::draft202012::new(schema)
        .unwrap()
        .is_valid(value)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn what_a_strict_schema_allows_is_valid(
        inner in expressible(),
        is_required in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let required = if is_required { json!(["p"]) } else { json!([]) };
        let original = with_pets(object(json!({"p": inner}), required));
        let strict = strict(&original);
        prop_assert!(strict.is_some(), "{original}");
        let strict = strict.unwrap();
        let mut state = seed;
        let mut choices = |count: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(state >> 33).unwrap() % count
        };
        let mut value = value_of(&strict, &strict, &mut choices);
        if !is_valid(&strict, &value) {
            return Ok(());
        }
        let sent = value.clone();
        drop_optional_nulls(&original, &mut value);
        prop_assert!(is_valid(&original, &value), "{original}\n{strict}\n{sent}\n{value}");
    }
}
