//! Models' calls, run by the clients, and the results as each API takes them.

use std::time::{Duration, Instant};

use lambda_tools::{
    ToolDefinition,
    client::ClientOptions,
    models::{ModelApi, ModelTools},
};
use serde_json::{Map, Value, json};
use test_support::{
    Running, answer,
    models::{assert_list, check_with_sdks, functions},
};

use super::{FakeServer, JSON, discovery, mcp, now, once, oxp, result};
use crate::tools::program;

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

/// Calls with every kind of outcome, and what the model is told.
fn calls() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("Calculator_Add", json!({"a": 10, "b": 5}), "15"),
        (
            "Calculator_Ad",
            json!({}),
            "There is no tool with this name. Did you mean Calculator_Add?",
        ),
        (
            "Calculator_Add",
            json!({"a": "ten", "b": null}),
            "a: Must be a number",
        ),
        (
            "Doorbell_Ring",
            json!({"doorbell_id": "x"}),
            "The same call may succeed after 0.5 seconds.",
        ),
        (
            "SMS_Send",
            json!({"to": "a", "message": "b"}),
            "TWILIO_API_KEY",
        ),
    ]
}

fn check(api: ModelApi, messages: &[Value]) {
    let results = results(api, messages);
    assert_eq!(results.len(), calls().len());
    for (index, ((_, _, expected), (id, text, is_error))) in
        calls().iter().zip(&results).enumerate()
    {
        assert_eq!(*id, format!("call-{index}"));
        let is_value = index == 0;
        let is_expected = if is_value {
            text == expected || text == "{\"result\":15}"
        } else {
            text.contains(expected)
        };
        assert!(is_expected, "{api:?}: {text} instead of {expected}");
        assert!(is_error.is_none_or(|it| it != is_value), "{api:?}: {text}");
    }
}

async fn replies_and_messages() -> Vec<Value> {
    let (_running, url) = Running::serving(program().env("TOOLS_SECRETS", "none"));
    let (oxp, mcp) = (oxp(&url, once()), mcp(&url, once()));
    let (for_oxp, for_mcp) = (oxp.tools().await.unwrap(), mcp.tools().await.unwrap());
    let mut lines = Vec::new();
    for (name, api) in APIS {
        let made: Vec<_> = calls()
            .into_iter()
            .map(|(tool, input, _)| (tool, input))
            .collect();
        let reply = reply(api, &made);
        let tools = ModelTools::new(api, for_oxp.clone());
        let mcp_tools = ModelTools::new(api, for_mcp.clone());
        assert_list(name, tools.list());
        assert_list(name, mcp_tools.list());
        let messages = oxp.respond(&tools, &reply).await;
        check(api, &messages);
        lines.push(json!({"api": name, "reply": reply, "messages": messages}));
        let messages = mcp.respond(&mcp_tools, &reply).await;
        check(api, &messages);
        lines.push(json!({"api": name, "reply": reply, "messages": messages}));
        lines.push(json!({"api": name, "tools": tools.list()}));
        lines.push(json!({"api": name, "tools": mcp_tools.list()}));
        let silent = json!({"role": "assistant", "content": "Nothing to do."});
        assert_eq!(oxp.respond(&tools, &silent).await, [Value::Null; 0]);
    }
    lines
}

#[tokio::test]
async fn every_outcome_is_a_result_that_the_model_can_act_on() {
    assert_eq!(replies_and_messages().await.len(), 20);
}

#[tokio::test]
#[ignore = "needs the SDKs of models' APIs; run tests/all"]
async fn the_sdks_accept_the_results() {
    let lines = replies_and_messages().await;
    check_with_sdks(&lines).unwrap();
    // A result of another call.
    let mut wrong = lines[0].clone();
    wrong["messages"][0]["tool_call_id"] = "call-9".into();
    assert!(check_with_sdks(&[wrong]).is_err());
}

