//! Messages about invalid parameters: they describe the rule and never contain the value.

use std::collections::BTreeMap;

use lambda_tools::{Failure, Tool, Toolkit, testing::LambdaFunction};
use serde_json::{Value, json};

use crate::support::{call, errors_of, event, function};

/// Returns a function with a tool of this schema, which returns its input.
fn echoing(schema: Value) -> LambdaFunction {
    let echo = async |input: Value| Ok::<_, Failure>(input);
    let tool = Tool::dynamic("T.T@1.0.0", "A tool.", schema, json!({}), echo);
    function(Toolkit::new([tool]).unwrap())
}

/// Returns the messages for `input` under the schema of one parameter, `p`.
async fn messages(schema: Value, input: Value) -> BTreeMap<String, String> {
    let mut schema = schema;
    schema["description"] = "The parameter.".into();
    let schema = json!({"type": "object", "properties": {"p": schema}});
    messages_of(schema, json!({"p": input})).await
}

async fn messages_of(schema: Value, input: Value) -> BTreeMap<String, String> {
    let response = call(&echoing(schema), "T.T", input).await;
    assert_eq!(response.status, 422, "{response:?}");
    let message = "Some input parameters are invalid";
    assert_eq!(response.body["message"], message);
    serde_json::from_value(response.body["parameter_errors"].clone()).unwrap()
}

/// A schema, a value that it rejects, and the message.
const MESSAGES: &str = r#"
{"type": "integer"} | 1.5 | Must be an integer
{"type": "boolean"} | "MARK" | Must be a boolean
{"type": "array"} | "MARK" | Must be an array
{"type": "object"} | "MARK" | Must be an object
{"type": "array"} | "[{\"MARK\": \"1\"}]" | Must be an array; a text that contains an array was sent
{"type": "object"} | "{\"MARK\": 1}" | Must be an object; a text that contains an object was sent
{"type": "boolean"} | "true" | Must be a boolean; a text that contains a boolean was sent
{"type": "integer"} | "-1.5e3" | Must be an integer; a text that contains a number was sent
{"type": ["number", "null"]} | "null" | Must be null or a number; a text that contains null was sent
{"type": "object"} | "\"MARK\"" | Must be an object
{"type": "number"} | "10 MARK" | Must be a number
{"type": "number"} | ["10"] | Must be a number
{"anyOf": [{"type": "array"}, {"type": "null"}]} | "[1]" | Must be an array or null; a text that contains an array was sent
{"anyOf": [{"type": "array", "minItems": 1}, {"type": "object"}]} | "[]" | Must be an array or an object; a text that contains an array was sent
{"minimum": 0} | -1 | Must be at least 0
{"maximum": 10} | 11 | Must be at most 10
{"exclusiveMinimum": 0} | 0 | Must be greater than 0
{"exclusiveMaximum": 1} | 1 | Must be less than 1
{"multipleOf": 5} | 7 | Must be a multiple of 5
{"enum": ["EUR", "USD"]} | "MARK" | Must be one of: EUR, USD
{"const": "EUR"} | "MARK" | Must be EUR
{"minLength": 1} | "" | Must not be empty
{"minLength": 30} | "MARK" | Must be at least 30 characters long
{"maxLength": 3} | "MARK" | Must be at most 3 characters long
{"pattern": "^[0-9]+$"} | "MARK" | Must match the pattern ^[0-9]+$
{"format": "date-time"} | "MARK" | Must be a valid date-time, such as 2023-10-05T12:00:00Z
{"format": "email"} | "MARK" | Must be a valid email
{"minItems": 1} | [] | Must not be empty
{"minItems": 2} | [1] | Must have at least 2 items
{"maxItems": 1} | [1, 2] | Must have at most 1 item
{"uniqueItems": true} | ["MARK", "MARK"] | Must not contain the same item twice
{"minProperties": 1} | {} | Must have at least 1 property
{"maxProperties": 0} | {"a": 1} | Must have at most 0 properties
{"not": {"type": "string"}} | "MARK" | Is not allowed
{"propertyNames": {"maxLength": 1}} | {"ab": 1} | Has an invalid property name: Must be at most 1 character long
{"anyOf": [{"type": "string"}, {"type": "number"}]} | [] | Must be a string or a number
{"oneOf": [{"minimum": 1}, {"minimum": 2}]} | 3 | Must be exactly one of the forms that the tool's definition describes
"#;

