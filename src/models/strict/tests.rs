use proptest::{collection, prelude::*, sample::select};
use serde_json::{Value, json};
use test_support::models::strict_violations;

use super::{CopyBudget, InputSchema};
use crate::tool::schema::drop_optional_nulls;

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

/// The strict schema of a parameter that is required.
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

#[test]
fn unsupported_keywords_become_sentences() {
    for (schema, expected) in [
        (
            json!({"type": "string", "minLength": 2, "default": "ab", "description": "A text."}),
            json!({"type": "string",
                   "description": "A text. Must have at least 2 characters. Default: \"ab\"."}),
        ),
        (
            json!({"type": "string", "pattern": "^(?!a)", "format": "uri"}),
            json!({"type": "string", "description": "Must match the pattern `^(?!a)`. Format: uri."}),
        ),
        (
            json!({"type": "string", "pattern": "^(?:a)$", "format": "date"}),
            json!({"type": "string", "format": "date", "pattern": "^(?:a)$"}),
        ),
        (
            json!({"type": "array", "items": {"type": "number"}, "uniqueItems": true, "minItems": 1}),
            json!({"type": "array", "description": "JSON Schema: {\"uniqueItems\":true}.",
                   "items": {"type": "number"}, "minItems": 1}),
        ),
        (
            json!({"const": "a"}),
            json!({"type": "string", "enum": ["a"]}),
        ),
        (
            json!({"enum": ["a", 1, null]}),
            json!({"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer", "enum": [1]},
                             {"type": "null"}]}),
        ),
        (
            json!({"type": ["string", "integer"], "minLength": 1, "maximum": 3}),
            json!({"anyOf": [{"type": "string", "description": "Must have at least 1 character."},
                             {"type": "integer", "maximum": 3}]}),
        ),
        (
            json!({"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}],
                   "minItems": 2, "maxItems": 2}),
            json!({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}),
        ),
        (
            json!({"allOf": [{"type": "integer", "minimum": 1}, {"maximum": 9}]}),
            json!({"type": "integer", "minimum": 1, "maximum": 9}),
        ),
        (
            json!({"oneOf": [{"const": "a", "description": "First."}, {"const": "b"}]}),
            json!({"type": "string", "description": "\"a\": First.", "enum": ["a", "b"]}),
        ),
        (
            json!({"oneOf": [{"type": "number"}, {"type": "integer"}]}),
            json!({"anyOf": [{"type": "number"}, {"type": "integer"}]}),
        ),
    ] {
        assert_eq!(of_parameter(&schema), Some(expected), "{schema}");
    }
}

#[test]
fn a_tagged_union_has_the_properties_next_to_it_in_each_form() {
    let form = |tag: &str| {
        json!({"type": "object", "required": ["kind"],
               "properties": {"kind": {"type": "string", "const": tag}}})
    };
    let schema = json!({"type": "object", "properties": {"id": {"type": "integer"}},
        "required": ["id"], "unevaluatedProperties": false, "oneOf": [form("a"), form("b")]});
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

/// With definitions that [`expressible`] schemas refer to.
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

/// Schemas of which the subset expresses everything.
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
            let form = |tag: &str, schema: Value| {
                object(json!({"tag": {"const": tag}, "p": schema}), json!(["tag"]))
            };
            json!({"oneOf": [form("a", one), form("b", other)]})
        });
        let flattened = (inner.clone(), inner.clone()).prop_map(|(one, other)| {
            let form = |tag: &str, schema: Value| {
                json!({"type": "object", "required": ["tag"],
                       "properties": {"tag": {"const": tag}, "p": schema}})
            };
            json!({"type": "object", "properties": {"q": {"type": "string"}},
                   "unevaluatedProperties": false, "oneOf": [form("a", one), form("b", other)]})
        });
        prop_oneof![
            3 => closed,
            1 => tagged,
            1 => flattened,
            1 => (inner.clone(), 0..3_u8)
                .prop_map(|(items, least)| json!({"type": "array", "items": items, "minItems": least})),
            1 => inner.prop_map(|form| json!({"anyOf": [form, {"type": "null"}]})),
        ]
    })
}

/// Any combination of keywords, meaningful or not.
fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        expressible(),
        Just(json!({})),
        Just(json!(false)),
        Just(json!({"$ref": "#/properties/a"})),
        Just(json!({"$ref": "#"})),
        Just(json!({"$ref": "#/$defs/D"})),
        Just(json!({"$ref": "https://a.example/b"})),
        Just(json!({"type": "object"})),
        Just(json!({"type": "array"})),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        let keyword = select(vec![
            "items",
            "not",
            "if",
            "then",
            "additionalProperties",
            "unevaluatedProperties",
            "propertyNames",
            "contains",
        ]);
        let several = select(vec!["anyOf", "oneOf", "allOf", "prefixItems", "items"]);
        let named = select(vec![
            "properties",
            "patternProperties",
            "$defs",
            "definitions",
            "dependencies",
        ]);
        let rule = prop_oneof![
            (keyword, inner.clone()).prop_map(|(keyword, inner)| (keyword, inner)),
            (several, collection::vec(inner.clone(), 1..3))
                .prop_map(|(it, list)| (it, json!(list))),
            (named, collection::btree_map("[a-cD]", inner, 1..3))
                .prop_map(|(it, map)| (it, json!(map))),
            collection::btree_set("[a-c]", 0..3).prop_map(|names| ("required", json!(names))),
            select(vec!["object", "array", "string", "integer"])
                .prop_map(|kind| ("type", json!(kind))),
            Just(("minLength", json!(1))),
            Just(("enum", json!(["a", 1, null]))),
            Just(("default", json!("a"))),
            Just(("exclusiveMinimum", json!(true))),
        ];
        collection::vec(rule, 1..4).prop_map(|rules| {
            let rules = rules
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value));
            Value::Object(rules.collect())
        })
    })
}