#[tokio::test]
async fn a_call_is_found_in_every_part_of_a_response() {
    let (_running, url) = Running::serving(&mut program());
    let client = oxp(&url, once());
    let definitions = client.tools().await.unwrap();
    for (_, api) in APIS {
        let tools = ModelTools::new(api, definitions.clone());
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
            assert_eq!(request.tool_id, "Calculator.Add@10.0.0");
            assert_eq!(request.input, json!({"a": 1, "b": 2}));
        }
    }
}

#[tokio::test]
async fn arguments_that_are_not_an_object_become_a_result() {
    let (_running, url) = Running::serving(&mut program());
    let client = oxp(&url, once());
    let api = ModelApi::OpenAi { strict: false };
    let tools = ModelTools::new(api, client.tools().await.unwrap());
    for (arguments, expected) in [
        ("{\"a\": 1", "The arguments are not valid JSON: "),
        ("[1]", "The arguments must be a JSON object."),
        ("", "b: Is required"),
        ("{\"a\": 1, \"b\": 2}", "3"),
    ] {
        let call = json!({"id": "1", "type": "function",
            "function": {"name": "Calculator_Add", "arguments": arguments}});
        let messages = client.respond(&tools, &call).await;
        let text = messages[0]["content"].as_str().unwrap();
        assert!(text.contains(expected), "{arguments}: {text}");
    }
}

/// Starts a server that lists one tool, and gives its calls this answer.
async fn with_one_tool(status: u16, body: &'static str) -> FakeServer {
    let list = r#"{"items": [{"id": "T.T@1.0.0", "name": "T_T", "description": "A tool.",
        "version": "1.0.0", "input_schema": {"type": "object", "properties": {}}}]}"#;
    FakeServer::start(move |_, request| {
        now(match request.method.as_str() {
            "GET" => answer(200, JSON, list),
            _ => answer(status, JSON, body),
        })
    })
    .await
}

#[tokio::test]
async fn a_user_has_to_open_the_url_of_a_challenge() {
    let body = r#"{"message": "Access is missing", "missing_requirements": {"user_id": true,
        "authorization": [{"id": "google", "url": "https://a.example/1", "check_url": ""}]}}"#;
    let server = with_one_tool(400, body).await;
    let client = oxp(&server.url(), once());
    let tools = ModelTools::new(ModelApi::Anthropic, client.tools().await.unwrap());
    let call = reply(ModelApi::Anthropic, &[("T_T", json!({}))]);
    let complete = |call: lambda_tools::client::CallRequest| call.user_id("user-1");
    let messages = client.respond_with(&tools, &call, complete).await;
    let (_, text, is_error) = &results(ModelApi::Anthropic, &messages)[0];
    assert_eq!(*is_error, Some(true));
    for part in ["Access is missing", "https://a.example/1", "the user's id"] {
        assert!(text.contains(part), "{text}");
    }
    let requests = server.requests();
    let sent = requests.last().unwrap().message();
    assert_eq!(sent["context"]["user_id"], "user-1");
}

#[tokio::test]
async fn a_server_that_does_not_respond_is_a_result() {
    for (status, expected) in [(503, "may or may not have run"), (401, "credentials")] {
        let server = with_one_tool(status, "{}").await;
        let client = oxp(&server.url(), once());
        let tools = ModelTools::new(ModelApi::Bedrock, client.tools().await.unwrap());
        let call = reply(ModelApi::Bedrock, &[("T_T", json!({}))]);
        let messages = client.respond(&tools, &call).await;
        let (_, text, is_error) = &results(ModelApi::Bedrock, &messages)[0];
        assert!(text.contains(expected) && *is_error == Some(true), "{text}");
    }
}

