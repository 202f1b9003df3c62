//! Every call gets a response, and the next call works.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use lambda_tools::{Context, Failure, Server, Tool, Toolkit, testing::LambdaFunction};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{Nothing, call, event, failure, function, get, post, value};

async fn never(_: Nothing) -> Result<(), Failure> {
    std::future::pending().await
}

/// The id of every call without one, whose clock and ids are fixed.
const FIXED_CALL_ID: &str = "00000000-0000-4000-8000-000000000000";

/// Says what to do.
#[derive(Deserialize, JsonSchema)]
struct Work {
    /// The kind of work.
    kind: String,
}

#[expect(clippy::needless_pass_by_value, reason = "a tool owns its parameters")]
fn work(input: Work, cx: Context) -> Result<String, Failure> {
    match &*input.kind {
        "call id" => Ok(cx.call_id().to_owned()),
        "read" => Ok(std::fs::read_to_string("/nowhere")?),
        "panic" => panic!("with a secret in it"),
        // As blocking clients do.
        _ => Ok(tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(async { "done".to_owned() })),
    }
}

#[derive(JsonSchema, Serialize)]
struct Odd {
    #[schemars(with = "BTreeMap<String, u8>")]
    map: BTreeMap<(u8, u8), u8>,
}

async fn odd_keys(_: Nothing) -> Result<Odd, Failure> {
    let map = BTreeMap::from([((1, 2), 3)]);
    Ok(Odd { map })
}

/// Requests a text of this size.
#[derive(Deserialize, JsonSchema)]
struct Size {
    /// The number of bytes.
    bytes: usize,
    /// The character to repeat.
    of: char,
}

async fn large(size: Size) -> Result<String, Failure> {
    Ok(size.of.to_string().repeat(size.bytes))
}

/// Returns a function with tools, some of which are functions that are not async.
fn tools() -> LambdaFunction {
    let greet =
        |greeting: String, input: Work| Ok::<_, Failure>(format!("{greeting}, {}", input.kind));
    let state_of = |state: u8, _: Work, _: Context| Ok::<_, Failure>(state);
    let length = |input: Value| Ok(json!(input.as_object().map(serde_json::Map::len)));
    let object = json!({"type": "object"});
    let tools = [
        Tool::new("T.Never@1.0.0", never).timeout(Duration::from_millis(50)),
        Tool::new("T.OddKeys@1.0.0", odd_keys),
        // The longest limit that can be set.
        Tool::new("T.Large@1.0.0", large).timeout(Duration::MAX),
        Tool::new("T.Work@1.0.0", work),
        Tool::with_state("T.Greet@1.0.0", &"Hello".to_owned(), greet),
        Tool::with_state("T.State@1.0.0", &7, state_of),
        Tool::dynamic("T.Length@1.0.0", "Counts.", object, json!({}), length),
    ];
    function(Toolkit::new(tools).unwrap())
}

async fn assert_works(function: &LambdaFunction) {
    let input = json!({"bytes": 2, "of": "x"});
    assert_eq!(value(function, "T.Large", input).await, "xx");
}

#[tokio::test]
async fn a_function_that_is_not_async_is_a_tool() {
    let function = tools();
    for (tool, kind, expected) in [
        ("T.Greet", "Ada", json!("Hello, Ada")),
        ("T.State", "x", json!(7)),
        ("T.Length", "x", json!(1)),
        ("T.Work", "runtime", json!("done")),
        ("T.Work", "call id", json!(FIXED_CALL_ID)),
    ] {
        let value = value(&function, tool, json!({"kind": kind})).await;
        assert_eq!(value, expected, "{tool} {kind}");
    }
}

#[tokio::test]
async fn the_failure_of_a_call_without_a_result_says_why() {
    let function = tools();
    let late = "The tool did not finish in time";
    let odd = "The tool returned a result that cannot be sent";
    let incomplete = "The tool could not complete the call";
    let internal = "The tool stopped because of an internal error";
    let work = |kind: &str| json!({ "kind": kind });
    for (tool, input, message, detail) in [
        ("T.Never", json!({}), late, "after 50 ms"),
        (
            "T.OddKeys",
            json!({}),
            odd,
            "not JSON: key must be a string",
        ),
        ("T.Work", work("read"), incomplete, "No such file"),
        ("T.Work", work("panic"), internal, ""),
    ] {
        let error = failure(&function, tool, input).await;
        assert_eq!(error["message"], message);
        assert_eq!(error["can_retry"], tool == "T.Never");
        let text = error["developer_message"].as_str().unwrap();
        assert!(text.contains(detail) && !text.contains("secret"), "{text}");
        assert_works(&function).await;
    }
}

