//! Models' calls, and their results as each API takes them; lists of tools of any server.

use std::time::{Duration, Instant};

use lambda_tools::{
    ToolDefinition,
    models::{ModelApi, ModelTools},
};
use serde_json::{Map, Value, json};
use test_support::models::{assert_list, check_with_sdks, functions};

const APIS: [(&str, ModelApi); 5] = [
    ("openai", ModelApi::OpenAi { strict: true }),
    (
        "openai-responses",
        ModelApi::OpenAiResponses { strict: true },
    ),
    ("anthropic", ModelApi::Anthropic),
    ("gemini", ModelApi::Gemini),
    ("bedrock", ModelApi::Bedrock),
];

/// Returns the reply of a model that calls these tools, with text before the calls.
fn reply(api: ModelApi, calls: &[(&str, Value)]) -> Value {
    let call = |(index, (name, input)): (usize, &(&str, Value))| {
        let id = format!("call-{index}");
        match api {
            ModelApi::OpenAi { .. } => json!({"id": id, "type": "function",
                "function": {"name": name, "arguments": input.to_string()}}),
            ModelApi::OpenAiResponses { .. } => json!({"type": "function_call",
                "id": format!("fc_{id}"), "call_id": id, "name": name,
                "arguments": input.to_string(), "status": "completed"}),
            ModelApi::Anthropic => {
                json!({"type": "tool_use", "id": id, "name": name, "input": input})
            }
            ModelApi::Gemini => json!({"functionCall": {"id": id, "name": name, "args": input}}),
            _ => json!({"toolUse": {"toolUseId": id, "name": name, "input": input}}),
        }
    };
    let calls = calls.iter().enumerate().map(call);
    let text = match api {
        ModelApi::OpenAi { .. } => {
            let calls: Value = calls.collect();
            return json!({"role": "assistant", "content": "I will.", "tool_calls": calls});
        }
        ModelApi::OpenAiResponses { .. } => json!({"type": "message", "role": "assistant",
            "id": "m", "status": "completed",
            "content": [{"type": "output_text", "text": "I will.", "annotations": []}]}),
        ModelApi::Anthropic => json!({"type": "text", "text": "I will."}),
        _ => json!({"text": "I will."}),
    };
    let parts: Value = [text].into_iter().chain(calls).collect();
    match api {
        ModelApi::OpenAiResponses { .. } => parts,
        ModelApi::Anthropic => json!({"id": "m", "type": "message", "role": "assistant",
            "model": "m", "content": parts, "stop_reason": "tool_use", "stop_sequence": null,
            "usage": {"input_tokens": 1, "output_tokens": 1}}),
        ModelApi::Gemini => json!({"role": "model", "parts": parts}),
        _ => json!({"role": "assistant", "content": parts}),
    }
}

/// Returns the results in messages: the id of the call, the text, and whether it is marked as an
/// error.
fn results(api: ModelApi, messages: &[Value]) -> Vec<(String, String, Option<bool>)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let result = |it: &Value| match api {
        ModelApi::OpenAi { .. } => (text(&it["tool_call_id"]), text(&it["content"]), None),
        ModelApi::OpenAiResponses { .. } => (text(&it["call_id"]), text(&it["output"]), None),
        ModelApi::Anthropic => {
            let is_error = Some(it["is_error"] == true);
            (text(&it["tool_use_id"]), text(&it["content"]), is_error)
        }
        ModelApi::Gemini => {
            let it = &it["functionResponse"];
            let response = &it["response"];
            let error = response["error"].as_str().map(str::to_owned);
            let shown = error.clone().unwrap_or_else(|| match &response["output"] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
            (text(&it["id"]), shown, Some(error.is_some()))
        }
        _ => {
            let it = &it["toolResult"];
            let shown = text(&it["content"][0]["text"]);
            (text(&it["toolUseId"]), shown, Some(it["status"] == "error"))
        }
    };
    let results = match api {
        ModelApi::OpenAi { .. } | ModelApi::OpenAiResponses { .. } => messages,
        ModelApi::Gemini => blocks(messages, "parts"),
        _ => blocks(messages, "content"),
    };
    results.iter().map(result).collect()
}

fn blocks<'a>(messages: &'a [Value], name: &str) -> &'a [Value] {
    let [message] = messages else {
        panic!("one message has all results: {messages:?}")
    };
    assert_eq!(message["role"], "user");
    message[name].as_array().unwrap()
}

/// Returns the definitions in a list of a server.
fn definitions(list: Value) -> Vec<ToolDefinition> {
    serde_json::from_value(list).unwrap()
}

