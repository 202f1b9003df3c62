//! No input of a call reaches the log, the metrics or a span, unless the local server is asked to
//! show it.

use std::fs::File;

use lambda_tools::Protocol;
use test_support::{
    Running, call_at,
    lambda::{LONG, invoke_on},
    marks::Scratch,
    mcp::modern,
};

use super::*;

const PROGRAM: &str = "leaks::inputs::showing_program_of_tests";

/// The text of an input, in a type that shows it whenever it can.
#[derive(JsonSchema)]
#[schemars(transparent)]
struct Shown(String);

impl<'de> Deserialize<'de> for Shown {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        assert!(!text.starts_with("panic"), "{text} is not accepted");
        if text.starts_with("reject") {
            return Err(serde::de::Error::custom(format!("{text} is not accepted")));
        }
        Ok(Self(text))
    }
}

/// Shows its input.
#[derive(Deserialize, JsonSchema)]
struct Show {
    /// How.
    way: String,
    /// What.
    text: Shown,
    /// A number.
    number: Option<u8>,
}

async fn show_input(input: Show) -> Result<String, Failure> {
    let text = input.text.0;
    match &*input.way {
        "message" => Err(Failure::new(&text).prompt(text)),
        "retry" => Err(Failure::new(text).retry()),
        "developer" => Err(Failure::new("no").developer_message(text)),
        "panic" => panic!("{text} is wrong"),
        "unwrap" => Err::<String, _>(text).map(Ok).unwrap(),
        "literal" => panic!("a text of the program"),
        "number" => Ok(format!("{:?}", input.number)),
        _ => Ok(text),
    }
}

