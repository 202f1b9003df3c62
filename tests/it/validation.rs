//! Messages about wrong parameters: the rule in words, never the value.

use std::collections::BTreeMap;

use lambda_tools::{Failure, Tool, Toolkit};
use serde_json::{Value, json};

use crate::support::{call, function};

async fn nothing(_: Value) -> Result<Value, Failure> {
    Ok(Value::Null)
}

/// The messages for `input` under the schema of one parameter, `p`.
async fn messages(schema: Value, input: Value) -> BTreeMap<String, String> {
    let mut schema = schema;
    schema["description"] = "The parameter.".into();
    let schema = json!({"type": "object", "properties": {"p": schema}});
    messages_of(schema, json!({"p": input})).await
}

async fn messages_of(schema: Value, input: Value) -> BTreeMap<String, String> {
    let tool = Tool::dynamic("T.T@1.0.0", "A tool.", schema, Value::Null, nothing);
    let function = function(Toolkit::new([tool]).unwrap());
    let answer = call(&function, "T.T", input).await;
    assert_eq!(answer.status, 422, "{answer:?}");
    assert_eq!(answer.body["message"], "Some input parameters are invalid");
    serde_json::from_value(answer.body["parameter_errors"].clone()).unwrap()
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table")]
async fn one_rule_one_message() {
    let mark = "the-value-itself";
    for (schema, input, message) in [
        (json!({"type": "number"}), json!(mark), "Must be a number"),
        (json!({"type": "integer"}), json!(1.5), "Must be an integer"),
        (json!({"type": "boolean"}), json!(mark), "Must be a boolean"),
        (json!({"type": "array"}), json!(mark), "Must be an array"),
        (json!({"type": "object"}), json!(mark), "Must be an object"),
        (
            json!({"type": ["string", "null"]}),
            json!(1),
            "Must be null or a string",
        ),
        (json!({"minimum": 0}), json!(-1), "Must be at least 0"),
        (json!({"maximum": 10}), json!(11), "Must be at most 10"),
        (
            json!({"exclusiveMinimum": 0}),
            json!(0),
            "Must be greater than 0",
        ),
        (
            json!({"exclusiveMaximum": 1}),
            json!(1),
            "Must be less than 1",
        ),
        (
            json!({"multipleOf": 5}),
            json!(7),
            "Must be a multiple of 5",
        ),
        (
            json!({"enum": ["EUR", "USD"]}),
            json!(mark),
            "Must be one of: EUR, USD",
        ),
        (json!({"const": "EUR"}), json!(mark), "Must be EUR"),
        (json!({"minLength": 1}), json!(""), "Must not be empty"),
        (
            json!({"minLength": 30}),
            json!(mark),
            "Must be at least 30 characters long",
        ),
        (
            json!({"maxLength": 3}),
            json!(mark),
            "Must be at most 3 characters long",
        ),
        (
            json!({"pattern": "^[0-9]+$"}),
            json!(mark),
            "Must match the pattern ^[0-9]+$",
        ),
        (
            json!({"format": "date-time"}),
            json!(mark),
            "Must be a valid date-time",
        ),
        (
            json!({"format": "email"}),
            json!(mark),
            "Must be a valid email",
        ),
        (json!({"minItems": 1}), json!([]), "Must not be empty"),
        (
            json!({"minItems": 2}),
            json!([1]),
            "Must have at least 2 items",
        ),
        (
            json!({"maxItems": 1}),
            json!([1, 2]),
            "Must have at most 1 items",
        ),
        (
            json!({"uniqueItems": true}),
            json!([mark, mark]),
            "Must not have the same item twice",
        ),
        (
            json!({"minProperties": 1}),
            json!({}),
            "Must have at least 1 properties",
        ),
        (
            json!({"maxProperties": 0}),
            json!({"a": 1}),
            "Must have at most 0 properties",
        ),
        (
            json!({"not": {"type": "string"}}),
            json!(mark),
            "Is not allowed",
        ),
        (
            json!({"propertyNames": {"maxLength": 1}}),
            json!({"ab": 1}),
            "Has a wrong name in it: Must be at most 1 characters long",
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "number"}]}),
            json!([]),
            "Must be a string or a number",
        ),
        (
            json!({"oneOf": [{"minimum": 1}, {"minimum": 2}]}),
            json!(3),
            "Must be exactly one of the forms that the tool's definition describes",
        ),
    ] {
        let found = messages(schema.clone(), input).await;
        let expected = BTreeMap::from([("p".to_owned(), message.to_owned())]);
        assert_eq!(found, expected, "{schema}");
        assert!(!format!("{found:?}").contains(mark));
    }
}

#[tokio::test]
async fn several_rules_of_one_parameter_are_one_message() {
    let found = messages(json!({"minLength": 5, "pattern": "^[0-9]+$"}), json!("abc")).await;
    let message = "Must be at least 5 characters long; Must match the pattern ^[0-9]+$";
    let reversed = "Must match the pattern ^[0-9]+$; Must be at least 5 characters long";
    assert!(
        [message, reversed].contains(&found["p"].as_str()),
        "{found:?}"
    );
}