/// Returns the definitions of tools with these input schemas.
fn definitions_with(schemas: &[Value]) -> Vec<ToolDefinition> {
    let tool = |(number, schema): (usize, &Value)| {
        json!({"id": format!("T.T{number}@1.0.0"), "name": format!("T_T{number}"),
            "description": "A tool.", "version": "1.0.0", "input_schema": schema})
    };
    definitions(schemas.iter().enumerate().map(tool).collect())
}

fn calculator() -> Vec<ToolDefinition> {
    let number = json!({"type": "number"});
    definitions(
        json!([{"id": "Calculator.Add@1.0.0", "name": "Calculator_Add",
        "description": "Adds two numbers together.", "version": "1.0.0",
        "input_schema": {"type": "object", "required": ["a", "b"],
            "properties": {"a": number, "b": number}}}]),
    )
}

/// Returns calls, the result of each if its name is known, and the text that the model gets.
fn calls() -> [(&'static str, Result<Value, &'static str>, &'static str); 7] {
    let add = "Calculator_Add";
    [
        (add, Ok(json!(15)), "15"),
        (add, Ok(json!({"sum": 15})), r#"{"sum":15}"#),
        (add, Ok(json!("fifteen")), "fifteen"),
        (add, Ok(json!(" ")), r#"" ""#),
        (add, Err("b: Is required"), "b: Is required"),
        (add, Err(""), "The tool failed."),
        (
            "Calculator_Ad",
            Ok(Value::Null),
            "There is no tool with this name. Did you mean Calculator_Add?",
        ),
    ]
}

/// Returns a model's reply with these calls and the messages with their results, for each API.
fn replies_and_messages() -> Vec<Value> {
    let mut lines = Vec::new();
    for (name, api) in APIS {
        let input = json!({"a": 10, "b": 5});
        let made = calls().map(|(tool, ..)| (tool, input.clone()));
        let reply = reply(api, &made);
        let tools = ModelTools::new(api, calculator());
        let known = calls();
        let run = tools.calls(&reply).into_iter().zip(&known);
        let run = run.map(|(call, (_, result, _))| {
            let result = match &call.request {
                Ok(request) => {
                    assert_eq!(request.tool_id, "Calculator.Add@1.0.0");
                    assert_eq!(request.input, input);
                    result.clone().map_err(str::to_owned)
                }
                Err(message) => Err(message.clone()),
            };
            (call, result)
        });
        let messages = tools.messages(run);
        let results = results(api, &messages);
        assert_eq!(results.len(), known.len());
        for (index, ((tool, result, expected), (id, text, is_error))) in
            known.iter().zip(&results).enumerate()
        {
            assert_eq!(*id, format!("call-{index}"));
            let is_failure = result.is_err() || *tool != "Calculator_Add";
            assert!(
                is_error.is_none_or(|it| it == is_failure),
                "{api:?}: {text}"
            );
            // Gemini takes values and messages of every kind as they are.
            let is_raw = api == ModelApi::Gemini && text.trim().is_empty();
            assert!(
                is_raw || text == expected,
                "{api:?}: {text} instead of {expected}"
            );
        }
        lines.push(json!({"api": name, "reply": reply, "messages": messages}));
    }
    lines
}

#[test]
fn every_result_is_a_message_that_the_model_can_act_on() {
    assert_eq!(replies_and_messages().len(), APIS.len());
}

#[test]
fn a_reply_without_calls_has_no_messages() {
    for (_, api) in APIS {
        let tools = ModelTools::new(api, calculator());
        for silent in [
            reply(api, &[]),
            json!({"role": "assistant", "content": "Nothing to do."}),
        ] {
            assert!(tools.calls(&silent).is_empty(), "{silent}");
        }
        assert_eq!(tools.messages([]), [Value::Null; 0]);
    }
}

#[test]
#[ignore = "needs the SDKs of models' APIs; run tests/all"]
fn the_sdks_accept_the_results() {
    let lines = replies_and_messages();
    check_with_sdks(&lines).unwrap();
    // A result of another call.
    let mut wrong = lines[0].clone();
    wrong["messages"][0]["tool_call_id"] = "call-9".into();
    assert!(check_with_sdks(&[wrong]).is_err());
}

#[test]
fn a_call_is_found_in_every_part_of_a_response() {
    for (_, api) in APIS {
        let tools = ModelTools::new(api, calculator());
        let whole = reply(api, &[("Calculator_Add", json!({"a": 1, "b": 2}))]);
        let (list, response) = match api {
            ModelApi::OpenAi { .. } => (
                whole["tool_calls"].clone(),
                json!({"choices": [{"message": whole}]}),
            ),
            ModelApi::OpenAiResponses { .. } => (whole.clone(), json!({"output": whole})),
            ModelApi::Gemini => (
                whole["parts"].clone(),
                json!({"candidates": [{"content": whole}]}),
            ),
            ModelApi::Bedrock => (
                whole["content"].clone(),
                json!({"output": {"message": whole}}),
            ),
            _ => (whole["content"].clone(), whole.clone()),
        };
        let single = list.as_array().unwrap().last().unwrap().clone();
        for part in [whole, list, response, single] {
            let calls = tools.calls(&part);
            assert_eq!(calls.len(), 1, "{part}");
            let request = calls[0].request.as_ref().unwrap();
            assert_eq!(request.tool_id, "Calculator.Add@1.0.0");
            assert_eq!(request.input, json!({"a": 1, "b": 2}));
        }
    }
}

#[test]
fn arguments_that_are_not_an_object_are_a_message() {
    let tools = ModelTools::new(ModelApi::OpenAi { strict: false }, calculator());
    for (arguments, expected) in [
        ("{\"a\": 1", Err("The arguments are not valid JSON: ")),
        ("[1]", Err("The arguments must be a JSON object.")),
        ("", Ok(json!({}))),
        ("{\"a\": 1, \"b\": 2}", Ok(json!({"a": 1, "b": 2}))),
    ] {
        let call = json!({"id": "1", "type": "function",
            "function": {"name": "Calculator_Add", "arguments": arguments}});
        let request = tools.calls(&call).swap_remove(0).request;
        match (request, expected) {
            (Ok(request), Ok(expected)) => assert_eq!(request.input, expected),
            (Err(message), Err(start)) => assert!(message.starts_with(start), "{message}"),
            (request, _) => panic!("{arguments}: {request:?}"),
        }
    }
}

/// Definitions of other servers have references, earlier drafts, and names of any kind.
#[test]
fn tools_of_any_server_are_listed_and_called() {
    let long = "a".repeat(100);
    let tool = |name: &str, schema: Value| json!({"id": name, "name": name, "description": "", "version": "", "input_schema": schema});
    let pet = json!({"type": "object", "additionalProperties": false, "required": ["name"],
        "properties": {"name": {"type": "string"}, "child": {"$ref": "#/definitions/Pet"}}});
    let definitions = definitions(json!([
        tool(
            "find.pets",
            json!({"$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object", "additionalProperties": false, "required": ["$pet"],
            "properties": {"$pet": {"$ref": "#/definitions/Pet"},
                "pair": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}},
            "definitions": {"Pet": pet}})
        ),
        tool(
            &long,
            json!({"$ref": "#/$defs/In", "$defs": {"In": {"type": "object",
            "properties": {"a": {"$ref": "https://a.example/s"}}}}})
        ),
        tool(
            &long.replace('a', "b"),
            json!({"type": "object", "anyOf": [
            {"$ref": "#/$defs/A"}, {"$ref": "#"}],
            "$defs": {"A": {"type": "object", "properties": {"x": {"type": "string"}}}}})
        ),
    ]));
    for (name, api) in APIS {
        let tools = ModelTools::new(api, definitions.clone());
        assert_list(name, tools.list());
        let listed = json!(tools.list()).to_string();
        let quoted = |start: &str| {
            let from = listed.find(&format!("\"{start}")).unwrap() + 1;
            listed[from..].split('"').next().unwrap().to_owned()
        };
        let parameter = if name.starts_with("openai") {
            "$pet".to_owned()
        } else if name == "gemini" {
            quoted("__pet_")
        } else {
            quoted("_pet_")
        };
        let pet = json!({"name": "Rex", "child": null});
        let (pets, other) = (quoted("find_pets_"), quoted("aaaa"));
        assert_eq!(other.len(), 64);
        let made = [
            (&*pets, json!({parameter: pet, "pair": null})),
            (&*other, json!({})),
        ];
        let calls = tools.calls(&reply(api, &made)).into_iter();
        let requests: Vec<_> = calls.map(|call| call.request.unwrap()).collect();
        assert_eq!(requests[0].tool_id, "find.pets");
        assert_eq!(requests[0].input, json!({"$pet": {"name": "Rex"}}));
        assert_eq!(requests[1].tool_id, long);
    }
}

/// Returns a schema whose properties are made from their numbers.
fn properties(count: usize, one: impl Fn(usize) -> Value) -> Value {
    let all = (0..count).map(|number| (format!("p{number}"), one(number)));
    json!({"type": "object", "properties": all.collect::<Map<_, _>>()})
}

/// Returns one of the spellings of a reference.
fn spelled(pointer: &str, number: usize) -> Value {
    let letter = |(at, letter): (usize, char)| match (number >> at) & 1 {
        0 => letter.to_string(),
        _ => format!("%{:02x}", u32::from(letter)),
    };
    let letters: String = pointer.chars().enumerate().map(letter).collect();
    json!({"$ref": format!("#/{letters}")})
}

/// Returns small schemas that references and unions could multiply, or that take long to compare.
fn multiplying() -> Vec<(&'static str, Value)> {
    let words = |count: usize| {
        (0..count)
            .map(|it| json!(format!("w{it}")))
            .collect::<Value>()
    };
    let with = |mut schema: Value, keyword: &str, value: Value| {
        schema[keyword] = value;
        schema
    };
    let copies = |count: usize, schema: Value| Value::from(vec![schema; count]);
    let long = json!({"long": {"type": "string", "description": "long ".repeat(30_000)}});
    let choices = properties(500, |number| spelled("definitions/E", number));
    let nested = |number: usize| json!({"properties": {"x": {"const": number}}});
    let same_end = properties(2000, |number| match number % 2 {
        0 => nested(number),
        _ => json!({"$ref": format!("#/properties/p{}/properties/x", number - 1)}),
    });
    let branches = |count: usize| (0..count).map(nested).collect::<Value>();
    let anchors = properties(2000, |number| json!({"$ref": format!("#a{number}")}));
    let chain = properties(
        2000,
        |number| json!({"$ref": format!("#/properties/p{}", number + 1)}),
    );
    vec![
        (
            "500 spellings of one reference",
            with(choices, "definitions", json!({"E": {"enum": words(2000)}})),
        ),
        ("references with the same last part", same_end),
        (
            "200 branches that are the whole",
            json!({"type": "object", "properties": long, "anyOf": copies(200, json!({"$ref": "#"}))}),
        ),
        (
            "200 properties that are the whole",
            with(properties(200, |_| json!({"$ref": "#"})), "x", long.clone()),
        ),
        (
            "8,000 choices",
            properties(1, |_| json!({"enum": words(8000)})),
        ),
        (
            "branches with different properties",
            json!({"type": "object", "anyOf": branches(1500)}),
        ),
        (
            "a property with different branches",
            properties(
                1,
                |_| json!({"description": "long ".repeat(20_000), "oneOf": branches(1500)}),
            ),
        ),
        (
            "rules beside many branches",
            json!({"type": "object", "properties": {"a": {"type": "object", "properties": long,
                "anyOf": copies(1000, json!({"required": ["long"]}))}}}),
        ),
        ("references to nothing", anchors),
        (
            "a chain of references",
            with(chain, "$ref", json!("#/properties/p0")),
        ),
        (
            "a schema that is itself",
            json!({"type": "object", "$ref": "#", "x": words(8000)}),
        ),
    ]
}

#[test]
fn no_definition_is_multiplied() {
    let others = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let mut wrong = Vec::new();
    for (what, schema) in multiplying() {
        let definitions = definitions_with(&[schema, others.clone()]);
        for (name, api) in APIS {
            let begun = Instant::now();
            let tools = ModelTools::new(api, definitions.clone());
            let (time, size) = (begun.elapsed(), json!(tools.list()).to_string().len());
            assert_list(name, tools.list());
            let line = format!("{what}, {name}: {size} bytes, {time:?}");
            println!("{line}");
            if size > 1 << 21 || time > Duration::from_secs(5) {
                wrong.push(line);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_definition_that_is_too_large_is_left_out() {
    let described = |length: usize| json!({"type": "object", "properties": {"a": {"type": "string", "description": "x".repeat(length)}}});
    let values: Value = (0..100_000).collect();
    let many = json!({"type": "object", "properties": {"a": {"enum": values}}});
    let definitions = definitions_with(&[described(250_000), described(270_000), many]);
    for (_, api) in APIS {
        let tools = ModelTools::new(api, definitions.clone());
        assert_eq!(functions(tools.list()).len(), 1, "{api:?}");
        let calls = tools.calls(&reply(api, &[("T_T0", json!({})), ("T_T1", json!({}))]));
        assert!(
            calls[0].request.is_ok() && calls[1].request.is_err(),
            "{api:?}"
        );
    }
    // Tools that together are larger than any API accepts.
    let definitions = definitions_with(&vec![described(250_000); 200]);
    let tools = ModelTools::new(ModelApi::Anthropic, definitions);
    let size = json!(tools.list()).to_string().len();
    assert!((10 << 20..20 << 20).contains(&size), "{size} bytes");
}
