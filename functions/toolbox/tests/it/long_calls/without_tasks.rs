//! Clients that take no tasks: of the other protocols, and of MCP.

use test_support::{invocations::Limits, mcp::LEGACY};

use super::*;

/// A client that takes no tasks.
#[derive(Clone, Copy, Debug)]
enum Client {
    Oxp,
    OpenTool,
    LegacyMcp,
    Mcp,
}

const CLIENTS: [Client; 4] = [
    Client::Oxp,
    Client::OpenTool,
    Client::LegacyMcp,
    Client::Mcp,
];

impl Client {
    /// Calls a tool.
    async fn call(self, tools: &Tools, tool: &str, input: &Value, call_id: &str) -> Answer {
        let name = tool.replace('.', "_");
        let params = || json!({"name": name, "arguments": input, "_meta": {CALL_ID: call_id}});
        match self {
            Self::Oxp => {
                let body = json!({"tool_id": tool, "call_id": call_id, "input": input});
                tools.post("/tools/call", &[], &body).await
            }
            Self::OpenTool => {
                let body =
                    json!({"jsonrpc": "2.0", "method": name, "params": input, "id": call_id});
                tools.post("/opentool/call", &[], &body).await
            }
            Self::LegacyMcp => {
                let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                    "params": params()});
                let headers = [
                    ("accept", "application/json, text/event-stream"),
                    ("mcp-protocol-version", LEGACY),
                ];
                tools.post("/mcp", &headers, &body).await
            }
            Self::Mcp => tools.mcp("", "tools/call", params(), false).await,
        }
    }

    /// Returns the value in an answer.
    fn value(self, answer: &Answer) -> Value {
        let mut json = answer.json();
        match self {
            Self::Oxp => json["value"].take(),
            Self::OpenTool => json["result"]["value"].take(),
            Self::LegacyMcp | Self::Mcp => json["result"]["structuredContent"]["result"].take(),
        }
    }

    /// Returns the text of the failure in an answer.
    fn failure(self, answer: &Answer) -> String {
        let json = answer.json();
        let text = match self {
            Self::Oxp | Self::OpenTool => &json["error"]["message"],
            Self::LegacyMcp | Self::Mcp => &json["result"]["content"][0]["text"],
        };
        let text = text.as_str();
        text.unwrap_or_else(|| panic!("{self:?}: {json}"))
            .to_owned()
    }

    fn is_replay(self, answer: &Answer) -> bool {
        match self {
            Self::Oxp | Self::OpenTool => answer.headers.contains_key("idempotent-replay"),
            Self::LegacyMcp | Self::Mcp => {
                answer.json()["result"]["_meta"]["lambda-tools/replay"] == true
            }
        }
    }
}

