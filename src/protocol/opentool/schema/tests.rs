use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Reduced;
use crate::tool::schema;

fn reduced(schema: &Value) -> Value {
    let reduced = serde_json::to_value(Reduced::of(schema)).unwrap();
    obeys(&reduced);
    reduced
}

/// The format's rules: one type, no other keywords, choices of that type.
fn obeys(schema: &Value) {
    const KNOWN: [&str; 6] = [
        "type",
        "description",
        "properties",
        "items",
        "enum",
        "required",
    ];
    let object = schema.as_object().unwrap();
    let unknown = object.keys().find(|it| !KNOWN.contains(&it.as_str()));
    assert_eq!(unknown, None, "{schema}");
    let kind = schema["type"].as_str().unwrap();
    for value in schema["enum"].as_array().into_iter().flatten() {
        let fits = match kind {
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "string" => value.is_string(),
            other => panic!("{other} with enum: {schema}"),
        };
        assert!(fits, "{schema}");
    }
    let properties = schema["properties"].as_object();
    for name in schema["required"].as_array().into_iter().flatten() {
        let known = properties.is_some_and(|it| it.contains_key(name.as_str().unwrap()));
        assert!(known, "{schema}");
    }
    properties
        .into_iter()
        .flatten()
        .for_each(|(_, it)| obeys(it));
    schema.get("items").into_iter().for_each(obeys);
}

#[test]
fn what_the_format_knows_stays() {
    let schema = json!({"type": "object", "description": "A query.", "properties": {
        "words": {"type": "array", "items": {"type": "string"}, "description": "Words."},
        "order": {"type": "string", "enum": ["up", "down"], "description": "Which way."},
        "deep": {"type": "object", "description": "More.", "required": ["n"], "properties": {
            "n": {"type": "integer", "description": "How many."}}},
    }, "required": ["words"]});
    assert_eq!(reduced(&schema), schema);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn what_it_does_not_know_is_said() {
    for (schema, expected) in [
        (
            json!({"type": "string", "description": "A code", "pattern": "^[A-Z]{3}$"}),
            json!({"type": "string", "description": "A code. Must match the pattern `^[A-Z]{3}$`."}),
        ),
        (
            json!({"type": "integer", "minimum": 1, "maximum": 9, "description": "Digits!"}),
            json!({"type": "integer",
                "description": "Digits! Must be at least 1. Must be at most 9."}),
        ),
        (
            json!({"type": ["string", "integer", "null"]}),
            json!({"type": "string", "description": "May also be integer or null."}),
        ),
        (
            json!({"type": ["null", "integer"]}),
            json!({"type": "integer", "description": "May also be null."}),
        ),
        (
            json!({"anyOf": [{"type": "null"}, {"type": "number"}, {"type": "string"}]}),
            json!({"type": "number",
                "description": "May also be: string. May also be null."}),
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            json!({"type": "object", "description": "Any other property: integer."}),
        ),
        (
            json!({"const": "yes"}),
            json!({"type": "string", "enum": ["yes"]}),
        ),
        (
            json!({"const": {"a": 1}}),
            json!({"type": "object", "description": "Must be {\"a\":1}."}),
        ),
        (
            json!({"enum": ["a", 1, null]}),
            json!({"type": "string", "enum": ["a"], "description": "May also be 1 or null."}),
        ),
        (
            json!({"enum": [1, 2.5]}),
            json!({"type": "integer", "enum": [1], "description": "May also be 2.5."}),
        ),
        (
            json!({"type": "number", "enum": [1, 2.5]}),
            json!({"type": "number", "enum": [1, 2.5]}),
        ),
        (
            json!({"oneOf": [{"const": "a", "description": "The first."}, {"const": "b"}]}),
            json!({"type": "string", "enum": ["a", "b"], "description": "\"a\": The first."}),
        ),
        (
            json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}]}),
            json!({"type": "array", "description": "Items, in this order: string, number."}),
        ),
        (
            json!({"type": "string", "default": "x", "format": "date", "examples": ["y"]}),
            json!({"type": "string",
                "description": "Default: \"x\". Format: date. Examples: \"y\"."}),
        ),
        (
            json!({"type": "object", "dependentRequired": {"a": ["b"]}}),
            json!({"type": "object",
                "description": "JSON Schema: {\"dependentRequired\":{\"a\":[\"b\"]}}."}),
        ),
        (
            json!({"allOf": [
                {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"type": "object", "properties": {"b": {"type": "string"}}, "minProperties": 1}]}),
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "required": ["a"], "description": "Must have at least 1 properties."}),
        ),
        (
            json!({"enum": [[1], [2]]}),
            json!({"type": "array", "description": "Must be one of: [1] or [2]."}),
        ),
        (
            json!({"type": ["string", "null"], "enum": ["a", null]}),
            json!({"type": "string", "enum": ["a"], "description": "May also be null."}),
        ),
        (
            json!({"type": ["string", "integer"], "oneOf": [{"enum": [1]}, {"enum": ["a"]}]}),
            json!({"type": "string", "enum": ["a"],
                "description": "May also be integer. May also be: {\"enum\":[1]}."}),
        ),
        (
            json!({"type": "string", "enum": ["a"], "oneOf": [{"const": "a"}]}),
            json!({"type": "string", "enum": ["a"]}),
        ),
        (
            json!({"type": "string", "contentEncoding": "base64"}),
            json!({"type": "string", "description": "Encoded as base64."}),
        ),
        (
            json!({"type": "object", "required": ["x"], "properties": {"a": {"type": "string"}}}),
            json!({"type": "object", "properties": {"a": {"type": "string"}},
                "description": "Must have x."}),
        ),
        (
            json!({"allOf": [
                {"type": "object", "properties": {"a": {"type": "string"}}},
                {"type": "object", "properties": {"a": {"type": "string", "enum": ["x"]}}}]}),
            json!({"type": "object", "properties": {"a": {"type": "string",
                "description": "At the same time: {\"type\":\"string\",\"enum\":[\"x\"]}."}}}),
        ),
        (
            json!(true),
            json!({"type": "object", "description": "Any JSON value."}),
        ),
        (
            json!({"type": "null"}),
            json!({"type": "object", "description": "Always null."}),
        ),
    ] {
        assert_eq!(reduced(&schema), expected, "{schema}");
    }
}