/// Definitions of other servers have references, earlier drafts, and names of any kind.
#[tokio::test]
async fn tools_of_any_mcp_server_are_listed_and_called() {
    let long = "a".repeat(100);
    let server = FakeServer::start(move |_, request| {
        let message = request.message();
        let tool = |name: &str, schema: Value| json!({"name": name, "inputSchema": schema});
        let pet = json!({"type": "object", "additionalProperties": false, "required": ["name"],
            "properties": {"name": {"type": "string"}, "child": {"$ref": "#/definitions/Pet"}}});
        let answer = match message["method"].as_str() {
            Some("tools/list") => json!({"resultType": "complete", "tools": [
                tool("find.pets", json!({"$schema": "http://json-schema.org/draft-07/schema#",
                    "type": "object", "additionalProperties": false, "required": ["$pet"],
                    "properties": {"$pet": {"$ref": "#/definitions/Pet"},
                        "pair": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}},
                    "definitions": {"Pet": pet}})),
                tool(&long, json!({"$ref": "#/$defs/In", "$defs": {"In": {"type": "object",
                    "properties": {"a": {"$ref": "https://a.example/s"}}}}})),
                tool(&long.replace('a', "b"), json!({"type": "object", "anyOf": [
                    {"$ref": "#/$defs/A"}, {"$ref": "#"}],
                    "$defs": {"A": {"type": "object", "properties": {"x": {"type": "string"}}}}})),
            ]}),
            Some("tools/call") => json!({"resultType": "complete",
                "content": [{"type": "text", "text": message["params"].to_string()}]}),
            _ => discovery(),
        };
        now(result(&request, &answer))
    })
    .await;
    let client = mcp(&server.url(), once());
    let definitions = client.tools().await.unwrap();
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
        let calls = [
            (quoted("find_pets_"), json!({parameter: pet, "pair": null})),
            (quoted("aaaa"), json!({})),
        ];
        assert_eq!(calls[1].0.len(), 64);
        let calls: Vec<_> = calls
            .iter()
            .map(|(tool, input)| (&**tool, input.clone()))
            .collect();
        let messages = client.respond(&tools, &reply(api, &calls)).await;
        let results = results(api, &messages);
        let sent: Vec<Value> = results
            .iter()
            .map(|(_, text, _)| serde_json::from_str(text).unwrap())
            .collect();
        assert_eq!(sent[0]["name"], "find.pets");
        assert_eq!(sent[0]["arguments"], json!({"$pet": {"name": "Rex"}}));
        assert_eq!(sent[1]["name"].as_str().unwrap().len(), 100);
    }
}

/// Returns the definitions of a server whose tools have these input schemas.
async fn definitions_with(schemas: &[Value]) -> Vec<ToolDefinition> {
    let tool = |(number, schema): (usize, &Value)| {
        json!({"id": format!("T.T{number}@1.0.0"), "name": format!("T_T{number}"),
            "description": "A tool.", "version": "1.0.0", "input_schema": schema})
    };
    let tools: Vec<_> = schemas.iter().enumerate().map(tool).collect();
    let list = json!({"items": tools}).to_string();
    let server = FakeServer::fixed(200, JSON, list).await;
    let options = ClientOptions::default().max_response_size(64 << 20);
    oxp(&server.url(), options).tools().await.unwrap()
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

#[tokio::test]
async fn no_definition_is_multiplied() {
    let others = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let mut wrong = Vec::new();
    for (what, schema) in multiplying() {
        let definitions = definitions_with(&[schema, others.clone()]).await;
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

#[tokio::test]
async fn a_definition_that_is_too_large_is_left_out() {
    let described = |length: usize| json!({"type": "object", "properties": {"a": {"type": "string", "description": "x".repeat(length)}}});
    let values: Value = (0..100_000).collect();
    let many = json!({"type": "object", "properties": {"a": {"enum": values}}});
    let definitions = definitions_with(&[described(250_000), described(270_000), many]).await;
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
    let definitions = definitions_with(&vec![described(250_000); 200]).await;
    let tools = ModelTools::new(ModelApi::Anthropic, definitions);
    let size = json!(tools.list()).to_string().len();
    assert!((10 << 20..20 << 20).contains(&size), "{size} bytes");
}
