//! A call always gets an answer, and the next call works.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use lambda_tools::{Context, Failure, Server, Tool, Toolkit, testing::LambdaFunction};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{call, event, failure, function, value};

/// Takes nothing.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

async fn panics(_: Nothing) -> Result<(), Failure> {
    panic!("on purpose, with a secret in it")
}

async fn never(_: Nothing) -> Result<(), Failure> {
    std::future::pending().await
}

async fn blocks(_: Nothing) -> Result<(), Failure> {
    std::thread::sleep(Duration::from_secs(2));
    Ok(())
}

async fn nan(_: Nothing) -> Result<Option<f64>, Failure> {
    Ok(Some(f64::NAN))
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

/// How large the text shall be.
#[derive(Deserialize, JsonSchema)]
struct Size {
    /// Bytes of text.
    bytes: usize,
    /// The text's one character.
    of: char,
}

async fn large(size: Size) -> Result<String, Failure> {
    Ok(size.of.to_string().repeat(size.bytes))
}

#[derive(JsonSchema, Serialize)]
struct Rated {
    #[schemars(range(max = 5))]
    stars: u32,
}

async fn beyond_its_range(_: Nothing) -> Result<Rated, Failure> {
    Ok(Rated { stars: 6 })
}

fn tools() -> LambdaFunction {
    let short = Duration::from_millis(50);
    let tools = [
        Tool::new("T.Panics@1.0.0", panics),
        Tool::new("T.Never@1.0.0", never).timeout(short),
        Tool::new("T.Blocks@1.0.0", blocks).timeout(short),
        Tool::new("T.Nan@1.0.0", nan),
        Tool::new("T.OddKeys@1.0.0", odd_keys),
        Tool::new("T.Large@1.0.0", large),
        Tool::new("T.BeyondItsRange@1.0.0", beyond_its_range),
    ];
    function(Toolkit::new(tools).unwrap())
}

async fn still_works(function: &LambdaFunction) {
    let input = json!({"bytes": 2, "of": "x"});
    assert_eq!(value(function, "T.Large", input).await, "xx");
}

#[tokio::test]
async fn a_panic_is_a_failure_that_says_nothing_of_its_message() {
    let function = tools();
    let error = failure(&function, "T.Panics", json!({})).await;
    assert_eq!(
        error["message"],
        "The tool stopped because of an error in it"
    );
    assert_eq!(error["can_retry"], false);
    assert!(!error.to_string().contains("secret"));
    still_works(&function).await;
}

#[tokio::test]
async fn a_tool_that_never_returns_is_cut_off_and_may_be_retried() {
    let function = tools();
    let error = failure(&function, "T.Never", json!({})).await;
    assert_eq!(error["message"], "The tool did not finish in time");
    assert_eq!(
        error["developer_message"],
        "The tool was stopped after 50 ms."
    );
    assert_eq!(error["can_retry"], true);
    still_works(&function).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_blocks_its_thread_is_answered_in_time_as_well() {
    let function = tools();
    let begun = std::time::Instant::now();
    let error = failure(&function, "T.Blocks", json!({})).await;
    assert_eq!(error["can_retry"], true);
    assert!(begun.elapsed() < Duration::from_secs(1));
    still_works(&function).await;
}

#[tokio::test]
async fn a_call_that_is_cut_off_leaves_nothing_running() {
    struct Running(Arc<AtomicUsize>);
    impl Drop for Running {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let waits = move |_: Nothing| {
        let count = Arc::clone(&counted);
        async move {
            count.fetch_add(1, Ordering::SeqCst);
            let _running = Running(count);
            std::future::pending::<Result<(), Failure>>().await
        }
    };
    let tool = Tool::new("T.Waits@1.0.0", waits).timeout(Duration::from_millis(20));
    let function = function(Toolkit::new([tool]).unwrap());
    failure(&function, "T.Waits", json!({})).await;
    // And when the caller goes away before the tool's time is up.
    let gone = call(&function, "T.Waits", json!({}));
    assert!(
        tokio::time::timeout(Duration::from_millis(5), gone)
            .await
            .is_err()
    );
    for _ in 0..100 {
        if count.load(Ordering::SeqCst) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("a tool is still running");
}

#[tokio::test]
async fn what_json_cannot_say_is_a_failure() {
    let function = tools();
    for tool in ["T.Nan", "T.OddKeys"] {
        let error = failure(&function, tool, json!({})).await;
        assert_eq!(
            error["message"],
            "The tool gave a result that cannot be sent"
        );
        still_works(&function).await;
    }
}

#[tokio::test]
async fn an_answer_that_lambda_cannot_send_is_a_failure() {
    let function = tools();
    // Quotes double on their way: once escaped in the body, once more in the event around it.
    for (bytes, of, fits) in [
        (6_000_000, "x", true),
        (6_300_000, "x", false),
        (1_500_000, "\"", true),
        (2_500_000, "\"", false),
    ] {
        let answer = call(&function, "T.Large", json!({"bytes": bytes, "of": of})).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.body["success"], fits, "{bytes} {of}");
        if !fits {
            let message = &answer.body["error"]["message"];
            assert_eq!(message, "The tool's result is too large to send");
        }
    }
    still_works(&function).await;
}

#[tokio::test]
async fn the_size_is_measured_as_it_is_sent() {
    let function = tools();
    let body = json!({"tool_id": "T.Large", "input": {"bytes": 1_565_000, "of": "\""}});
    let event = event("POST", "/tools/call", &body.to_string());
    let answer = function.invoke(&event).await.unwrap();
    let sent = serde_json::to_string(&answer).unwrap().len();
    assert!((6_000_000..=6_291_556).contains(&sent), "{sent}");
}

#[tokio::test]
async fn an_output_that_breaks_its_own_schema_is_a_failure() {
    let error = failure(&tools(), "T.BeyondItsRange", json!({})).await;
    let message = "The tool gave a result that does not fit its definition";
    assert_eq!(error["message"], message);
    let detail =
        "The output does not fit output_schema: it is refused by /properties/stars/maximum.";
    assert_eq!(error["developer_message"], detail);
}

/// The names of fields come from wherever the tool has them, and may be as secret as values.
#[tokio::test]
async fn an_output_that_breaks_its_own_schema_shows_no_name_of_its_fields() {
    let tool = |id: &'static str, schema: Value, output: Value| {
        let give = move |_: Value| {
            let output = output.clone();
            async move { Ok::<_, Failure>(output) }
        };
        Tool::dynamic(id, "Gives.", json!({"type": "object"}), schema, give)
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
        assert!(
            !detail.contains("secret") && !detail.contains("parameter"),
            "{detail}"
        );
    }
}

#[tokio::test]
async fn a_route_of_the_owners_that_answers_too_much_is_an_error_of_its_own() {
    let routes = |router: axum::Router| {
        let much = axum::routing::get(|| async { "x".repeat(7_000_000) });
        router.route("/much", much)
    };
    let function = function(Server::new(Toolkit::new([]).unwrap()).map_router(routes));
    let answer = function.answer(&event("GET", "/much", "")).await.unwrap();
    assert_eq!(answer.status, 500);
    assert_eq!(answer.body["message"], "The response cannot be sent");
}

#[tokio::test]
async fn a_server_that_is_not_ready_says_so_and_runs_nothing() {
    let tool = Tool::new("T.Panics@1.0.0", panics);
    let server = Server::new(Toolkit::new([tool]).unwrap()).healthy_when(|| false);
    let function = function(server);
    let health = function.answer(&event("GET", "/health", "")).await.unwrap();
    assert_eq!(health.status, 503);
    let answer = call(&function, "T.Panics", json!({})).await;
    assert_eq!(answer.status, 400);
    let message = "The tool server is temporarily unavailable";
    assert_eq!(answer.body["message"], message);
}

#[tokio::test]
async fn a_tool_sees_what_it_declared_and_nothing_else() {
    async fn peek(_: Nothing, cx: Context) -> Result<Value, Failure> {
        let declared = cx.secret("MINE")?.expose().to_owned();
        let failure = cx.secret("OTHER").unwrap_err();
        Ok(json!([
            declared,
            format!("{failure:?}").contains("secret(\\\"OTHER\\\")")
        ]))
    }
    let tool = Tool::new("T.Peek@1.0.0", peek).secret("MINE");
    let function = function(Toolkit::new([tool]).unwrap());
    let secrets = json!([{"id": "MINE", "value": "a"}, {"id": "OTHER", "value": "b"}]);
    let body = json!({"tool_id": "T.Peek", "context": {"secrets": secrets}}).to_string();
    let answer = function
        .answer(&event("POST", "/tools/call", &body))
        .await
        .unwrap();
    assert_eq!(answer.body["value"], json!(["a", true]));
}

#[tokio::test]
async fn what_is_no_http_event_is_an_error_in_words() {
    let function = tools();
    for (event, says) in [
        (r#"{"Records": []}"#, "the event has the fields Records"),
        (r"{}", "the event is an empty object"),
        (r"[]", "it is not valid at line 1"),
        (
            r#"{"version": "2.0", "rawPath": 7}"#,
            "it is not valid at line 1",
        ),
        (
            r#"{"httpMethod": "GET", "requestContext": {}}"#,
            "missing field `httpMethod`",
        ),
        (
            r#"{"requestContext": {"elb": {}}}"#,
            "missing field `httpMethod`",
        ),
    ] {
        let error = function.invoke(event).await.unwrap_err().to_string();
        assert!(
            error.starts_with("This function answers HTTP requests"),
            "{error}"
        );
        assert!(error.contains(says), "{event}: {error}");
    }
}

#[tokio::test]
async fn a_panic_in_an_input_type_is_an_answer_as_well() {
    /// Cannot be decoded.
    #[derive(JsonSchema)]
    struct Explosive {}
    impl<'de> Deserialize<'de> for Explosive {
        fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
            panic!("with a secret in it")
        }
    }
    async fn explode(_: Explosive) -> Result<(), Failure> {
        Ok(())
    }
    let function = function(Toolkit::new([Tool::new("T.Explode@1.0.0", explode)]).unwrap());
    let answer = call(&function, "T.Explode", json!({})).await;
    assert_eq!(answer.status, 400);
    assert!(!answer.body.to_string().contains("secret"));
}

#[tokio::test]
async fn a_tool_may_have_all_the_time_there_is() {
    let tool = Tool::new("T.Large@1.0.0", large).timeout(Duration::MAX);
    still_works(&function(Toolkit::new([tool]).unwrap())).await;
}

#[tokio::test]
async fn a_load_balancer_sends_less_than_lambda() {
    let function = tools();
    let body = json!({"tool_id": "T.Large", "input": {"bytes": 2_000_000, "of": "x"}});
    let event = json!({"requestContext": {"elb": {}}, "httpMethod": "POST", "path": "/call",
                       "headers": {}, "body": body.to_string(), "isBase64Encoded": false});
    let answer = function.answer(&event.to_string()).await.unwrap();
    assert_eq!(
        answer.body["error"]["message"],
        "The tool's result is too large to send"
    );
}

#[tokio::test]
async fn an_event_that_is_damaged_is_not_quoted() {
    let event = r#"{"rawPath": 7, "headers": {"authorization": "Bearer marked"},
                    "requestContext": {"http": {"method": "marked\n"}}}"#;
    let error = tools().invoke(event).await.unwrap_err().to_string();
    assert!(!error.contains("marked"), "{error}");
}