/// Values that often match: they have the schemas' names and constants.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = select(vec![
        json!(null),
        json!("a"),
        json!("b"),
        json!("x"),
        json!(1),
        json!(2),
        json!(0.5),
        json!(true),
    ]);
    leaf.prop_recursive(4, 24, 4, |inner| {
        let name = select(vec!["a", "b", "c", "p", "q", "tag", "name", "bark"]);
        let fields = collection::btree_map(name, inner.clone(), 0..5);
        prop_oneof![
            3 => fields.prop_map(|fields| json!(fields)),
            1 => collection::vec(inner, 0..3).prop_map(Value::from),
        ]
    })
}

/// A value of a schema in a strict schema, chosen by `choices`.
fn value_of(root: &Value, schema: &Value, choices: &mut impl FnMut(usize) -> usize) -> Value {
    if let Some(target) = target(root, schema) {
        return value_of(root, target, choices);
    }
    if let Some(forms) = schema["anyOf"].as_array() {
        return value_of(root, &forms[choices(forms.len())], choices);
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

/// Removes properties that are `null`, and those that `choices` selects.
fn leave_out(value: &mut Value, choices: &mut impl FnMut(usize) -> usize) {
    match value {
        Value::Object(object) => {
            object.retain(|_, value| choices(if value.is_null() { 2 } else { 4 }) > 0);
            object.values_mut().for_each(|it| leave_out(it, choices));
        }
        Value::Array(items) => items.iter_mut().for_each(|it| leave_out(it, choices)),
        _ => {}
    }
}

/// True if the value is valid in a strict schema with `null` for each property that it lacks.
fn is_valid_with_nulls(root: &Value, schema: &Value, value: &Value) -> bool {
    let is_valid_in = |schema: &Value, value: &Value| is_valid_with_nulls(root, schema, value);
    if let Some(target) = target(root, schema) {
        return is_valid_in(target, value);
    }
    if let Some(forms) = schema["anyOf"].as_array() {
        return forms.iter().any(|form| is_valid_in(form, value));
    }
    let inner_is_valid = match (value, &schema["properties"], &schema["items"]) {
        (Value::Object(object), Value::Object(properties), _) => {
            let mut each = properties.iter();
            object.keys().all(|name| properties.contains_key(name))
                && each.all(|(name, it)| is_valid_in(it, object.get(name).unwrap_or(&Value::Null)))
        }
        (Value::Array(list), _, items) => list.iter().all(|item| is_valid_in(items, item)),
        _ => true,
    };
    let mut rest = schema.clone();
    let keywords = ["properties", "required", "items"];
    rest.as_object_mut()
        .unwrap()
        .retain(|it, _| !keywords.contains(&it.as_str()));
    rest["additionalProperties"] = true.into();
    inner_is_valid && is_valid(&rest, value)
}

fn is_valid(schema: &Value, value: &Value) -> bool {
    jsonschema::draft202012::new(schema)
        .unwrap()
        .is_valid(value)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn any_schema_becomes_strict_or_is_refused(schema in any_schema(), name in "[a-cD]", inner in any_schema()) {
        strict(&schema);
        strict(&json!({"type": "object", "properties": {name: inner}, "$defs": {"D": schema}}));
    }

    #[test]
    fn expressible_schemas_are_strict_and_decide_the_same(
        inner in expressible(),
        is_required in any::<bool>(),
        seed in any::<u64>(),
        any_value in any_value(),
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
        let chosen = value_of(&strict, &strict, &mut choices);
        let mut shortened = chosen.clone();
        leave_out(&mut shortened, &mut choices);
        for value in [&shortened, &json!({"p": any_value})] {
            if is_valid(&original, value) {
                let is_valid = is_valid_with_nulls(&strict, &strict, value);
                prop_assert!(is_valid, "{original}\n{strict}\n{value}");
            }
        }
        for mut value in [chosen, json!({"p": any_value})] {
            if is_valid(&strict, &value) {
                let sent = value.clone();
                drop_optional_nulls(&original, &mut value);
                prop_assert!(is_valid(&original, &value), "{original}\n{strict}\n{sent}\n{value}");
            }
        }
    }
}