#[tokio::test]
async fn a_stopped_call_leaves_nothing_running() {
    let running = Arc::new(());
    let held = Arc::clone(&running);
    let waits = move |_: Nothing| {
        let held = Arc::clone(&held);
        async move {
            std::future::pending::<()>().await;
            drop(held);
            Ok::<_, Failure>(())
        }
    };
    let tool = Tool::new("T.Waits@1.0.0", waits).timeout(Duration::from_millis(20));
    let function = function(Toolkit::new([tool]).unwrap());
    let idle = Arc::strong_count(&running);
    failure(&function, "T.Waits", json!({})).await;
    // Likewise if the caller disconnects before the tool's timeout.
    let abandoned = call(&function, "T.Waits", json!({}));
    let abandoned = tokio::time::timeout(Duration::from_millis(5), abandoned).await;
    assert!(abandoned.is_err());
    for _ in 0..100 {
        if Arc::strong_count(&running) == idle {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("a tool is still running");
}

#[tokio::test]
async fn a_result_too_large_for_the_source_of_the_event_is_a_failure() {
    let function = tools();
    // A quote is escaped twice: in the body, and again in the event around it.
    for (bytes, of, fits, fits_load_balancer) in [
        (900_000, "x", true, true),
        (2_000_000, "x", true, false),
        (6_300_000, "x", false, false),
        (1_565_000, "\"", true, false),
        (2_500_000, "\"", false, false),
    ] {
        let body = json!({"tool_id": "T.Large", "input": {"bytes": bytes, "of": of}}).to_string();
        let load_balancer = json!({
            "requestContext": {"elb": {}}, "httpMethod": "POST", "path": "/call", "headers": {},
            "body": body, "isBase64Encoded": false,
        });
        for (event, fits) in [
            (event("POST", "/tools/call", &body), fits),
            (load_balancer.to_string(), fits_load_balancer),
        ] {
            let response = function.invoke(&event).await.unwrap();
            assert_eq!(response["statusCode"], 200);
            assert!(response.to_string().len() <= 6_291_556, "{bytes} {of}");
            let body: Value = serde_json::from_str(response["body"].as_str().unwrap()).unwrap();
            assert_eq!(body["success"], fits, "{bytes} {of}");
            if !fits {
                let message = &body["error"]["message"];
                assert_eq!(message, "The tool's result is too large to send");
            }
        }
    }
    assert_works(&function).await;
}

/// Field names may come from any source and be as secret as values.
#[tokio::test]
async fn the_failure_of_an_invalid_output_does_not_reveal_field_names() {
    let tool = |id: &'static str, schema: Value, output: Value| {
        let act = move |_: Value| {
            let output = output.clone();
            async move { Ok::<_, Failure>(output) }
        };
        Tool::dynamic(id, "Acts.", json!({"type": "object"}), schema, act)
    };
    let map = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    let closed = json!({"type": "object", "additionalProperties": false,
                        "properties": {"a": {"type": "integer"}}});
    let many: serde_json::Map<_, _> = (0..5000)
        .map(|i| (format!("secret-{i}"), json!("x")))
        .collect();
    let tools = [
        tool("T.Map@1.0.0", map.clone(), json!({"secret": "x"})),
        tool("T.Closed@1.0.0", closed, json!({"secret": 1, "a": "x"})),
        tool("T.Many@1.0.0", map, Value::Object(many)),
    ];
    let function = function(Toolkit::new(tools).unwrap());
    for (tool, place) in [
        ("T.Map", "/additionalProperties/type"),
        ("T.Closed", "/additionalProperties"),
        ("T.Closed", "/properties/a/type"),
        ("T.Many", "/additionalProperties/type"),
    ] {
        let error = failure(&function, tool, json!({})).await;
        let detail = error["developer_message"].as_str().unwrap();
        assert!(detail.contains(place), "{tool}: {detail}");
        let is_revealing = detail.contains("secret") || detail.contains("parameter");
        assert!(!is_revealing, "{detail}");
    }
}

#[tokio::test]
async fn a_response_too_large_from_a_custom_route_is_a_server_error() {
    let routes = |router: axum::Router| {
        let large = axum::routing::get(|| async { "x".repeat(7_000_000) });
        router.route("/large", large)
    };
    let function = function(Server::new(Toolkit::new([]).unwrap()).map_router(routes));
    let response = get(&function, "/large").await;
    assert_eq!(response.status, 500);
    assert_eq!(response.body["message"], "The response cannot be sent");
}

#[tokio::test]
async fn a_tool_has_access_to_its_declared_secrets_only() {
    async fn peek(_: Nothing, cx: Context) -> Result<Value, Failure> {
        let declared = cx.secret("MINE")?.expose().to_owned();
        let failure = cx.secret("OTHER").unwrap_err();
        let failure = format!("{failure:?}");
        Ok(json!([declared, failure.contains("secret(\\\"OTHER\\\")")]))
    }
    let tool = Tool::new("T.Peek@1.0.0", peek).secret("MINE");
    let function = function(Toolkit::new([tool]).unwrap());
    let secrets = json!([{"id": "MINE", "value": "a"}, {"id": "OTHER", "value": "b"}]);
    let body = json!({"tool_id": "T.Peek", "context": {"secrets": secrets}});
    let response = post(&function, "/tools/call", &[], &body).await;
    assert_eq!(response.body["value"], json!(["a", true]));
}

/// Events, each with what its error says.
const OTHER_EVENTS: &str = r#"
{"Records": []} | the event has the fields Records
[] | it is not valid at line 1
{"warmer": "true"} | the event has the fields warmer
{"source": "aws.s3", "detail": {}} | the event has the fields
{"detail": {"source": "aws.events"}} | the event has the fields detail
{"version": "2.0", "rawPath": 7} | it is not valid at line 1
{"rawPath": "/", "isBase64Encoded": "MARK", "requestContext": {"http": {"method": "GET"}}} | it is not valid at line 1
{"rawPath": "/", "cookies": {"MARK": 1}, "requestContext": {"http": {"method": "GET"}}} | it is not valid at line 1
{"httpMethod": "MARK MARK", "requestContext": {"elb": {"targetGroupArn": "a"}}} | it is not valid at line 1
{"httpMethod": "GET", "requestContext": {}} | missing field `httpMethod`
"#;

#[tokio::test]
async fn an_event_that_is_not_an_http_request_is_a_descriptive_error() {
    let function = tools();
    let rows = OTHER_EVENTS.lines().filter(|line| !line.is_empty());
    for row in rows {
        let (event, reason) = row.split_once(" | ").unwrap();
        let error = function.invoke(event).await.unwrap_err().to_string();
        let start = "This function answers HTTP requests";
        assert!(error.starts_with(start), "{error}");
        assert!(error.contains(reason), "{event}: {error}");
        assert!(!error.contains("MARK"), "{error}");
    }
}
