//! The list of tools for a Lambda target of an `AgentCore` Gateway.

use lambda_tools::{Failure, Tool, Toolkit};
use lambda_tools_core::tool::agentcore::definitions;
use serde_json::{Value, json};
use test_support::agentcore::{assert_definitions, check_with_botocore};

async fn echo(input: Value) -> Result<Value, Failure> {
    Ok(input)
}

fn dynamic(id: impl Into<String>, schema: Value) -> Tool {
    Tool::dynamic(id.into(), "A tool.", schema, json!({}), echo)
}

fn toolkit() -> Toolkit {
    let text = || json!({"type": "string", "description": "A text."});
    let described = |schema: Value| {
        let mut schema = schema;
        schema["description"] = "A parameter.".into();
        json!({"type": "object", "properties": {"p": schema}})
    };
    let mut deep = text();
    for _ in 0..12 {
        deep = json!({"type": "array", "items": deep});
    }
    let parameters = [
        json!({}),
        json!({"type": "array"}),
        json!({"type": "array", "items": [text(), {"type": "integer"}]}),
        json!({"type": ["string", "integer", "null"], "minLength": 1}),
        json!({"type": "integer", "enum": [1, 2]}),
        json!({"enum": ["a", 1, null]}),
        json!({"const": 3}),
        json!({"type": "string", "format": "uri", "pattern": "^(?!x)"}),
        json!({"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5, "default": 1}),
        json!({"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"type": "integer"}}]}),
        json!({"allOf": [{"type": "string"}, {"minLength": 3}]}),
        json!({"oneOf": [{"type": "object", "properties": {"kind": {"const": "a"}, "a": text()},
                          "required": ["kind", "a"], "additionalProperties": false},
                         {"type": "object", "properties": {"kind": {"const": "b"}}}]}),
        json!({"prefixItems": [{"type": "number"}, text()], "minItems": 2, "maxItems": 2}),
        deep,
    ];
    let parameters = parameters.into_iter().enumerate();
    let mut tools: Vec<_> = parameters
        .map(|(index, schema)| dynamic(format!("Parameter.P{index}@1.0.0"), described(schema)))
        .collect();
    tools.extend([
        dynamic("Test.Open@0.9.0", json!({"type": "object"})),
        dynamic("Test.Open@1.0.0", json!({"type": "object"})),
        dynamic("Test.Nothing@1.0.0", json!({"type": "object"})).name("1-nothing"),
        dynamic("Test.Long@1.0.0", json!({"type": "object"})).description("word ".repeat(300)),
        dynamic(
            "Test.Names@1.0.0",
            json!({"type": "object", "additionalProperties": false, "required": ["$filter"],
                   "properties": {"$filter": text(), "user-id": text(), "plain": text()}}),
        ),
        dynamic(
            "Test.Root@1.0.0",
            json!({"type": "object", "properties": {"a": text(), "b": text()},
                   "anyOf": [{"required": ["a"]}, {"required": ["b"]}], "not": {"required": ["c"]}}),
        ),
    ]);
    Toolkit::new(tools).unwrap()
}

#[test]
fn the_list_obeys_the_rules_of_the_api() {
    let list = definitions(&toolkit());
    assert_definitions(&list);
    assert_eq!(list.len(), 19);
    assert!(definitions(&Toolkit::new([]).unwrap()).is_empty());
}

#[test]
fn a_tool_is_listed_with_what_its_schema_does_not_express() {
    let schema = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["count"],
        "properties": {
            "count": {"type": "integer", "minimum": 1, "description": "A count"},
            "kind": {"type": "string", "enum": ["a", "b"], "description": "A kind."},
            "items": {"type": "array", "description": "Anything."},
        },
        "not": {"required": ["c"]},
    });
    let toolkit = Toolkit::new([dynamic("T.T@1.0.0", schema)]).unwrap();
    let expected = json!([{
        "name": "T_T",
        "description": "A tool. The input: JSON Schema: {\"not\":{\"required\":[\"c\"]}}.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "count": {"type": "integer", "description": "A count. Must be at least 1."},
                "kind": {"type": "string", "description": "A kind. JSON Schema: {\"enum\":[\"a\",\"b\"]}."},
                "items": {"type": "array", "description": "Anything.",
                    "items": {"type": "object", "description": "Any JSON value."}},
            },
            "required": ["count"],
        },
    }]);
    assert_eq!(json!(definitions(&toolkit)), expected);
}

#[test]
fn a_definition_that_is_too_large_is_left_out() {
    let described = |length: usize| {
        let text = json!({"type": "string", "description": "x".repeat(length)});
        json!({"type": "object", "properties": {"a": text}})
    };
    let values: Value = (0..20_000).collect();
    let many = json!({"type": "object",
        "properties": {"a": {"enum": values, "description": "A number."}}});
    let listed = |schemas: Vec<Value>| {
        let tools = schemas.into_iter().enumerate();
        let tools = tools.map(|(index, schema)| dynamic(format!("T.T{index}@1.0.0"), schema));
        definitions(&Toolkit::new(tools).unwrap())
    };
    let list = listed(vec![described(250_000), described(270_000), many]);
    assert_eq!(list.len(), 1);
    assert_eq!(list[0]["name"], "T_T0");
    // Tools that together are larger than any API accepts.
    let count = listed(vec![described(250_000); 80]).len();
    assert!((60..70).contains(&count), "{count}");
}

#[test]
#[ignore = "needs botocore; run tests/all"]
fn botocore_accepts_the_list_and_nothing_else() {
    let list = definitions(&toolkit());
    check_with_botocore(&list).unwrap();
    for (place, wrong) in [
        ("/0/name", json!(1)),
        ("/0/description", json!("")),
        ("/0/inputSchema/type", json!("text")),
        ("/0/inputSchema/const", json!(1)),
    ] {
        let mut list = json!(list);
        let (parent, name) = place.rsplit_once('/').unwrap();
        list.pointer_mut(parent).unwrap()[name] = wrong;
        let list = list.as_array().unwrap();
        assert!(check_with_botocore(list).is_err(), "{place}");
    }
}
