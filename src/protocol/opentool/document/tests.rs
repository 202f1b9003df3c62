use proptest::{collection, prelude::*, sample::select};
use serde_json::{Value, json};

fn reduced(schema: &Value) -> Value {
    let reduced = super::reduced(schema.clone()).into();
    assert_valid(&reduced);
    reduced
}

/// Asserts the format's rules: one type, no unknown keywords, choices of that type.
fn assert_valid(schema: &Value) {
    const KEYWORDS: &str = "type description properties items enum required";
    let object = schema.as_object().unwrap();
    let is_known = |name: &String| KEYWORDS.split(' ').any(|it| it == name);
    assert!(object.keys().all(is_known), "{schema}");
    let kind = schema["type"].as_str().unwrap();
    let values: Vec<_> = schema["enum"].as_array().into_iter().flatten().collect();
    for (place, value) in values.iter().enumerate() {
        assert!(!values[..place].contains(value), "{schema}");
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
        let is_property = properties.is_some_and(|it| it.contains_key(name.as_str().unwrap()));
        assert!(is_property, "{schema}");
    }
    for (_, property) in properties.into_iter().flatten() {
        assert_valid(property);
    }
    schema.get("items").into_iter().for_each(assert_valid);
}

/// Schemas, each with the reduced schema below it.
const SENTENCES: &str = r#"
{"type": "object", "description": "A query.", "properties": {"words": {"type": "array", "items": {"type": "string"}, "description": "Words."}, "order": {"type": "string", "enum": ["up", "down"]}, "deep": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}, "required": ["words"]}
    {"type": "object", "description": "A query.", "properties": {"words": {"type": "array", "items": {"type": "string"}, "description": "Words."}, "order": {"type": "string", "enum": ["up", "down"]}, "deep": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}, "required": ["words"]}
{"type": "string", "description": "A code", "pattern": "^[A-Z]{3}$"}
    {"type": "string", "description": "A code. Must match the pattern `^[A-Z]{3}$`."}
{"type": "integer", "minimum": 1, "maximum": 9, "description": "Digits!"}
    {"type": "integer", "description": "Digits! Must be at least 1. Must be at most 9."}
{"type": ["string", "integer", "null"]}
    {"type": "string", "description": "May also be integer or null."}
{"type": ["null", "integer"]}
    {"type": "integer", "description": "May also be null."}
{"anyOf": [{"type": "null"}, {"type": "number"}, {"type": "string"}]}
    {"type": "number", "description": "May also be string or null."}
{"type": "object", "additionalProperties": {"type": "integer"}}
    {"type": "object", "description": "Any other property: integer."}
{"const": "yes"}
    {"type": "string", "enum": ["yes"]}
{"const": {"a": 1}}
    {"type": "object", "description": "JSON Schema: {\"const\":{\"a\":1}}."}
{"enum": ["a", 1, null]}
    {"type": "string", "description": "May also be integer or null. JSON Schema: {\"enum\":[\"a\",1,null]}."}
{"enum": [1, 2.5]}
    {"type": "integer", "description": "May also be number. JSON Schema: {\"enum\":[1,2.5]}."}
{"type": "number", "enum": [1, 2.5]}
    {"type": "number", "enum": [1, 2.5]}
{"oneOf": [{"const": "a", "description": "The first."}, {"const": "b"}]}
    {"type": "string", "enum": ["a", "b"], "description": "\"a\": The first."}
{"oneOf": [{"const": "a"}, {"const": "b", "deprecated": true}]}
    {"type": "string", "enum": ["a", "b"], "description": "JSON Schema: {\"oneOf\":[{\"const\":\"a\"},{\"const\":\"b\",\"deprecated\":true}]}."}
{"anyOf": [{"enum": ["a", "b"]}, {"enum": ["b", "c"]}]}
    {"type": "string", "enum": ["a", "b", "c"]}
{"allOf": [{"enum": ["a", "b"]}, {"enum": ["b", "c"]}]}
    {"type": "string", "description": "JSON Schema: {\"allOf\":[{\"enum\":[\"a\",\"b\"]},{\"enum\":[\"b\",\"c\"]}]}."}
{"type": ["string", "integer"], "anyOf": [{"type": "integer"}, {"type": "null"}]}
    {"type": "string", "description": "May also be integer. JSON Schema: {\"anyOf\":[{\"type\":\"integer\"}]}."}
{"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}]}
    {"type": "array", "description": "JSON Schema: {\"prefixItems\":[{\"type\":\"string\"},{\"type\":\"number\"}]}."}
{"type": "string", "default": "x", "format": "date", "examples": ["y"]}
    {"type": "string", "description": "Default: \"x\". Format: date. Examples: \"y\"."}
{"type": "array", "minItems": 1, "contains": {"minimum": 5}, "minContains": 2}
    {"type": "array", "description": "Must have at least 1 item. JSON Schema: {\"contains\":{\"minimum\":5},\"minContains\":2}."}
{"enum": [[1], [2]]}
    {"type": "array", "description": "JSON Schema: {\"enum\":[[1],[2]]}."}
{"type": ["string", "null"], "enum": ["a", null]}
    {"type": "string", "enum": ["a"], "description": "May also be null."}
{"anyOf": [{"type": "string", "pattern": "x"}, {"type": "integer"}]}
    {"type": "string", "description": "May also be integer. JSON Schema: {\"anyOf\":[{\"type\":\"string\",\"pattern\":\"x\"},{\"type\":\"integer\"}]}."}
{"description": "Where.", "anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "string"}, "description": "Places."}]}
    {"type": "array", "items": {"type": "string"}, "description": "Where. May also be null."}
{"type": "object", "required": ["x"], "properties": {"a": {"type": "string"}}}
    {"type": "object", "properties": {"a": {"type": "string"}}, "description": "JSON Schema: {\"required\":[\"x\"]}."}
{"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    {"type": "object", "description": "JSON Schema: {\"anyOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}]}."}
true
    {"type": "object", "description": "Any JSON value."}
{"type": "null"}
    {"type": "object", "description": "Always null."}
"#;

fn pairs(text: &str) -> Vec<[Value; 2]> {
    let lines = text.lines().filter(|line| !line.is_empty());
    let values: Vec<Value> = lines.map(|it| serde_json::from_str(it).unwrap()).collect();
    let pairs = values.chunks(2);
    pairs.map(|it| [it[0].clone(), it[1].clone()]).collect()
}

#[test]
fn unsupported_keywords_become_sentences() {
    for pair in pairs(SENTENCES) {
        assert_eq!(reduced(&pair[0]), pair[1], "{}", pair[0]);
    }
}

#[test]
fn variants_become_one_object_with_all_their_properties() {
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
            "description": format!("JSON Schema: {}.", json!({"oneOf": schema["oneOf"]}))})
    );
}