#[test]
fn variants_become_one_object_with_the_properties_of_all() {
    let schema = json!({"type": "object", "oneOf": [
        {"type": "object", "description": "Round.", "required": ["kind", "radius"], "properties": {
            "kind": {"type": "string", "const": "circle"},
            "radius": {"type": "number", "description": "From the middle."}}},
        {"type": "object", "required": ["kind", "width"], "properties": {
            "kind": {"type": "string", "const": "square"},
            "width": {"type": "number", "description": "Of a side."},
            "name": {"type": "string", "description": "Its name."}}},
    ]});
    assert_eq!(
        reduced(&schema),
        json!({"type": "object", "required": ["kind"], "properties": {
            "kind": {"type": "string", "enum": ["circle", "square"]},
            "radius": {"type": "number", "description": "From the middle."},
            "width": {"type": "number", "description": "Of a side."},
            "name": {"type": "string", "description": "Its name."}},
            "description": "Has one of these forms: {kind: \"circle\", radius} (Round); \
                {kind: \"square\", width, name?}."})
    );
}

#[test]
fn what_variants_hold_under_one_name_is_not_lost() {
    let variant = |tag: &str, content: Value| {
        json!({"type": "object", "required": ["t", "c"], "properties": {
            "t": {"type": "string", "const": tag}, "c": content}})
    };
    let object = |name: &str| json!({"type": "object", "properties": {name: {"type": "integer"}}, "required": [name]});
    let schema = json!({"oneOf": [variant("A", object("a")), variant("B", object("b"))]});
    let content = &reduced(&schema)["properties"]["c"];
    assert_eq!(
        *content,
        json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}})
    );
    let schema = json!({"oneOf": [
        variant("A", json!({"type": "integer"})), variant("B", object("b")),
        variant("C", json!({"type": "array", "items": {"type": "string"}}))]});
    let content = &reduced(&schema)["properties"]["c"];
    let text = content["description"].as_str().unwrap();
    assert_eq!(content["type"], "integer");
    assert!(
        text.contains("\"b\"") && text.contains("\"items\""),
        "{text}"
    );
}

