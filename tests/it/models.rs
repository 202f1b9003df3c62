//! Lists of tools for chat models.

mod replies;

use std::collections::BTreeMap;

use lambda_tools::{
    Failure, Tool, ToolDefinition, Toolkit,
    models::{ModelApi, ModelTools},
};
use proptest::{collection, prelude::*, sample::select};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use test_support::models::{LISTS, assert_list, check_with_sdks, functions};

use crate::support::{call, event, function, value};

/// Searches for orders.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema matters")]
struct Search {
    /// The text to search for.
    #[schemars(length(min = 1, max = 80))]
    text: String,
    /// The maximum number of results; 10 by default.
    #[serde(default)]
    limit: Option<u8>,
    /// The order of the results.
    #[serde(default)]
    sort: Sort,
    /// Only orders in this area.
    area: Option<Area>,
    /// Labels, all of which an order must have.
    #[serde(default)]
    labels: Vec<String>,
    /// A point.
    near: Option<(f64, f64)>,
    /// A point and its name.
    named: Option<(f64, String)>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Sort {
    /// The newest orders first.
    #[default]
    Newest,
    /// The largest orders first.
    Largest,
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema matters")]
enum Area {
    /// A circle.
    Circle {
        /// Its radius.
        radius: f64,
        /// Its name, if it has one.
        name: Option<String>,
    },
    /// A country.
    Country {
        /// Its code.
        #[schemars(regex(pattern = "^[A-Z]{2}$"))]
        code: String,
    },
}

/// Sets labels.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema matters")]
struct Label {
    /// Values by the names of labels.
    labels: BTreeMap<String, Option<String>>,
}

/// Does one of several things.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema matters")]
enum Action {
    /// Opens a door.
    Open {
        /// The door.
        door: String,
    },
    /// Waits.
    Wait {
        /// The number of seconds.
        seconds: u32,
    },
}

/// Moves something.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema matters")]
struct Move {
    /// The thing.
    thing: String,
    #[serde(flatten)]
    action: Action,
}

/// Takes anything.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema matters")]
struct Anything {
    /// Any value.
    value: Value,
    /// A number or a text.
    either: Either,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema matters")]
enum Either {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// Several texts.
    Texts(Vec<String>),
}

/// Does nothing.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn tool<I: JsonSchema + serde::de::DeserializeOwned + Send + 'static>(id: &'static str) -> Tool {
    Tool::new(id, |_: I| async { Ok::<_, Failure>(()) })
}

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
        json!({"type": "object"}),
        json!({"type": "array"}),
        json!({"type": "array", "items": [text(), {"type": "integer"}]}),
        json!({"type": ["string", "integer", "null"], "minLength": 1}),
        json!({"type": "integer", "enum": [1, 2]}),
        json!({"enum": ["", "a"]}),
        json!({"enum": ["a", 1, null]}),
        json!({"const": 3}),
        json!({"type": "string", "format": "uri", "pattern": "^(?!x)"}),
        json!({"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5, "default": 1}),
        json!({"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"type": "integer"}}]}),
        json!({"allOf": [{"type": "string"}, {"minLength": 3}]}),
        json!({"not": {"type": "string"}}),
        deep,
    ];
    let parameters = parameters.into_iter().enumerate();
    let mut tools: Vec<_> = parameters
        .map(|(index, schema)| dynamic(format!("Parameter.P{index}@1.0.0"), described(schema)))
        .collect();
    tools.extend([
        tool::<Search>("Orders.Search@1.0.0"),
        tool::<Search>("Orders.Search@1.2.0"),
        tool::<Nothing>("Orders.Search@0.9.0"),
        tool::<Label>("Orders.Label@1.0.0"),
        tool::<Action>("Home.Act@1.0.0"),
        tool::<Move>("Home.Move@1.0.0"),
        tool::<Anything>("Test.Anything@1.0.0"),
        tool::<Nothing>("Test.Nothing@1.0.0").name("1-nothing"),
        tool::<Nothing>("Test.Long@1.0.0").description("word ".repeat(300)),
        dynamic("Test.Open@1.0.0", json!({"type": "object"})),
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

/// OpenAI's Structured Outputs.
const STRICT: ModelApi = ModelApi::OpenAi { strict: true };

fn list(toolkit: &Toolkit, api: ModelApi) -> Vec<Value> {
    let tools = ModelTools::new(api, toolkit.definitions());
    tools.list().to_vec()
}

const APIS: [(&str, ModelApi); 8] = [
    ("openai", ModelApi::OpenAi { strict: false }),
    ("openai", STRICT),
    (
        "openai-responses",
        ModelApi::OpenAiResponses { strict: false },
    ),
    (
        "openai-responses",
        ModelApi::OpenAiResponses { strict: true },
    ),
    ("anthropic", ModelApi::Anthropic),
    ("gemini", ModelApi::Gemini),
    ("bedrock", ModelApi::Bedrock),
    ("agentcore", ModelApi::AgentCore),
];

fn apis() -> [(&'static str, Vec<Value>); 8] {
    let toolkit = toolkit();
    APIS.map(|(name, api)| (name, list(&toolkit, api)))
}

/// What an API has no keyword for is in its descriptions.
#[test]
fn no_list_loses_a_keyword() {
    let table = include_str!("../../crates/core/src/tool/schema/vocabulary/decisive.txt");
    let lists = |schema: &Value| {
        let definition: ToolDefinition = serde_json::from_value(json!({
            "id": "T.T@1.0.0", "name": "T_T", "description": "", "version": "1.0.0",
            "input_schema": {"type": "object", "properties": {"p": schema},
                "required": ["p"], "additionalProperties": false},
        }))
        .unwrap();
        APIS.map(|(_, api)| ModelTools::new(api, [definition.clone()]).list().to_vec())
    };
    for row in table.lines() {
        let (name, rest) = row.split_once(" | ").unwrap();
        let with = rest.split(" | ").next().unwrap();
        let with: Value = serde_json::from_str(with).unwrap();
        let mut without = with.clone();
        without.as_object_mut().unwrap().shift_remove(name);
        for (with, without) in lists(&with).into_iter().zip(lists(&without)) {
            assert_ne!(with, without, "{name}");
        }
    }
}

#[test]
fn every_list_obeys_the_rules_of_its_api() {
    for (name, tools) in apis() {
        assert_list(name, &tools);
        assert_eq!(functions(&tools).len(), 25, "{name}");
    }
    let none = Toolkit::new([]).unwrap();
    assert!(list(&none, ModelApi::Gemini).is_empty() && list(&none, STRICT).is_empty());
}

#[test]
fn tools_are_strict_unless_their_input_cannot_be() {
    let tools = list(&toolkit(), STRICT);
    let tools = tools
        .iter()
        .filter(|tool| tool["function"]["strict"] == true);
    let names = tools.map(|tool| tool["function"]["name"].as_str().unwrap());
    let strict: Vec<_> = names
        .filter(|name| !name.starts_with("Parameter"))
        .collect();
    // The others have maps, any values, or lists of different items.
    let expected = [
        "Home_Act",
        "Home_Move",
        "1-nothing",
        "Test_Long",
        "Test_Names",
        "Test_Root",
    ];
    assert_eq!(strict, expected);
}

#[test]
fn the_list_over_http_is_the_same() {
    let served = function(toolkit());
    let lists = apis();
    for ((name, query), (api, tools)) in LISTS.into_iter().zip(lists) {
        assert_eq!(name, api);
        let mut event: Value = serde_json::from_str(&event("GET", "/tools", "")).unwrap();
        event["rawQueryString"] = query.into();
        for _ in 0..2 {
            let response = tokio::runtime::Runtime::new()
                .unwrap()
                .block_on(served.respond(&event.to_string()))
                .unwrap();
            assert_eq!(
                (response.status, &response.body),
                (200, &json!(tools)),
                "{query}"
            );
        }
    }
}

#[test]
fn a_long_description_continues_in_the_schema() {
    for strict in [false, true] {
        let tools = list(&toolkit(), ModelApi::OpenAi { strict });
        let tool = tools
            .iter()
            .find(|tool| tool["function"]["name"] == "Test_Long")
            .unwrap();
        let start = tool["function"]["description"].as_str().unwrap();
        let rest = tool["function"]["parameters"]["description"]
            .as_str()
            .unwrap();
        assert_eq!(format!("{start} {rest}"), "word ".repeat(300).trim());
    }
}

#[test]
fn parameters_that_apis_do_not_accept_get_other_names() {
    for api in [ModelApi::Anthropic, ModelApi::Gemini, ModelApi::Bedrock] {
        let tools = ModelTools::new(api, toolkit().definitions());
        let text = json!(tools.list()).to_string();
        assert!(
            text.contains("The tool's own name for it is `$filter`."),
            "{text}"
        );
        let name = if api == ModelApi::Gemini {
            "__filter_"
        } else {
            "_filter_"
        };
        let start = text.find(&format!("\"{name}")).unwrap() + 1;
        let listed = &text[start..start + name.len() + 8];
        let arguments = json!({listed: "a", "plain": "b"});
        let call = match api {
            ModelApi::Anthropic => {
                json!({"type": "tool_use", "id": "1", "name": "Test_Names", "input": arguments})
            }
            ModelApi::Gemini => json!({"functionCall": {"name": "Test_Names", "args": arguments}}),
            _ => json!({"toolUse": {"toolUseId": "1", "name": "Test_Names", "input": arguments}}),
        };
        let calls = tools.calls(&call);
        let request = calls[0].request.clone().unwrap();
        assert_eq!(request.tool_id, "Test.Names@1.0.0");
        assert_eq!(request.input, json!({"$filter": "a", "plain": "b"}));
    }
}

#[test]
fn objects_without_properties_are_texts_for_gemini() {
    let map = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    let described = |mut schema: Value, text: &str| {
        schema["description"] = text.into();
        schema
    };
    let schema = json!({"type": "object", "properties": {
        "map": described(map.clone(), "Counts by name"),
        "maybe": described(json!({"type": ["object", "null"], "minProperties": 1}), "Anything."),
        "any": described(json!({}), "Any value."),
        "either": described(json!({"anyOf": [{"type": "string"}, map]}), "A text or counts."),
        "auto": described(json!({"anyOf": [{"const": "auto"}, map]}), "Counts.")}});
    let toolkit = Toolkit::new([dynamic("T.T@1.0.0", schema)]).unwrap();
    let tools = ModelTools::new(ModelApi::Gemini, toolkit.definitions());
    let text = |description: &str| json!({"type": "STRING", "description": description});
    let properties = &functions(tools.list())[0]["parameters"]["properties"];
    let counts = "Counts by name. Any other property: integer. A JSON object, as text.";
    assert_eq!(properties["map"], text(counts));
    let mut maybe = text("Anything. JSON Schema: {\"minProperties\":1}. A JSON object, as text.");
    maybe["nullable"] = true.into();
    assert_eq!(properties["maybe"], maybe);
    let any = ["STRING", "NUMBER", "BOOLEAN"];
    let any = any.map(|kind| json!({"type": kind, "description": "Any value."}));
    assert_eq!(properties["any"], json!({"anyOf": any}));
    assert_eq!(properties["either"], text("A text or counts."));
    let auto = json!({"type": "STRING", "description": "Counts.", "enum": ["auto"]});
    let counts = "Counts. Any other property: integer. A JSON object, as text.";
    assert_eq!(properties["auto"], json!({"anyOf": [auto, text(counts)]}));

    let json = r#"{"a":1}"#;
    let arguments = json!({"map": json, "maybe": "{", "any": json, "either": json, "auto": json});
    let call = json!({"functionCall": {"name": "T_T", "args": arguments}});
    let request = tools.calls(&call).swap_remove(0).request.unwrap();
    let object = json!({"a": 1});
    let expected =
        json!({"map": object, "maybe": "{", "any": json, "either": json, "auto": object});
    assert_eq!(request.input, expected);
}

/// Models in strict mode send such a `null`.
#[tokio::test]
async fn null_for_an_optional_parameter_is_the_same_as_leaving_it_out() {
    let text = || json!({"type": "string", "description": "A text."});
    let part = json!({"type": "object", "description": "A part.", "required": ["a"],
        "properties": {"a": text(), "b": text()}, "additionalProperties": false});
    let schema = json!({"type": "object", "additionalProperties": false,
        "properties": {
            "part": part,
            "parts": {"type": "array", "description": "Parts.", "items": part},
            "either": {"description": "One of two.", "anyOf": [part, {"type": "integer"}]},
            "all": {"description": "A part.", "allOf": [part]},
            "null": {"type": ["string", "null"], "description": "May be null."}}});
    let served = function(Toolkit::new([dynamic("T.T@1.0.0", schema)]).unwrap());
    let sent = json!({"a": "x", "b": null});
    let kept = json!({"a": "x"});
    let input = json!({"part": sent, "parts": [sent], "either": sent, "all": sent, "null": null});
    let output = value(&served, "T.T", input).await;
    let expected =
        json!({"part": kept, "parts": [kept], "either": kept, "all": kept, "null": null});
    assert_eq!(output, expected);
    let nulls = json!({"part": null, "parts": null, "either": null, "all": null, "null": null});
    assert_eq!(value(&served, "T.T", nulls).await, json!({"null": null}));
    for invalid in [
        json!({"part": {"a": null}}),
        json!({"parts": [null]}),
        json!({"parts": [{"a": null, "b": null}]}),
        json!({"unknown": null}),
    ] {
        let response = call(&served, "T.T", invalid.clone()).await;
        assert_eq!(response.status, 422, "{invalid}: {response:?}");
    }
}

/// Generates schemas of parameters of dynamic tools, with what may be anywhere in them.
fn any_parameter() -> impl Strategy<Value = Value> {
    let leaf = select(vec![
        json!({"type": "string", "minLength": 1, "format": "uri"}),
        json!({"type": "integer", "enum": [1, 2]}),
        json!({"type": ["number", "null"], "maximum": 2}),
        json!({"enum": ["", "a", null]}),
        json!({"const": true}),
        json!({"type": "object"}),
        json!({"type": "array"}),
        json!({}),
    ]);
    leaf.prop_recursive(4, 24, 3, |inner| {
        let several = collection::vec(inner.clone(), 1..4);
        let keyword = select(vec!["anyOf", "oneOf", "allOf", "prefixItems"]);
        let named = collection::btree_map("[a-c$-]{1,2}", inner.clone(), 0..4);
        prop_oneof![
            (named, any::<bool>()).prop_map(|(properties, is_closed)| json!({
                "type": "object", "properties": properties, "additionalProperties": !is_closed})),
            (keyword, several).prop_map(|(keyword, branches)| json!({keyword: branches})),
            inner
                .clone()
                .prop_map(|items| json!({"type": "array", "items": items})),
            inner.prop_map(|values| json!({"type": "object", "additionalProperties": values})),
        ]
    })
}

/// Adds the descriptions that a toolkit requires in debug builds.
fn describe(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            for (_, value) in object.iter_mut() {
                describe(value);
            }
            if let Some(Value::Object(properties)) = object.get_mut("properties") {
                for (_, property) in properties.iter_mut().filter(|(_, it)| it.is_object()) {
                    property["description"] = "A parameter.".into();
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(describe),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn any_dynamic_tool_is_listed_as_its_api_takes_it(
        parameters in collection::btree_map("[a-z$@-]{1,70}", any_parameter(), 0..4),
        more in any_parameter(),
    ) {
        let mut schema = json!({"type": "object", "properties": parameters});
        if let Value::Object(more) = more {
            for (keyword, value) in more {
                schema.as_object_mut().unwrap().entry(keyword).or_insert(value);
            }
        }
        schema["type"] = "object".into();
        describe(&mut schema);
        let toolkit = Toolkit::new([dynamic("T.T@1.0.0", schema)]).unwrap();
        for (name, api) in [
            ("openai", ModelApi::OpenAi { strict: false }),
            ("openai", STRICT),
            ("anthropic", ModelApi::Anthropic),
            ("gemini", ModelApi::Gemini),
            ("bedrock", ModelApi::Bedrock),
        ] {
            let tools = list(&toolkit, api);
            assert_list(name, &tools);
            prop_assert_eq!(functions(&tools).len(), 1);
        }
    }
}

#[test]
#[ignore = "needs the SDKs of models' APIs; run tests/all"]
fn the_sdks_accept_the_lists_and_nothing_else() {
    let lists = apis().map(|(api, tools)| json!({"api": api, "tools": tools}));
    check_with_sdks(&lists).unwrap();
    for (index, (place, wrong)) in [
        ("/tools/0/function/name", json!(1)),
        ("/tools/0/function/strict", json!("yes")),
        ("/tools/0/parameters/type", json!("text")),
        ("/tools/0/strict", json!("yes")),
        (
            "/tools/0/input_schema/properties",
            json!({"a": {"type": "text"}}),
        ),
        ("/tools/0/functionDeclarations/1/parameters/const", json!(1)),
        ("/tools/0/toolSpec/description", json!("")),
    ]
    .into_iter()
    .enumerate()
    {
        let mut list = lists[index].clone();
        let (parent, name) = place.rsplit_once('/').unwrap();
        list.pointer_mut(parent).unwrap()[name] = wrong;
        assert!(check_with_sdks(&[list]).is_err(), "{place}");
    }
}