#[tokio::test]
async fn each_rule_has_its_own_message() {
    let rows = MESSAGES.lines().filter(|line| !line.is_empty());
    for row in rows {
        let cells: Vec<_> = row.split(" | ").collect();
        let [schema, input, message] = cells[..] else {
            panic!("{row}");
        };
        let parse = |json: &str| serde_json::from_str(json).unwrap();
        let errors = messages(parse(schema), parse(input)).await;
        let expected = BTreeMap::from([("p".to_owned(), message.to_owned())]);
        assert_eq!(errors, expected, "{schema}");
        assert!(!format!("{errors:?}").contains("MARK"));
    }
}

#[tokio::test]
async fn several_violations_of_one_parameter_are_joined_into_one_message() {
    let errors = messages(json!({"minLength": 5, "pattern": "^[0-9]+$"}), json!("abc")).await;
    let mut parts: Vec<_> = errors["p"].split("; ").collect();
    parts.sort_unstable();
    let [length, pattern] = [
        "Must be at least 5 characters long",
        "Must match the pattern ^[0-9]+$",
    ];
    assert_eq!(parts, [length, pattern]);
}

#[tokio::test]
async fn every_invalid_parameter_is_reported_with_its_path() {
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
    let expected = json!({
        "address.city": "Must be a string",
        "address.street": "Is required",
        "address.stret": "Is not a known property; did you mean 'street'?",
        "items[1].sku": "Is required",
        "items[2].sku": "Must be a string",
        "qery": "Is not a parameter of this tool; did you mean 'query'?",
        "query": "Is required",
        "zzz": "Is not a parameter of this tool; it takes address, items, query",
    });
    assert_eq!(json!(messages_of(schema, input).await), expected);
}

#[tokio::test]
async fn messages_describe_the_branch_that_the_input_resembles() {
    let branch = |by: &str, field: &str| {
        json!({"type": "object", "properties": {
                   "by": {"const": by},
                   field: {"type": "string", "description": "A field."}},
               "required": ["by", field], "additionalProperties": false})
    };
    let mut card = branch("card", "token");
    card["properties"]["currency"] = json!({"enum": ["EUR", "USD"], "description": "Currency."});
    let schema = json!({"oneOf": [card, branch("invoice", "address")]});
    let wrong_token = json!({"by": "card", "token": 5});
    let one_of = "Must be one of: card, invoice";
    let wrong_currency = json!({"by": "card", "token": "t", "currency": "XXX"});
    for (input, path, message) in [
        (wrong_token, "p.token", "Must be a string"),
        (json!({"by": "cash"}), "p.by", one_of),
        (json!({}), "p.by", "Is required"),
        (json!("cash"), "p", "Must be an object"),
        (wrong_currency, "p.currency", "Must be one of: EUR, USD"),
    ] {
        let errors = messages(schema.clone(), input).await;
        assert_eq!(json!(errors), json!({path: message}));
    }
}

#[tokio::test]
async fn the_number_and_the_length_of_messages_are_limited() {
    let schema = json!({"type": "array", "items": {"type": "string"}});
    let errors = messages(schema, json!(vec![1; 500])).await;
    assert_eq!(errors.len(), 101);
    assert_eq!(errors["…"], "More parameters are invalid");
    let schema = json!({"type": "object", "additionalProperties": false});
    let errors = messages_of(schema, json!({"x".repeat(1_000_000): 1})).await;
    assert!(errors.keys().all(|name| name.len() < 100));
    let schema = json!({"type": "object", "additionalProperties": false,
                        "properties": {"a": {"description": "A."}}});
    let many = |count: usize| -> Value { (0..count).map(|i| (format!("k{i}"), 1)).collect() };
    let errors = messages_of(schema.clone(), many(500)).await;
    assert_eq!(errors.len(), 101);
    let errors = messages_of(schema, many(100)).await;
    assert!(!errors.contains_key("…"), "exactly the maximum number");
}