#[test]
fn unions_in_unions_keep_all_their_types() {
    let number_or_object = json!({"anyOf": [{"type": "object"}, {"type": "number"}]});
    let result = |schema: &Value| Reduced::of(schema).into_result();
    let mixed = result(&json!({"anyOf": [number_or_object, {"type": "null"}]}));
    assert!(mixed.required.is_empty() && mixed.description.contains("result itself"));
    let mixed = serde_json::to_value(mixed).unwrap();
    assert!(mixed["properties"]["value"].is_object(), "{mixed}");
    let scalars = result(&json!({"type": ["string", "integer"]}));
    assert_eq!(scalars.required, ["value"]);
    assert!(!scalars.description.contains("result itself"));
}

/// Whatever Rust's types become, a tool with it can be described.
#[test]
#[expect(dead_code, reason = "only their schemas are looked at")]
fn derived_schemas_obey_the_rules() {
    /// Everything.
    #[derive(Deserialize, JsonSchema)]
    struct Everything {
        number: f64,
        small: u8,
        optional: Option<i64>,
        character: char,
        pair: (String, u32),
        fixed: [u8; 4],
        map: BTreeMap<String, Vec<Option<Inner>>>,
        any: Value,
        plain: Plain,
        external: External,
        internal: Internal,
        adjacent: Adjacent,
        untagged: Option<Untagged>,
        nothing: (),
        #[serde(flatten)]
        flattened: Internal,
    }
    #[derive(Deserialize, JsonSchema)]
    struct Inner {
        #[schemars(range(min = 1, max = 5), description = "one to five")]
        stars: u8,
        #[schemars(regex(pattern = "^x"), length(max = 4))]
        text: String,
    }
    #[derive(Deserialize, JsonSchema)]
    enum Plain {
        A,
        /// The second.
        B,
    }
    #[derive(Deserialize, JsonSchema)]
    enum External {
        Unit,
        Tuple(u8, String),
        Struct { a: bool },
    }
    #[derive(Deserialize, JsonSchema)]
    #[serde(tag = "kind")]
    enum Internal {
        One { x: f64 },
        Two { y: String, x: Option<u8> },
    }
    #[derive(Deserialize, JsonSchema)]
    #[serde(tag = "t", content = "c")]
    enum Adjacent {
        One(u8),
        Two,
    }
    #[derive(Deserialize, JsonSchema)]
    #[serde(untagged)]
    enum Untagged {
        Number(f64),
        Text(String),
        Inner(Inner),
    }
    let input = schema::of_input::<Everything>();
    let reduced = reduced(&input);
    assert_eq!(reduced["properties"]["plain"]["enum"], json!(["A", "B"]));
    assert_eq!(reduced["properties"]["character"]["type"], "string");
    let output = schema::of_output::<Option<External>>();
    obeys(&serde_json::to_value(Reduced::of(&output).into_result()).unwrap());
}

#[test]
fn a_result_is_an_object_whatever_the_tool_gives() {
    let result = |schema: Value| {
        let result = Reduced::of(&schema).into_result();
        let result = serde_json::to_value(result).unwrap();
        obeys(&result);
        result
    };
    assert_eq!(
        result(json!({"type": "number", "description": "The sum."})),
        json!({"type": "object", "description": "The sum.", "required": ["value"], "properties": {
            "value": {"type": "number", "description": "The sum."}}})
    );
    let object = json!({"type": "object", "properties": {"a": {"type": "string"}},
        "required": ["a"]});
    assert_eq!(result(object.clone()), object);
    let nullable = result(json!({"type": ["object", "null"],
        "properties": {"a": {"type": "string"}}, "required": ["a"]}));
    assert_eq!(nullable["required"], Value::Null);
    let anything = result(json!({}));
    assert_eq!(anything["properties"]["value"]["type"], "object");
    assert_eq!(anything["required"], Value::Null);
    let text = anything["description"].as_str().unwrap();
    assert!(text.contains("result itself"), "{text}");
}