#[tokio::test]
async fn every_bad_parameter_at_any_depth_has_its_path() {
    let text = |about: &str| json!({"type": "string", "description": about});
    let schema = json!({
        "type": "object",
        "properties": {
            "address": {"type": "object", "description": "Where.", "additionalProperties": false,
                "properties": {"street": text("Street."), "city": text("City.")},
                "required": ["street", "city"]},
            "items": {"type": "array", "description": "What.", "items": {
                "type": "object", "properties": {"sku": text("Number.")}, "required": ["sku"]}},
            "query": text("Words."),
        },
        "required": ["query"],
        "additionalProperties": false,
    });
    let input = json!({
        "address": {"stret": "a", "city": 7},
        "items": [{"sku": "a"}, {}, {"sku": 3}],
        "qery": "x",
        "zzz": 1,
    });
    let expected = [
        ("address.city", "Must be a string"),
        ("address.street", "Is required"),
        (
            "address.stret",
            "Is not a known property; did you mean 'street'?",
        ),
        ("items[1].sku", "Is required"),
        ("items[2].sku", "Must be a string"),
        (
            "qery",
            "Is not a parameter of this tool; did you mean 'query'?",
        ),
        ("query", "Is required"),
        (
            "zzz",
            "Is not a parameter of this tool; it takes address, items, query",
        ),
    ];
    let expected = expected.map(|(path, text)| (path.to_owned(), text.to_owned()));
    assert_eq!(messages_of(schema, input).await, BTreeMap::from(expected));
}

#[tokio::test]
async fn the_form_that_was_meant_is_the_one_that_is_explained() {
    let form = |by: &str, field: &str| {
        json!({"type": "object", "properties": {
                   "by": {"const": by},
                   field: {"type": "string", "description": "A field."}},
               "required": ["by", field], "additionalProperties": false})
    };
    let schema = json!({"oneOf": [form("card", "token"), form("invoice", "address")]});
    let found = messages(schema.clone(), json!({"by": "card", "token": 5})).await;
    assert_eq!(
        found,
        BTreeMap::from([("p.token".into(), "Must be a string".into())])
    );
    let found = messages(schema.clone(), json!({"by": "cash"})).await;
    assert_eq!(
        found,
        BTreeMap::from([("p.by".into(), "Must be one of: card, invoice".into())])
    );
    let found = messages(schema.clone(), json!({})).await;
    assert_eq!(
        found,
        BTreeMap::from([("p.by".into(), "Is required".into())])
    );
    let found = messages(schema, json!("cash")).await;
    assert_eq!(found["p"], "Must be an object");
    let mut card = form("card", "token");
    card["properties"]["currency"] = json!({"enum": ["EUR", "USD"], "description": "Currency."});
    let schema = json!({"oneOf": [card, form("invoice", "address")]});
    let found = messages(
        schema,
        json!({"by": "card", "token": "t", "currency": "XXX"}),
    )
    .await;
    let expected = ("p.currency".into(), "Must be one of: EUR, USD".into());
    assert_eq!(found, BTreeMap::from([expected]));
}

#[tokio::test]
async fn messages_stay_few_and_short() {
    let schema = json!({"type": "array", "items": {"type": "string"}});
    let found = messages(schema, json!(vec![1; 5000])).await;
    assert_eq!(found.len(), 101);
    assert_eq!(found["…"], "More parameters are invalid");
    let schema = json!({"type": "object", "additionalProperties": false});
    let found = messages_of(schema, json!({"x".repeat(1_000_000): 1})).await;
    assert!(found.keys().all(|name| name.len() < 100));
    let schema = json!({"type": "object", "additionalProperties": false,
                        "properties": {"a": {"description": "A."}}});
    let many = |count: usize| {
        (0..count)
            .map(|i| (format!("k{i}"), json!(1)))
            .collect::<Value>()
    };
    let found = messages_of(schema.clone(), many(150_000)).await;
    assert_eq!(found.len(), 101);
    let found = messages_of(schema, many(100)).await;
    assert!(
        !found.contains_key("…"),
        "exactly as many as there is room for"
    );
}

#[tokio::test]
async fn what_the_type_refuses_is_named_without_its_value() {
    /// Takes an address.
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Lookup {
        /// Addresses to look up.
        #[schemars(with = "Vec<String>")]
        addresses: Vec<std::net::IpAddr>,
    }
    async fn lookup(input: Lookup) -> Result<usize, Failure> {
        Ok(input.addresses.len())
    }
    let function = function(Toolkit::new([Tool::new("Net.Lookup@1.0.0", lookup)]).unwrap());
    let answer = call(
        &function,
        "Net.Lookup",
        json!({"addresses": ["::1", "secret"]}),
    )
    .await;
    assert_eq!(answer.status, 422);
    let errors = json!({"addresses[1]": "Is not valid"});
    assert_eq!(answer.body["parameter_errors"], errors);
}