/// Numbers of several types.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Count {
    /// A small number.
    small: Option<u8>,
    /// A signed number.
    signed: Option<i64>,
    /// A number other than 0.
    nonzero: Option<std::num::NonZeroI32>,
}

async fn count(input: Count) -> Result<i64, Failure> {
    let nonzero = input.nonzero.map_or(0, i32::from);
    Ok(i64::from(input.small.unwrap_or(0)) + input.signed.unwrap_or(0) + i64::from(nonzero))
}

#[tokio::test]
async fn the_message_about_an_integer_out_of_range_contains_the_range() {
    let signed = "Must be an integer between -9223372036854775808 and 9223372036854775807";
    let nonzero = "Must be an integer between -2147483648 and 2147483647 other than 0";
    for (field, number, message) in [
        ("small", json!(300), "Must be at most 255"),
        ("signed", json!(u64::MAX), signed),
        ("signed", json!(1e300), signed),
        ("nonzero", json!(3_000_000_000_u32), nonzero),
    ] {
        let errors = errors_of::<Count>(json!({field: number})).await;
        assert_eq!(errors, json!({field: message}));
    }
}

#[tokio::test]
async fn integers_of_64_bits_are_exact_and_other_numbers_are_floats() {
    let integer = json!({"type": "integer", "description": "An integer."});
    let number = json!({"type": "number", "description": "A number."});
    let list = json!({"type": "array", "items": integer, "description": "Integers."});
    let schema = json!({"type": "object", "properties": {"list": list, "any": number}});
    let counting = function(Toolkit::new([Tool::new("T.T@1.0.0", count)]).unwrap());
    let echoing = echoing(schema);
    let respond = async |function: &LambdaFunction, input: &str| {
        let body = format!(r#"{{"tool_id": "T.T", "input": {input}}}"#);
        let event = event("POST", "/tools/call", &body);
        function.respond(&event).await.unwrap().body
    };
    for (number, exact) in [
        ("9007199254740993", "9007199254740993"),
        ("9223372036854775807", "9223372036854775807"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("9007199254740992.0", "9007199254740992"),
        ("15.0", "15"),
        ("50e-1", "5"),
        ("-0.0", "0"),
    ] {
        let body = respond(&counting, &format!(r#"{{"signed": {number}}}"#)).await;
        assert_eq!(body["value"].to_string(), exact, "{number}: {body}");
        let input = format!(r#"{{"any": 0.5, "list": [7, {number}]}}"#);
        let body = respond(&echoing, &input).await;
        let value = &body["value"];
        assert_eq!(value["list"][1].to_string(), exact, "{body}");
        assert_eq!(value["any"], 0.5, "{body}");
    }
    let large = r#"{"any": 1e23, "list": [18446744073709551615]}"#;
    let body = respond(&echoing, large).await;
    assert_eq!(body["value"], json!({"any": 1e23, "list": [u64::MAX]}));
    let body = respond(&echoing, r#"{"any": 100000000000000000000}"#).await;
    assert_eq!(body["value"]["any"], 1e20, "{body}");
    // -0 is the integer 0.
    let body = respond(&counting, r#"{"signed": -0, "small": -0.0}"#).await;
    assert_eq!(body["value"], 0, "{body}");
    // Several integers round to a float of this size.
    for number in ["9007199254740994.0", "1e18", "100000000000000000000"] {
        let body = respond(&counting, &format!(r#"{{"signed": {number}}}"#)).await;
        assert!(body["parameter_errors"]["signed"].is_string(), "{body}");
    }
}