/// Returns its input, which is no output that its schema allows.
async fn quote(input: Value) -> Result<Value, Failure> {
    Ok(input)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a program that tests start"]
async fn showing_program_of_tests() {
    assert_program();
    let output = json!({"type": "object", "properties": {"text": {"type": "integer"}}});
    let input = json!({"type": "object"});
    let tools = [
        Tool::new("Input.Show@1.0.0", show_input),
        Tool::dynamic("Input.Wrong@1.0.0", "Quotes.", input, output, quote),
    ];
    let server = Server::new(Toolkit::new(tools).unwrap());
    let all = [Protocol::Mcp, Protocol::Oxp, Protocol::OpenTool];
    serve(server.protocols(all)).await.unwrap();
}

/// Returns a request with this body.
fn posted(path: &str, headers: Value, body: String) -> Value {
    let mut event = event("calculator/add.header-form");
    event["rawPath"] = path.into();
    event["requestContext"]["http"]["path"] = path.into();
    event["headers"] = headers;
    event["headers"]["content-type"] = "application/json".into();
    event["body"] = body.into();
    event
}

/// Returns calls of a tool in every protocol.
fn in_every_protocol(tool: &str, input: &Value) -> Vec<Value> {
    let (id, name) = (format!("Input.{tool}"), format!("Input_{tool}"));
    let call = json!({"tool_id": id, "input": input});
    // OpenTool's id is that of the call.
    let number = || {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        NUMBER.fetch_add(1, Ordering::Relaxed)
    };
    let rpc = |method: &str, params: &Value| {
        json!({"jsonrpc": "2.0", "id": number(), "method": method, "params": params}).to_string()
    };
    let both = json!({"accept": "application/json, text/event-stream"});
    let params = json!({"name": name, "arguments": input});
    let legacy = posted("/mcp", both, rpc("tools/call", &params));
    let (headers, mut modern) = modern("tools/call", params, json!({}));
    modern["id"] = number().into();
    let headers: serde_json::Map<_, _> = headers
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    let in_schema = |schema: &str| {
        let body = json!({"$schema": schema, "request": call});
        posted("/tools/call", json!({}), body.to_string())
    };
    let version = json!({"oxp-version": "1.0"});
    vec![
        posted("/tools/call", version, call.to_string()),
        in_schema("urn:oxp:1.0"),
        in_schema("otc://1.0"),
        posted(&format!("/tools/{id}/call"), json!({}), input.to_string()),
        posted("/opentool/call", json!({}), rpc(&name, input)),
        legacy,
        posted("/mcp", headers.into(), modern.to_string()),
        // A direct call.
        call,
    ]
}

#[tokio::test]
async fn no_input_reaches_the_log_the_metrics_or_a_span() {
    let mark = format!("{MARK}-4711");
    let show = |way: &str| json!({"way": way, "text": mark});
    let ways = "value message retry developer panic unwrap literal";
    let ways: Vec<_> = ways.split(' ').collect();
    let mut inputs: Vec<_> = ways.iter().map(|way| ("Show", show(way))).collect();
    inputs.extend([
        ("Show", json!({"way": mark, "text": mark})),
        ("Show", json!({"way": "", "text": format!("panic {mark}")})),
        ("Show", json!({"way": "", "text": format!("reject {mark}")})),
        ("Show", json!({"way": "", "text": {"a": mark}})),
        ("Show", json!({"way": "", "text": {mark.clone(): 1}})),
        ("Show", json!({"way": "", "text": "", mark.clone(): 1})),
        ("Show", json!({"way": "", "text": "", "number": mark})),
        ("Show", json!({"way": [mark], "number": 256})),
        ("Show", json!(mark)),
        ("Show", json!([mark])),
        ("Wrong", json!({"text": mark})),
    ]);
    let calls = inputs
        .iter()
        .flat_map(|(tool, input)| in_every_protocol(tool, input));
    let mut events: Vec<_> = calls.collect();
    let protocols = events.len() / inputs.len();
    let accepts = json!({"accept": "application/json, text/event-stream"});
    for path in ["/tools/call", "/opentool/call", "/mcp"] {
        let cursor = json!({"cursor": mark});
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": cursor});
        let mixed = json!({"tool_id": "Input.Show", "input": mark, "method": {mark.clone(): 1}});
        let broken = format!("{{\"tool_id\": \"Input.Show\", \"{mark}");
        for body in [
            broken,
            json!(mark).to_string(),
            mixed.to_string(),
            list.to_string(),
        ] {
            let mut event = posted(path, accepts.clone(), body);
            event["rawQueryString"] = format!("q={mark}").into();
            events.push(event);
        }
    }
    let stderr = Scratch::new("stderr-inputs");
    let mut function = test_support::program(PROGRAM);
    function.stderr(File::create(&stderr.0).unwrap());
    #[cfg(feature = "otlp")]
    let collector = Collector::start().await;
    #[cfg(feature = "otlp")]
    let url = collector.url();
    let environment = [
        ("TOOLS_AUTH", "none"),
        ("TOOLS_EVENTS", "http-api,direct"),
        ("TOOLS_METRICS", "cloudwatch"),
        ("AWS_LAMBDA_LOG_LEVEL", "trace"),
        ("RUST_BACKTRACE", "1"),
        #[cfg(feature = "otlp")]
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*url),
    ];
    let events: Vec<_> = events.into_iter().map(|it| (it, LONG)).collect();
    let (reports, printed) = invoke_on(&mut function, &events, &environment).await;
    assert_eq!(reports.len(), events.len());
    let (marked, others): (Vec<_>, Vec<_>) = printed.iter().partition(|it| it.contains(MARK));
    // Only what a tool has written for the log.
    for line in &marked {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        assert_eq!(line["developer_message"], *mark, "{line}");
        assert_eq!(line["reason"], "failed", "{line}");
    }
    assert_eq!(marked.len(), protocols, "{marked:#?}");
    assert!(!stderr.text().contains(MARK), "{}", stderr.text());
    let count = |text: &str| others.iter().filter(|it| it.contains(text)).count();
    // Two ways to panic with the input, one with a literal, and one while the input is decoded.
    assert_eq!(count("a tool panicked"), 4 * protocols);
    assert_eq!(count("a text of the program"), protocols);
    // A failure without a text for the log is a problem, too.
    for line in others.iter().filter(|it| it.contains("\"failed\"")) {
        assert!(line.contains("\"WARN\""), "{line}");
        assert!(!line.contains("developer_message"), "{line}");
    }
    assert_eq!(count("\"reason\":\"failed\""), 2 * protocols);
    #[cfg(feature = "otlp")]
    {
        let exported = collector.texts();
        assert!(exported.len() > protocols * ways.len());
        assert_unmarked("spans", exported);
    }
}

/// Only the local server shows inputs, and only if it is asked to.
#[tokio::test(flavor = "multi_thread")]
async fn the_local_server_shows_the_texts_of_panics_if_it_shows_calls() {
    for (shows, is_shown) in [("yes", true), ("no", false)] {
        let mut command = test_support::program(PROGRAM);
        command.env("LOG_CALLS", shows).env("NO_COLOR", "1");
        let (running, url) = Running::serving(&mut command);
        let input = json!({"way": "panic", "text": MARK});
        call_at(&url, &json!({"tool_id": "Input.Show", "input": input})).await;
        let line = running.line_with("a tool panicked", 5);
        assert!(line.contains("inputs.rs"), "{line}");
        assert_eq!(line.contains(MARK), is_shown, "{line}");
    }
}