/// Returns an answer without what differs between any two calls.
fn comparable(answer: &Answer) -> (u16, Vec<(String, String)>, Value) {
    let mut json = answer.json();
    if let Some(object) = json.as_object_mut() {
        object.remove("duration");
    }
    let headers = answer.headers.iter().map(|(name, value)| {
        let value = value.to_str().unwrap().to_owned();
        (name.to_string(), value)
    });
    let is_compared = |(name, _): &(String, String)| !["date", "content-length"].contains(&&**name);
    (answer.status, headers.filter(is_compared).collect(), json)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes; run tests/all"]
async fn other_clients_get_the_same_answers_from_a_background_tool_as_from_another() {
    let tools = Tools::start().await;
    for input in [
        json!({"to": 2, "step_ms": 20}),
        json!({"to": 2, "step_ms": 20, "end": "fail"}),
        json!({"to": 2, "step_ms": 20, "end": "panic"}),
        json!({"to": "two"}),
    ] {
        for client in CLIENTS {
            let call_id = format!("{client:?}-{input}");
            let ordinary = client.call(&tools, "Long.Report", &input, &call_id).await;
            let background = client.call(&tools, "Long.Count", &input, &call_id).await;
            let answers = [&ordinary, &background].map(comparable);
            assert_eq!(answers[0], answers[1], "{client:?} {input}");
        }
    }
    // The last input is invalid.
    assert_eq!(tools.function.invocations().len(), 3 * CLIENTS.len());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes; run tests/all"]
async fn a_call_that_outlasts_its_request_goes_on_and_its_repetition_gets_the_outcome() {
    let tools = Tools::start().await;
    tools.function.limit(Limits {
        request: Duration::from_secs(2),
        ..Limits::default()
    });
    let check = async |client: Client| {
        let input = json!({"before_ms": 2500});
        let call_id = format!("{client:?}");
        let call = async || client.call(&tools, "Long.Once", &input, &call_id).await;
        let unfinished = call().await;
        let text = client.failure(&unfinished);
        assert!(
            text.starts_with("The tool is still working"),
            "{client:?}: {text}"
        );
        let json = unfinished.json();
        let goes_on = "The work goes on: repeat the same call, with the same call id, to get its \
                       outcome.";
        match client {
            Client::Oxp => {
                assert_eq!(unfinished.status, 200);
                assert_eq!(json["error"]["can_retry"], true, "{json}");
                assert_eq!(json["error"]["retry_after_ms"], 5000, "{json}");
                assert_eq!(json["error"]["additional_prompt_content"], goes_on);
            }
            Client::OpenTool => assert!(text.contains(goes_on), "{text}"),
            Client::LegacyMcp | Client::Mcp => {
                assert!(text.contains(goes_on), "{text}");
                assert!(text.ends_with("Try again in 5 seconds."), "{text}");
                assert_eq!(json["result"]["isError"], true, "{json}");
            }
        }
        let repeated = eventually("the outcome is there", async || {
            let answer = call().await;
            (!client.value(&answer).is_null()).then_some(answer)
        });
        let repeated = repeated.await;
        let value = client.value(&repeated);
        assert_eq!(value, format!("written for {call_id}"), "{client:?}");
        assert!(client.is_replay(&repeated), "{client:?}");
    };
    let [one, two, three, four] = CLIENTS;
    tokio::join!(check(one), check(two), check(three), check(four));
    assert_eq!(tools.effects().len(), CLIENTS.len());
}

/// Nobody can repeat it: a model cannot send an id, and would start the work again.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes; run tests/all"]
async fn a_call_without_an_id_that_outlasts_its_request_is_not_to_be_repeated() {
    let tools = Tools::start().await;
    tools.function.limit(Limits {
        request: Duration::from_secs(2),
        ..Limits::default()
    });
    let params = json!({"name": "Long_Once", "arguments": {"before_ms": 2500}});
    let answer = tools.mcp("", "tools/call", params, false).await.json();
    let text = text_of(&answer["result"]);
    assert!(
        text.ends_with("The work goes on. Do not call the tool again for its effect."),
        "{answer}"
    );
    assert!(answer["result"]["_meta"]["lambda-tools/retry-after-ms"].is_null());
}

/// An item of DynamoDB has at most 400 KB.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes; run tests/all"]
async fn an_input_that_is_too_large_for_the_table_runs_in_its_request() {
    let tools = Tools::start().await;
    let input = json!({"text": "x".repeat(420_000)});
    let result = tools.call("", "Long_Once", input, "large").await;
    let written = json!({"result": "written for large"});
    assert_eq!(result["structuredContent"], written, "{result}");
    assert!(tools.function.invocations().is_empty());
    assert_eq!(tools.effects_of("large"), 1);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes; run tests/all"]
async fn a_tool_that_requires_tasks_says_so_to_other_clients() {
    let tools = Tools::start().await;
    let takes_longer = "This tool takes longer than a call can";
    let only = "It can only be called by MCP clients that support tasks. Nothing was run.";
    let mut texts = Vec::new();
    for client in CLIENTS {
        let answer = client.call(&tools, "Long.Only", &json!({}), "only").await;
        let json = answer.json();
        match client {
            Client::Oxp => {
                assert_eq!(answer.status, 400, "{json}");
                assert!(!answer.headers.contains_key("x-should-retry"));
                texts.push(format!(
                    "{}. {}",
                    json["message"], json["developer_message"]
                ));
            }
            Client::OpenTool => texts.push(json["error"]["message"].to_string()),
            Client::LegacyMcp | Client::Mcp => {
                assert_eq!(answer.status, 400, "{client:?}: {json}");
                assert_eq!(json["error"]["code"], -32021, "{client:?}: {json}");
                let required = json!({"extensions": {TASKS: {}}});
                let data = json!({"requiredCapabilities": required});
                assert_eq!(json["error"]["data"], data, "{client:?}: {json}");
            }
        }
    }
    for text in &texts {
        assert!(text.contains(only), "{text}");
    }
    assert!(texts[0].contains(takes_longer), "{}", texts[0]);
    assert!(tools.function.invocations().is_empty() && tools.table.is_empty());
    let result = tools.call("", "Long_Only", json!({}), "only").await;
    assert_eq!(result["structuredContent"]["result"], 3, "{result}");
    // So do the requests for tasks.
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({"taskId": "0".repeat(96)});
        let answer = tools.mcp("", method, params, false).await;
        assert_eq!(answer.status, 400, "{method}");
        assert_eq!(answer.json()["error"]["code"], -32021, "{method}");
    }
}