/// schemars derives such a schema from two flattened enums, whose properties are the parameters.
#[test]
fn all_of_becomes_one_object_with_all_its_properties() {
    let variant = |tag: &str, value: &str, name: &str| {
        json!({"type": "object", "required": [tag, name], "properties": {
            tag: {"type": "string", "const": value}, name: {"type": "integer"}}})
    };
    let schema = json!({"type": "object", "required": ["z"], "properties": {"z": {"type": "integer"}},
        "allOf": [
            {"oneOf": [variant("t", "A", "a"), variant("t", "B", "b")]},
            {"oneOf": [variant("u", "C", "c"), variant("u", "D", "z")]}]});
    let reduced = reduced(&schema);
    let integer = json!({"type": "integer"});
    assert_eq!(
        reduced["properties"],
        json!({"z": integer, "a": integer, "b": integer, "c": integer,
            "t": {"type": "string", "enum": ["A", "B"]}, "u": {"type": "string", "enum": ["C", "D"]}})
    );
    assert_eq!(reduced["required"], json!(["z", "t", "u"]));
    let quoted = format!("JSON Schema: {}.", json!({"allOf": schema["allOf"]}));
    assert_eq!(reduced["description"], quoted);
}

#[test]
fn properties_with_the_same_name_in_several_variants_are_merged() {
    let variant = |tag: &str, content: Value| {
        json!({"type": "object", "required": ["t", "c"], "properties": {
            "t": {"type": "string", "const": tag}, "c": content}})
    };
    let object = |name: &str| json!({"type": "object", "properties": {name: {"type": "integer"}}, "required": [name]});
    let schema = json!({"oneOf": [variant("A", object("a")), variant("B", object("b"))]});
    let content = &reduced(&schema)["properties"]["c"];
    let both = json!({"a": {"type": "integer"}, "b": {"type": "integer"}});
    assert_eq!(content["properties"], both);
    assert_eq!(content.get("required"), None);
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

/// Schemas of outputs, each with fields of the schema of the result below it.
const RESULTS: &str = r#"
{"type": "number", "description": "The sum."}
 {"description": "The sum.", "required": ["value"], "properties": {"value": {"type": "number", "description": "The sum."}}}
{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
 {"properties": {"a": {"type": "string"}}, "required": ["a"], "description": null}
{"type": ["object", "null"], "properties": {"a": {"type": "string"}}, "required": ["a"]}
 {"required": null}
{"type": ["string", "integer"]}
 {"required": ["value"], "description": "May also be integer."}
{}
 {"required": null, "description": "Any JSON value. If the value is an object, it is returned as the result itself, not wrapped in `value`.", "properties": {"value": {"type": "object", "description": "Any JSON value."}}}
{"anyOf": [{"anyOf": [{"type": "object"}, {"type": "number"}]}, {"type": "null"}]}
 {"required": null, "description": "May also be number or null. If the value is an object, it is returned as the result itself, not wrapped in `value`.", "properties": {"value": {"type": "object", "description": "May also be number or null."}}}
"#;

#[test]
fn a_result_is_an_object_whatever_the_tool_returns() {
    for pair in pairs(RESULTS) {
        let result = super::result_schema(pair[0].clone()).into();
        assert_valid(&result);
        assert_eq!(result["type"], "object", "{}", pair[0]);
        for (name, expected) in pair[1].as_object().unwrap() {
            assert_eq!(result[name], *expected, "{}", pair[0]);
        }
    }
}

/// Generates any value under any keyword, weighted towards plausible schemas.
fn any_schema() -> impl Strategy<Value = Value> {
    const KEYWORDS: &str = "type description properties items enum const required oneOf anyOf \
        allOf not if prefixItems additionalProperties patternProperties minimum pattern default \
        examples title a b";
    const WORDS: &str = "object array string number integer boolean null a b";
    let one_of = |words: &'static str| select(words.split(' ').collect::<Vec<_>>());
    let leaf = prop_oneof![
        4 => one_of(WORDS).prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i8>().prop_map(Value::from),
        1 => Just(json!(0.5)),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(8, 96, 6, move |inner| {
        let several = collection::vec(inner.clone(), 0..4);
        let member = prop_oneof![
            3 => (one_of(KEYWORDS), inner),
            2 => (one_of("oneOf anyOf allOf enum required type"),
                several.clone().prop_map(Value::from)),
        ];
        let member = member.prop_map(|(keyword, value)| (keyword.to_owned(), value));
        prop_oneof![
            4 => collection::vec(member, 0..6).prop_map(|it| Value::Object(it.into_iter().collect())),
            1 => several.prop_map(Value::from),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Also the deepest definitions that can be read from JSON.
    #[test]
    fn any_schema_becomes_valid_and_deep_ones_neither_panic_nor_grow_out_of_bounds(
        keywords in collection::vec(
            select(vec!["properties", "items", "oneOf", "anyOf", "allOf", "not"]), 0..60),
        schema in any_schema(),
    ) {
        let result = Value::from(super::result_schema(schema.clone()));
        assert_valid(&result);
        prop_assert_eq!(&result["type"], "object");
        reduced(&schema);
        let deep = keywords.iter().fold(schema, |inner, keyword| match *keyword {
            "properties" => json!({"type": "object", "properties": {"a": inner}}),
            "items" | "not" => json!({(*keyword): inner}),
            _ => json!({(*keyword): [inner, {"properties": {"a": {"const": 1}}}]}),
        });
        let size = deep.to_string().len();
        let reduced = reduced(&deep).to_string().len();
        prop_assert!(reduced <= (keywords.len() + 20) * (size + 100), "{size} became {reduced}");
    }
}
